"""The table of coefficients and thresholds that linear models show as their summary."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

from ordrec.errors import callers_level

__all__ = ["coefficient_table"]


def coefficient_table(model: Any) -> pd.DataFrame:
    """Return estimates, standard errors, their ratios z and p, of a linear model.

    Where it separates the labels of all training samples, a warning says why the last three are
    missing.
    """
    names = getattr(model, "feature_names_in_", [f"x{v}" for v in range(model.coef_.size)])
    cuts = [f"threshold {a}|{b}" for a, b in itertools.pairwise(model.classes_.tolist())]
    estimate = np.concatenate([model.coef_, model.thresholds_])
    error = np.sqrt(np.diag(model.covariance_))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = estimate / error
    columns = {"estimate": estimate, "std_err": error, "z": z, "p": 2.0 * ndtr(-np.abs(z))}
    table = pd.DataFrame(columns, index=[*names, *cuts])
    if model.separated_:
        warnings.warn(
            "the features separate the labels of all training samples, so that the size of the "
            "coefficients is set by the penalty alone: std_err, z and p mean nothing and are "
            "left out. Take more samples or fewer features, or judge by predictions for other "
            "samples",
            stacklevel=callers_level(),
        )
        table[["std_err", "z", "p"]] = np.nan
    return table
