"""The prediction rule that all threshold models share."""

from __future__ import annotations

import numpy as np

__all__ = ["ranks_between"]


def ranks_between(latent: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return zero-based ranks: the first j with latent < thresholds[j], else the top rank.

    The thresholds need not be ordered (those of Shashua and Levin may not be).
    """
    below = latent[:, None] < thresholds
    return np.where(below.any(axis=1), below.argmax(axis=1), thresholds.size)
