"""Ordinal matrix factorisation."""
