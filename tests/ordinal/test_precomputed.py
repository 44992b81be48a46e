"""A precomputed kernel that is none: the same words from every estimator."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from ordrec import ordinal
from ordrec.errors import DataError

RNG_X = np.linspace(-1.0, 1.0, 24)[:, None] * [1.0, 0.3] + np.sin(np.arange(48.0)).reshape(24, 2)
RANKS = np.repeat([0, 1, 2], 8)
KERNEL_MODELS = [
    name
    for name in sorted(dir(ordinal))
    if inspect.isclass(getattr(ordinal, name))
    and "kernel" in inspect.signature(getattr(ordinal, name)).parameters
]


def indefinite() -> np.ndarray:
    K = RNG_X @ RNG_X.T + np.eye(24)
    values, vectors = np.linalg.eigh(K)
    values[3] = -0.5
    return (vectors * values) @ vectors.T


def made(name: str) -> Any:
    return getattr(ordinal, name)(kernel="precomputed")


def test_all_kernel_models_are_here() -> None:
    assert {"SVORIM", "SVOREX", "SVORSLA", "NPSVOR", "GPOR", "OrdinalLogistic", "SVRanks",
            "SVC1V1", "REDSVM", "GPRanks"} <= set(KERNEL_MODELS)  # fmt: skip


@pytest.mark.parametrize("name", KERNEL_MODELS)
def test_an_indefinite_kernel_is_refused_with_its_eigenvalues(name: str) -> None:
    K = indefinite()
    K = (K + K.T) / 2
    says = r"the kernel matrix is not positive semidefinite \(its eigenvalues lie between -0\.5 and"
    with pytest.raises(DataError, match=says):
        made(name).fit(K, RANKS)
    with pytest.raises(DataError, match="not positive semidefinite"):
        made(name).fit(-np.eye(24), RANKS)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KERNEL_MODELS)
def test_rounding_does_not_make_a_kernel_indefinite(name: str) -> None:
    """A singular kernel whose smallest eigenvalues are negative by rounding, in both precisions."""
    K = RNG_X @ RNG_X.T
    for gram in (K, K.astype(np.float32).astype(np.float64) + 1e-12 * np.sin(np.arange(24.0))):
        gram = (gram + gram.T) / 2
        assert np.linalg.eigvalsh(gram)[0] < 0
        assert made(name).fit(gram, RANKS).predict(gram).shape == (24,)
