"""ordinal."""
