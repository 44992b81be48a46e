"""Count concordant pairs within segments in O(n log n)."""

from __future__ import annotations

import numpy as np

from ordrec.evaluation.metrics.averaging import segment_of_rows
from ordrec.runtime.compiling import compiled

__all__ = ["concordant_pairs"]


def concordant_pairs(
    relevance: np.ndarray, scores: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Count the correctly ordered pairs and all pairs that differ in relevance, per segment.

    A pair of equal scores counts as half correct.
    """
    segment = segment_of_rows(start)
    levels, codes = np.unique(relevance, return_inverse=True)
    order = np.lexsort((scores, segment))
    right = _count_right(codes[order].astype(np.int64), scores[order], start, levels.size)
    sizes = np.diff(start)
    cells, counts = np.unique(segment * levels.size + codes, return_counts=True)
    tied = np.bincount(cells // levels.size, counts * (counts - 1.0), minlength=sizes.size)
    return right, (sizes * (sizes - 1.0) - tied) / 2.0


@compiled
def _count_right(
    codes: np.ndarray, scores: np.ndarray, start: np.ndarray, n_levels: int
) -> np.ndarray:
    """Count correctly ordered pairs, ties as half; rows are sorted by score in each segment."""
    right = np.zeros(start.size - 1)
    tree = np.zeros(n_levels + 1)  # Fenwick tree: the number of rows of lower score with each level
    for g in range(start.size - 1):
        low = start[g]
        while low < start[g + 1]:
            high = low + 1
            while high < start[g + 1] and scores[high] == scores[low]:
                high += 1
            # Counting the tied rows once before and once after they enter the tree
            # makes each of their pairs count one half.
            for row in range(low, high):
                right[g] += 0.5 * _below(tree, codes[row])
            for row in range(low, high):
                _add(tree, codes[row], 1.0)
            for row in range(low, high):
                right[g] += 0.5 * _below(tree, codes[row])
            low = high
        for row in range(start[g], start[g + 1]):
            _add(tree, codes[row], -1.0)
    return right


@compiled
def _below(tree: np.ndarray, level: int) -> float:
    """Return how many entries have a smaller level."""
    total = 0.0
    while level > 0:
        total += tree[level]
        level -= level & -level
    return total


@compiled
def _add(tree: np.ndarray, level: int, amount: float) -> None:
    level += 1
    while level < tree.size:
        tree[level] += amount
        level += level & -level
