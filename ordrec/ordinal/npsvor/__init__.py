"""Nonparallel support vector ordinal regression: one proximal plane per rank."""

from __future__ import annotations

from ordrec.ordinal.npsvor.model import NPSVOR

__all__ = ["NPSVOR"]
