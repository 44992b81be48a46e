"""Primal and dual objective from scratch, whose difference is the duality gap."""

from __future__ import annotations

import numpy as np

from ordrec.ordinal.svor.pairs import Pairs

__all__ = ["primal_and_dual"]


def primal_and_dual(
    pairs: Pairs, alpha: np.ndarray, beta: np.ndarray, f: np.ndarray, b: np.ndarray
) -> tuple[float, float]:
    """Half the squared norm of w plus the hinge losses, (5) or (20), and the dual, (11) or (24).

    The dual is a lower bound of the primal at any balanced multipliers in their box.
    """
    half_norm = 0.5 * float(beta @ f)
    loss = float(pairs.cap @ np.maximum(pairs.shortfall(f, b), 0.0))
    return half_norm + loss, float(alpha.sum()) - half_norm
