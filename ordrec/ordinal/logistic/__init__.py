"""ordinal/logistic."""
