"""Ordinal logistic regression over the immediate or all thresholds (Rennie 2005)."""

from ordrec.ordinal.logistic.model import OrdinalLogistic

__all__ = ["OrdinalLogistic"]
