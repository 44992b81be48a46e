"""Predictions for ratings that do not fit in memory."""
