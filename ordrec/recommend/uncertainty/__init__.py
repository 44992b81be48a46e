"""Intervals of predicted ratings."""
