"""ordinal/svor."""
