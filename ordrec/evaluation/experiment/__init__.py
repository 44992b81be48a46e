"""Experiments: models measured on the folds of problems, with resumable runs."""
