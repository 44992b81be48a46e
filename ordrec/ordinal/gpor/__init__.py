"""Gaussian-process ordinal regression: Laplace and expectation propagation."""

from ordrec.ordinal.gpor.model import GPOR
from ordrec.ordinal.gpor.pooled import PooledFit, fit_many

__all__ = ["GPOR", "PooledFit", "fit_many"]
