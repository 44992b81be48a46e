"""Kernels between items, from what users said about them."""
