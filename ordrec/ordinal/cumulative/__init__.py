"""Cumulative-link models: proportional odds, ordered probit, proportional hazards."""

from ordrec.ordinal.cumulative.model import CumulativeLink

__all__ = ["CumulativeLink"]
