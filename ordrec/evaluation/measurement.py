"""Fit one model on one fold, let it predict, and measure the predictions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation.example_users import ExampleUser, example_users
from ordrec.evaluation.full_catalogue import (
    CatalogueScores,
    catalogue_ranking,
    pick_lists,
    ranked_users,
    scores_from_blocks,
    scores_from_pairs,
)
from ordrec.evaluation.metrics.measures import ListMeasure, Measure, Outcome, UserSums
from ordrec.evaluation.metrics.outcome import TopLists
from ordrec.evaluation.splits.base import Split
from ordrec.ordinal.decisions import decide
from ordrec.recommend.registry import make_model
from ordrec.runtime.progress import work_clock

__all__ = ["FoldMeasurement", "Protocol", "measurable_model", "measure_fold"]

Key = tuple[str, str, str]  # users, metric, average


@dataclass(frozen=True)
class Protocol:
    """How models are measured, with the options of `ordrec.evaluation.evaluate`."""

    measures: Sequence[Measure]
    decision: str = "auto"
    candidates: str = "catalogue"
    ranking_users: int | Literal["auto", "all"] = "auto"
    cold_users: int = 0
    keep_distributions: bool = False
    seed: int = 0
    times: str = "unknown"

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
        if self.times not in ("unknown", "known"):
            raise ArgumentError(f'times must be "unknown" or "known", got {self.times!r}')
        if self.cold_users < 0:
            raise ArgumentError(f"cold_users must not be negative, got {self.cold_users}")

    def decision_of(self, measure: Measure) -> str:
        """Return the decision with which a metric is measured."""
        return measure.decision if self.decision == "auto" else self.decision

    @property
    def ranking_decision(self) -> str:
        """The decision by which items are ranked."""
        return "mean" if self.decision == "auto" else self.decision

    @property
    def ranks_catalogue(self) -> bool:
        """Whether any metric is measured over the catalogue."""
        return self.candidates == "catalogue" and any(
            m.placed is not None or isinstance(m, ListMeasure) for m in self.measures
        )

    @property
    def list_length(self) -> int:
        """How many of the first items of each list are needed; 0 if lists are not needed."""
        lengths = [m.list_length for m in self.measures if isinstance(m, ListMeasure)]
        return max(lengths, default=0)

    @property
    def needs_p_pick(self) -> bool:
        """Whether any metric needs the probability that listed items are picked."""
        return any(isinstance(m, ListMeasure) and m.needs_p_pick for m in self.measures)

    def none_applies(self, models: Iterable[str]) -> ArgumentError:
        """Return the error for models to which none of the metrics applies."""
        return ArgumentError(
            f"none of the metrics {', '.join(m.name for m in self.measures)} applies to "
            f"{', '.join(models)}: a model without predict_proba has no distribution to measure, "
            "one that only ranks has ranking metrics only, and pick_calibration needs lists with "
            "p_pick, such as those of a Recommender"
        )


@dataclass(frozen=True)
class FoldMeasurement:
    """Values of one model on one fold: rows of the result, contributions of users, or an error."""

    model: str
    split: str
    fold: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    sums: dict[Key, UserSums] = field(default_factory=dict)
    distributions: tuple[np.ndarray, np.ndarray] | None = None
    error: str = ""
    examples: list[ExampleUser] = field(default_factory=list)


def measurable_model(name: str, model: Any, seed: int) -> Any:
    """Return a model that can be measured: one given by its registered name is made.

    Parameters
    ----------
    name : str
        For the error message.
    model : str or model
    seed : int
        The ``random_state`` of a model given by name, if it has one.
    """
    if isinstance(model, str):
        try:
            model = make_model(model, random_state=seed)
        except ArgumentError:  # it has no random_state
            model = make_model(model)
    if isinstance(model, type):
        raise ArgumentError(f"model {name!r} is a class: make a model of it with ()")
    if not hasattr(model, "predict") and not hasattr(model, "scores"):
        raise ArgumentError(
            f"model {name!r} has neither predict(users, items) nor scores(users, items)"
        )
    return model


def measure_fold(
    name: str, model: Any, split: Split, protocol: Protocol, on_error: str = "record"
) -> FoldMeasurement:
    """Fit the model on the training part and measure it on the test part.

    With ``on_error="raise"`` an exception is raised again, otherwise it is recorded.
    """
    try:
        return _measured(name, model, split, protocol)
    except Exception as error:  # any exception of a model: the other models go on
        if on_error == "raise":
            raise
        return FoldMeasurement(
            name, split.name, split.fold, error=f"{type(error).__name__}: {error}"
        )


def _measured(name: str, model: Any, split: Split, protocol: Protocol) -> FoldMeasurement:
    start = work_clock()
    model, given = _fitted(model, split)
    fitted = work_clock()
    outcome = _outcome(name, model, split, protocol)
    predicted = work_clock()
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
                    | {"value": float(value), "n": int(n)}
                )
                found = measure.user_sums(part, average, decision)
                if found is not None:
                    sums[users, measure.name, average] = found
    if not protocol.keep_distributions:
        return FoldMeasurement(name, split.name, split.fold, rows, sums)
    p, expected = outcome.probabilities, outcome.ratings
    if p is not None:
        expected = p @ split.test.scale.values
    examples = example_users(split, expected, _catalogue_scores(name, model, split, protocol))
    kept = None if p is None else (split.test.levels, p)
    return FoldMeasurement(name, split.name, split.fold, rows, sums, kept, examples=examples)


def _fitted(model: Any, split: Split) -> tuple[Any, str]:
    """Return the fitted model, and how the ratings given for fold-in reached it."""
    folds_in = split.given is not None and hasattr(model, "fold_in")
    model.fit(split.train if folds_in else split.train_and_given())
    if folds_in:
        return model.fold_in(split.given), "folded in"
    return model, "" if split.given is None else "in training"


def _groups(outcome: Outcome, split: Split, cold_users: int) -> dict[str, Outcome]:
    """Return the outcome for all users and, if there are cold users, for warm and cold ones."""
    known = split.train_and_given().user_counts[outcome.test.users]
    cold = known <= cold_users
    groups = {"all": outcome}
    if cold.any():
        if not cold.all():
            groups["warm"] = outcome.select(~cold)
        groups["cold"] = outcome.select(cold)
    return groups


def _outcome(name: str, model: Any, split: Split, protocol: Protocol) -> Outcome:
    """Return the predictions for the test part and, if needed, places in the catalogue."""
    test, scale = split.test, split.test.scale
    users, items = test.user_ids.take(test.users), test.item_ids.take(test.items)
    method, kind = _method_of(model)
    row_shape = (scale.n_ranks,) if kind == "probabilities" else ()
    told = protocol.times == "known" and test.timestamps is not None
    takes = "timestamps" in inspect.signature(method).parameters
    times = {"timestamps": test.timestamps} if told and takes else {}
    predictions = {kind: _predictions(name, method, users, items, row_shape, **times)}
    if not protocol.ranks_catalogue:
        return Outcome(test, **predictions)  # type: ignore[arg-type]
    scores = _catalogue_scores(name, model, split, protocol)
    in_blocks = scores.in_blocks
    ranked = ranked_users(split, protocol.ranking_users, protocol.seed, in_blocks=in_blocks)
    ranking = catalogue_ranking(scores, split, ranked, list_length=protocol.list_length)
    lists = None
    if protocol.list_length:
        lists = _top_lists(model, split, ranked, ranking.items, protocol)
    return Outcome(
        test,
        **predictions,  # type: ignore[arg-type]
        places=ranking.places,
        ranked_by_scores=in_blocks or kind == "scores",
        lists=lists,
    )


def _catalogue_scores(name: str, model: Any, split: Split, protocol: Protocol) -> CatalogueScores:
    """Return the scores by which a fitted model ranks the catalogue."""
    if hasattr(model, "scores_block"):
        return scores_from_blocks(name, model, split)
    scale = split.test.scale
    method, kind = _method_of(model)
    row_shape = (scale.n_ranks,) if kind == "probabilities" else ()

    def score(users: Any, items: Any) -> np.ndarray:
        values = _predictions(name, method, users, items, row_shape)
        return decide(values, protocol.ranking_decision, scale.values) if row_shape else values

    return scores_from_pairs(score, split)


def _method_of(model: Any) -> tuple[Callable[..., Any], str]:
    """Return the method that predicts test ratings, and the column of the outcome it fills.

    A recommender predicts ratings as far as its rating model does; without one it only ranks.
    """
    rates = getattr(model, "rating_", model)
    if hasattr(model, "predict_proba") and hasattr(rates, "predict_proba"):
        return model.predict_proba, "probabilities"
    if hasattr(model, "predict") and hasattr(rates, "predict"):
        return model.predict, "ratings"
    return model.scores, "scores"


def _top_lists(
    model: Any, split: Split, users: np.ndarray, items: np.ndarray, protocol: Protocol
) -> TopLists:
    """Return the first items of the ranked users, with the model's ``p_pick`` if needed."""
    known = split.train_and_given()
    own_items, p_pick = None, None
    if protocol.needs_p_pick:
        found = pick_lists(model, split, users, protocol.list_length)
        if found is not None:
            own_items, p_pick = found
    n_users = int((known.user_counts > 0).sum())
    return TopLists(users, items, known.item_counts, n_users, own_items, p_pick)


def _predictions(
    name: str,
    method: Callable[..., Any],
    users: Any,
    items: Any,
    row_shape: tuple[int, ...],
    **times: Any,
) -> np.ndarray:
    """Call a method of a model and check the shape and the numbers of what it returns."""
    values = np.asarray(method(users, items, **times), dtype=np.float64)
    shape = (len(users), *row_shape)
    if values.shape != shape:
        raise DataError(f"model {name!r} returned shape {values.shape} instead of {shape}")
    bad = int((~np.isfinite(values)).sum())
    if bad:
        raise DataError(f"model {name!r} returned {bad} predictions that are not finite numbers")
    return values


def _printed_decision(measure: Measure, outcome: Outcome, decision: str) -> str:
    """Return the decision as it appears in the result."""
    if measure.kind == "probability":
        return decision if measure.decision else "none"
    if measure.over_catalogue(outcome) and outcome.ranked_by_scores:
        return "point"
    return "point" if outcome.probabilities is None else decision


def _printed_candidates(measure: Measure, outcome: Outcome) -> str:
    """Return what a ranking metric ranks, as it appears in the result."""
    if measure.kind != "ranking":
        return ""
    return "catalogue" if measure.over_catalogue(outcome) else "rated"
