"""ordinal/gpor."""
