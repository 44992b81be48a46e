"""The table of coefficients and thresholds that linear models show as their summary."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr

__all__ = ["coefficient_table"]


def coefficient_table(model: Any) -> pd.DataFrame:
    """Return estimates, standard errors, their ratios z and p, of a linear model."""
    names = getattr(model, "feature_names_in_", [f"x{v}" for v in range(model.coef_.size)])
    cuts = [f"threshold {a}|{b}" for a, b in itertools.pairwise(model.classes_.tolist())]
    estimate = np.concatenate([model.coef_, model.thresholds_])
    error = np.sqrt(np.diag(model.covariance_))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = estimate / error
    columns = {"estimate": estimate, "std_err": error, "z": z, "p": 2.0 * ndtr(-np.abs(z))}
    return pd.DataFrame(columns, index=[*names, *cuts])
