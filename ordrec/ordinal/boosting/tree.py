"""Regression trees as confidence functions: deeper members for thresholded ensembles.

Each round, a tree is fitted to the labels -sign(g) with weights |g|. A leaf holds their weighted
mean, which lies in [-1, 1] and minimises the squared error: the confidence of Lin & Li's section 2,
for which Theorem 1 holds as for any other base learner. scikit-learn grows the tree; a member keeps
its nodes alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["LEAF", "Tree"]

LEAF = -1  # in place of a child


@dataclass(frozen=True)
class Tree:
    """Nodes from the root on; children come after their parents, and a leaf has none."""

    feature: np.ndarray
    cut: np.ndarray
    left: np.ndarray
    right: np.ndarray
    value: np.ndarray

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """h(x) for each row."""
        # cuts are means of features in single precision, and compared as such when they were found
        X = X.astype(np.float32)
        node = np.zeros(X.shape[0], dtype=np.int64)
        moving = np.arange(X.shape[0])
        while moving.size:
            here = node[moving]
            inner = self.left[here] != LEAF
            moving, here = moving[inner], here[inner]
            low = X[moving, self.feature[here]] <= self.cut[here]
            node[moving] = np.where(low, self.left[here], self.right[here])
        return self.value[node]

    @classmethod
    def of(cls, fitted: Any) -> Tree:
        """From a fitted tree of scikit-learn."""
        nodes = fitted.tree_
        return cls(
            np.maximum(nodes.feature, 0).astype(np.int64),
            np.where(nodes.children_left == LEAF, 0.0, nodes.threshold),
            nodes.children_left.astype(np.int64),
            nodes.children_right.astype(np.int64),
            np.clip(nodes.value[:, 0, 0], -1.0, 1.0),
        )
