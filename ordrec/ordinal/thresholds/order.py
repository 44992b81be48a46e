"""The one prediction rule of all threshold models."""

from __future__ import annotations

import numpy as np

__all__ = ["ranks_between"]


def ranks_between(latent: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Zero-based rank: the first j with latent < thresholds[j], the top rank if there is none.

    The thresholds need not be ordered (those of Shashua and Levin may not be).
    """
    below = latent[:, None] < thresholds
    return np.where(below.any(axis=1), below.argmax(axis=1), thresholds.size)
