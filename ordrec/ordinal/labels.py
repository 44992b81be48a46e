"""Labels as ranks: their order, and the weights of classes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from ordrec.errors import ArgumentError, DataError

__all__ = [
    "categories_of",
    "class_weighted",
    "ordered_classes",
    "refuse_continuous",
    "refuse_encoded",
    "refuse_unordered_scorer",
]


def categories_of(y: Any) -> list[Any] | None:
    """The categories of an ordered pandas Categorical, lowest first; None for other labels."""
    dtype: Any = getattr(y, "dtype", None)
    return list(dtype.categories) if getattr(dtype, "ordered", False) else None


def ordered_classes(y: np.ndarray, declared: Any) -> tuple[np.ndarray, np.ndarray]:
    """Classes in ascending order of rank, and the zero-based rank of each label."""
    if declared is None:
        classes, ranks = np.unique(y, return_inverse=True)
        if classes.size > 2 and not np.issubdtype(classes.dtype, np.number):
            more = ", ..." if classes.size > 5 else ""
            raise ArgumentError(
                f"labels of type {classes.dtype} have no order of their own: declare it with "
                "classes=[lowest, ..., highest], or by an ordered pandas Categorical "
                f"(the labels are {', '.join(map(repr, classes[:5].tolist()))}{more})"
            )
        return classes, ranks.astype(np.int64)
    classes = np.asarray(declared)
    if classes.ndim != 1 or classes.size < 2 or np.unique(classes).size != classes.size:
        raise ArgumentError(f"classes must list at least two distinct labels, got {declared!r}")
    position = {label: rank for rank, label in enumerate(classes.tolist())}
    unknown = [label for label in np.unique(y).tolist() if label not in position]
    if unknown:
        raise DataError(
            f"y contains {unknown[:5]}, not among the declared classes {declared!r}{_encoded(y)}"
        )
    return classes, np.array([position[label] for label in y.tolist()], dtype=np.int64)


def _encoded(y: np.ndarray) -> str:
    """What may have happened to labels that are not the declared ones."""
    if y.dtype.kind not in "iu":
        return ""
    return (
        ". If scikit-learn has numbered them, as cross_val_predict does with predict_proba, pass "
        "y as numbers in the order of the ranks, without classes"
    )


def refuse_continuous(y: np.ndarray) -> None:
    """Raise an error for numbers that scikit-learn takes for targets of a regression."""
    try:
        check_classification_targets(y)
    except ValueError as error:
        raise DataError(
            f"{error} Labels such as half stars are declared with classes=[lowest, ..., highest]"
        ) from None


def refuse_encoded(y: np.ndarray) -> None:
    """Raise an error if scikit-learn has numbered labels in alphabetical order before a fit.

    ``cross_val_predict`` with probabilities does so, as do stacking and voting. The order that an
    ordered Categorical declares is lost there.
    """
    if y.dtype.kind not in "iu":
        return
    for frame in _frames_of("sklearn."):
        from sklearn.preprocessing import LabelEncoder  # here, as it takes a tenth of an import

        known = frame.f_locals
        own = getattr(known.get("self"), "__dict__", {})
        for value in (*known.values(), *own.values()):
            labels = getattr(value, "classes_", None) if isinstance(value, LabelEncoder) else None
            if labels is not None and len(labels) > 2 and labels.dtype.kind not in "biuf":
                raise ArgumentError(
                    f"{frame.f_code.co_name} of scikit-learn numbered the labels "
                    f"{labels[:5].tolist()} in alphabetical order, which need not be theirs: pass "
                    "y as numbers in the order of the ranks, such as the codes of an ordered "
                    "Categorical"
                )


def refuse_unordered_scorer(classes: np.ndarray) -> None:
    """Raise an error if a scorer of scikit-learn asks for columns that it would take for others."""
    labels = classes.tolist()
    if labels == sorted(labels):
        return
    for frame in _frames_of("sklearn.metrics."):
        if frame.f_code.co_name == "_score":
            raise ArgumentError(
                f"scikit-learn's scorers take the columns for {sorted(labels)[:5]}, but they are "
                f"{labels[:5]}, in the order of the ranks: take scoring from "
                "ordrec.ordinal.scorers, such as scorers.neg_log_loss, or pass y as numbers"
            )


def _frames_of(package: str) -> Iterator[FrameType]:
    """The calls by which one got here, those that are made in a package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(package):
            yield frame
        frame = frame.f_back


def class_weighted(
    class_weight: Any, ranks: np.ndarray, weight: np.ndarray, classes: np.ndarray
) -> np.ndarray:
    """The weights of the samples times those of their classes.

    Parameters
    ----------
    class_weight : None, "balanced" or dict
        Of label to weight; 1 for labels that are not listed. "balanced" gives all classes that
        occur the same total weight.
    ranks, weight : ndarray of shape (n,)
    classes : ndarray of shape (n_ranks,)

    Examples
    --------
    >>> ranks, classes = np.array([0, 0, 0, 1]), np.array(["low", "high"])
    >>> class_weighted("balanced", ranks, np.ones(4), classes).round(2).tolist()
    [0.67, 0.67, 0.67, 2.0]
    >>> class_weighted({"high": 3.0}, ranks, np.ones(4), classes).tolist()
    [1.0, 1.0, 1.0, 3.0]
    """
    if class_weight is None:
        return weight
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(ranks, weight, minlength=classes.size)
        present = totals > 0
        factors = np.ones(classes.size)
        factors[present] = totals.sum() / present.sum() / totals[present]
        return weight * factors[ranks]
    if not isinstance(class_weight, dict):
        raise ArgumentError(
            f'class_weight must be None, "balanced" or a dict of label to weight, '
            f"got {class_weight!r}"
        )
    position = {label: rank for rank, label in enumerate(classes.tolist())}
    factors = np.ones(classes.size)
    for label, factor in class_weight.items():
        if label not in position:
            raise ArgumentError(
                f"class_weight names {label!r}, which is not a class: these are {list(position)}"
            )
        if not (np.isfinite(factor) and factor >= 0):
            raise ArgumentError(f"the class_weight of {label!r} must not be negative: {factor!r}")
        factors[position[label]] = factor
    return weight * factors[ranks]
