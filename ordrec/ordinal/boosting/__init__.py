"""ordinal/boosting."""
