"""Choosing among models by their lists: the first that is not worse than the best by chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ordrec.errors import ModelFileError
from ordrec.storage.schema import Array, Names, Text

__all__ = ["Chosen"]


@dataclass(frozen=True)
class Chosen:
    """What was chosen, and how good every candidate was on parts set aside in training.

    Attributes
    ----------
    name : str
        The candidate that was chosen.
    names : tuple of str
        All candidates, in the order of preference.
    quality : array
        The mean NDCG of each candidate's lists.
    errors : array
        For each candidate, the standard error of its difference to the best one.

    Examples
    --------
    >>> even = np.array([0.1, 0.3, 0.2, 0.4])
    >>> chosen = Chosen.among({"plain": even, "refined": even + [0.02, -0.01, 0.02, -0.01]})
    >>> chosen.name
    'plain'
    >>> print(chosen)
    plain (NDCG of inner lists: plain .2500, refined .2550)
    """

    stored: ClassVar = {
        "name": Text(),
        "names": Names(),
        "quality": Array(None),
        "errors": Array(None, low=0.0),
    }

    name: str
    names: tuple[str, ...]
    quality: np.ndarray
    errors: np.ndarray

    @classmethod
    def among(cls, qualities: Mapping[str, np.ndarray]) -> Chosen:
        """Choose by the qualities of lists for the same users, the preferred candidate first.

        The first candidate is chosen whose mean falls short of the best one's by no more than the
        standard error of the difference.
        """
        names = tuple(qualities)
        means = np.array([float(qualities[name].mean()) for name in names])
        best = names[int(np.argmax(means))]
        errors = np.array(
            [
                float(np.std(qualities[best] - qualities[name])) / np.sqrt(qualities[name].size)
                for name in names
            ]
        )
        near = means.max() - means <= errors
        return cls(names[int(np.argmax(near))], names, means, errors)

    @classmethod
    def only(cls, name: str) -> Chosen:
        """Of one candidate that was not compared with any other."""
        return cls(name, (), np.zeros(0), np.zeros(0))

    def check_stored(self) -> None:
        """Check that every candidate has its quality."""
        if not len(self.names) == self.quality.size == self.errors.size:
            raise ModelFileError("its candidates do not pair up with their qualities")

    def __str__(self) -> str:
        if not self.names:
            return self.name
        values = ", ".join(
            f"{name} {value:.4f}".replace(" 0.", " .")
            for name, value in zip(self.names, self.quality, strict=True)
        )
        return f"{self.name} (NDCG of inner lists: {values})"
