"""Data sets with folds on which an experiment measures models."""
