"""ordinal/npsvor."""
