"""Splits of ratings and of rows into training and test parts."""
