"""Gaussian-process ordinal regression: Laplace and expectation propagation."""
