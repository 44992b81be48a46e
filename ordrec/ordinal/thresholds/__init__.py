"""ordinal/thresholds."""
