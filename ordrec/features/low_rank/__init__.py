"""Weighted low-rank approximation by expectation maximisation."""
