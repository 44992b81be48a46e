"""One model on one fold: fit it, ask it, measure what it said."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation.metrics.catalogue import catalogue_places, ranked_users
from ordrec.evaluation.metrics.measures import Measure, Outcome, UserSums, decide
from ordrec.evaluation.splits.base import Split

__all__ = ["FoldMeasurement", "Protocol", "measure_fold"]

Key = tuple[str, str, str]  # users, metric, average


@dataclass(frozen=True)
class Protocol:
    """How models are measured, as `ordrec.evaluation.evaluate` was told."""

    measures: Sequence[Measure]
    decision: str = "auto"
    candidates: str = "catalogue"
    ranking_users: int | Literal["auto", "all"] = "auto"
    cold_users: int = 0
    keep_distributions: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.measures:
            raise ArgumentError("metrics must hold at least one name")
        if self.decision not in ("auto", "mean", "median", "mode"):
            raise ArgumentError(
                f'decision must be "auto", "mean", "median" or "mode", got {self.decision!r}'
            )
        if self.candidates not in ("catalogue", "rated"):
            raise ArgumentError(
                f'candidates must be "catalogue" or "rated", got {self.candidates!r}'
            )
        if self.ranking_users not in ("auto", "all") and not (
            isinstance(self.ranking_users, int) and self.ranking_users > 0
        ):
            raise ArgumentError(
                f'ranking_users must be "auto", "all" or a number, got {self.ranking_users!r}'
            )
        if self.cold_users < 0:
            raise ArgumentError(f"cold_users must not be negative, got {self.cold_users}")

    def decision_of(self, measure: Measure) -> str:
        """The decision a metric is measured with."""
        return measure.decision if self.decision == "auto" else self.decision

    @property
    def ranking_decision(self) -> str:
        """The decision by which items are ranked."""
        return "mean" if self.decision == "auto" else self.decision

    @property
    def places_wanted(self) -> bool:
        """Whether anything is measured over the catalogue."""
        return self.candidates == "catalogue" and any(m.placed is not None for m in self.measures)


@dataclass(frozen=True)
class FoldMeasurement:
    """What was found: rows of the result, each user's share in them, or an error instead."""

    model: str
    split: str
    fold: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    sums: dict[Key, UserSums] = field(default_factory=dict)
    distributions: tuple[np.ndarray, np.ndarray] | None = None
    error: str = ""


def measure_fold(
    name: str, model: Any, split: Split, protocol: Protocol, on_error: str = "record"
) -> FoldMeasurement:
    """Fit the model on the training part and measure it on the test part.

    An exception is re-raised with ``on_error="raise"`` and else becomes the outcome.
    """
    try:
        return _measured(name, model, split, protocol)
    except Exception as error:  # whatever a model raises: the others are not to blame
        if on_error == "raise":
            raise
        return FoldMeasurement(
            name, split.name, split.fold, error=f"{type(error).__name__}: {error}"
        )


def _measured(name: str, model: Any, split: Split, protocol: Protocol) -> FoldMeasurement:
    start = time.perf_counter()
    model, given = _fitted(model, split)
    fitted = time.perf_counter()
    outcome = _outcome(name, model, split, protocol)
    predicted = time.perf_counter()
    about = {
        "model": name,
        "split": split.name,
        "fold": split.fold,
        "n_test": split.test.n_ratings,
        "n_cold_users": split.n_cold_users,
        "n_cold_items": split.n_cold_items,
        "n_cold_ratings": split.n_cold_ratings,
        "given": given,
        "fit_seconds": fitted - start,
        "predict_seconds": predicted - fitted,
    }
    rows: list[dict[str, Any]] = []
    sums: dict[Key, UserSums] = {}
    for users, part in _groups(outcome, split, protocol.cold_users).items():
        for measure in protocol.measures:
            if not measure.applies_to(part):
                continue
            decision = protocol.decision_of(measure)
            for average in measure.averages:
                value, n = measure.value(part, average, decision)
                rows.append(
                    about
                    | {"metric": measure.name, "average": average, "users": users}
                    | {"decision": _printed_decision(measure, part, decision)}
                    | {"candidates": _printed_candidates(measure, part)}
                    | {"value": value, "n": n}
                )
                found = measure.user_sums(part, average, decision)
                if found is not None:
                    sums[users, measure.name, average] = found
    kept = None
    if protocol.keep_distributions and outcome.probabilities is not None:
        kept = split.test.levels, outcome.probabilities
    return FoldMeasurement(name, split.name, split.fold, rows, sums, kept)


def _fitted(model: Any, split: Split) -> tuple[Any, str]:
    """The fitted model, and how it came to know the ratings given for fold-in."""
    folds_in = split.given is not None and hasattr(model, "fold_in")
    model.fit(split.train if folds_in else split.train_and_given())
    if folds_in:
        return model.fold_in(split.given), "folded in"
    return model, "" if split.given is None else "in training"


def _groups(outcome: Outcome, split: Split, cold_users: int) -> dict[str, Outcome]:
    """All users and, where there are cold ones, warm and cold ones apart."""
    known = split.train_and_given().user_counts[outcome.test.users]
    cold = known <= cold_users
    groups = {"all": outcome}
    if cold.any():
        if not cold.all():
            groups["warm"] = outcome.select(~cold)
        groups["cold"] = outcome.select(cold)
    return groups


def _outcome(name: str, model: Any, split: Split, protocol: Protocol) -> Outcome:
    test, scale = split.test, split.test.scale
    users, items = test.user_ids.take(test.users), test.item_ids.take(test.items)
    said: dict[str, np.ndarray] = {}
    shape: tuple[int, ...] = ()
    if hasattr(model, "predict_proba"):
        method, kind, shape = model.predict_proba, "probabilities", (scale.n_ranks,)
    elif hasattr(model, "predict"):
        method, kind = model.predict, "ratings"
    else:
        method, kind = model.scores, "scores"
    dated = "timestamps" in inspect.signature(method).parameters and test.timestamps is not None
    when = {"timestamps": test.timestamps} if dated else {}
    said[kind] = _answers(name, method, users, items, shape, **when)
    if protocol.places_wanted:

        def score(users: Any, items: Any) -> np.ndarray:
            values = _answers(name, method, users, items, shape)
            return decide(values, scale, protocol.ranking_decision) if shape else values

        ranked = ranked_users(split, protocol.ranking_users, protocol.seed)
        said["places"] = catalogue_places(score, split, ranked)
    return Outcome(test, **said)


def _answers(
    name: str,
    method: Callable[..., Any],
    users: Any,
    items: Any,
    row_shape: tuple[int, ...],
    **when: Any,
) -> np.ndarray:
    values = np.asarray(method(users, items, **when), dtype=np.float64)
    shape = (len(users), *row_shape)
    if values.shape != shape:
        raise DataError(f"model {name!r} answered with shape {values.shape} instead of {shape}")
    bad = int((~np.isfinite(values)).sum())
    if bad:
        raise DataError(f"model {name!r} gave {bad} predictions that are not finite numbers")
    return values


def _printed_decision(measure: Measure, outcome: Outcome, decision: str) -> str:
    """The decision as it stands in the table."""
    if measure.kind == "probability":
        return "none"
    return "point" if outcome.probabilities is None else decision


def _printed_candidates(measure: Measure, outcome: Outcome) -> str:
    """What a ranking metric ranks, as it stands in the table."""
    if measure.kind != "ranking":
        return ""
    return "catalogue" if measure.over_catalogue(outcome) else "rated"
