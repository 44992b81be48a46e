"""A fitted Gaussian process as arrays: the training data and theta, from which the rest follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ordrec.errors import ModelFileError
from ordrec.kernels import Precomputed
from ordrec.ordinal.decisions import decide
from ordrec.ordinal.files.inputs import inputs_from_arrays, inputs_to_arrays
from ordrec.ordinal.files.parameters import kernel_of, kernel_to_plain
from ordrec.ordinal.gpor.evidence import INFERENCES
from ordrec.storage import claim_memory, take

if TYPE_CHECKING:
    from ordrec.ordinal.gpor.model import GPOR

__all__ = ["process_to_state", "restore_process"]

LARGEST = 1e3  # magnitude of an entry of theta: logarithms, and the first threshold


def process_to_state(model: GPOR) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the training data, theta, and which parameters it contains."""
    arrays = {
        "ranks": model._train_ranks,
        "rho": model._rho,
        "free": model._free,
        "theta": model.theta_,
    }
    if model.landmarks_ is not None:
        arrays["landmarks"] = model.landmarks_.astype(np.int64)
    arrays |= inputs_to_arrays("train", model._train_inputs)
    return arrays, {
        "kernel": kernel_to_plain(model.kernel_),
        "prior_variance": model._prior_variance,
        "inference": model.inference_,
    }


def restore_process(
    model: GPOR, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]
) -> None:
    """Compute the posterior of stored data again."""
    kernel, n_ranks = kernel_of(metadata["kernel"]), model.n_ranks_
    decide(np.full((1, n_ranks), 1.0 / n_ranks), model.decision)  # raises if it cannot
    model.inference_ = metadata["inference"]
    if model.inference_ not in INFERENCES:
        raise ModelFileError(f"{str(model.inference_)[:50]!r} is no inference")
    model._train_ranks = take(arrays, "ranks", np.int64, (None,), low=0, high=n_ranks - 1)
    n = model._train_ranks.size
    if isinstance(kernel, Precomputed) and n != model.n_features_in_:
        raise ModelFileError("the kernel matrix is not square")
    model._train_inputs = inputs_from_arrays("train", arrays, n, model.n_features_in_)
    model._rho = take(arrays, "rho", np.float64, (n_ranks,), low=-LARGEST, high=LARGEST)
    model._free = take(arrays, "free", np.bool_, (n_ranks,))
    n_theta = kernel.theta.size + int(model._free.sum())
    model.theta_ = take(arrays, "theta", np.float64, (n_theta,), low=-LARGEST, high=LARGEST)
    model.landmarks_ = None
    if "landmarks" in arrays:
        rows = take(arrays, "landmarks", np.int64, (None,), low=0, high=n - 1)
        if not rows.size or np.unique(rows).size < rows.size:
            raise ModelFileError("array 'landmarks' names a row twice, or none")
        model.landmarks_ = rows
    width = n if model.landmarks_ is None else model.landmarks_.size
    claim_memory(8.0 * model.gram_copies * n * width, f"the kernel of {n} samples")
    model._prior_variance = float(metadata["prior_variance"])
    model._concerns = []
    model._keep_posterior(model._evidence(kernel))
    del model._concerns
    fitted = [model.noise_, *model.thresholds_, *model._predictor.coef, model._prior_variance]
    if not np.isfinite(fitted).all() or model._prior_variance < 0:
        raise ModelFileError("the parameters have no finite posterior")
