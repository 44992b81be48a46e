"""ordinal/baselines."""
