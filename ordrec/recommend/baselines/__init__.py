"""Models that every other model has to beat."""
