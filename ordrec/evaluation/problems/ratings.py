"""`RatingsProblem`: ratings with a split; fit a model on a fold, let it predict, measure it."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

import joblib
import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation.defaults import CANDIDATES, DECISION, RANKING_USERS, SPLIT, TIMES
from ordrec.evaluation.manifest import ratings_checksum
from ordrec.evaluation.metrics.measures import (
    DEFAULT_METRICS,
    PICK_METRICS,
    ListMeasure,
    Measure,
    Outcome,
    UserSums,
    measure_from_name,
    register_measures,
)
from ordrec.evaluation.metrics.outcome import TopLists
from ordrec.evaluation.predictions import PredictedLists, Predictions
from ordrec.evaluation.problems.base import Key, Measurement, Problem, Row, seeded
from ordrec.evaluation.problems.catalogue import (
    CatalogueScores,
    affordable_users,
    catalogue_ranking,
    pick_lists,
    ranked_users,
    scores_from_blocks,
    scores_from_pairs,
)
from ordrec.evaluation.problems.example_users import example_users
from ordrec.evaluation.problems.propensities import propensities
from ordrec.evaluation.splits.base import Split, Splitter
from ordrec.evaluation.splits.own import OwnParts
from ordrec.evaluation.splits.ratings import KFold, PublishedFolds, split_from_name
from ordrec.features import SideEncoder
from ordrec.models.base import replacing_ratings
from ordrec.ordinal.decisions import decide
from ordrec.recommend.registry import make_model
from ordrec.runtime.parallel import one_blas_thread
from ordrec.runtime.progress import work_clock

__all__ = ["RatingsProblem", "measurable_model"]

KEPT_LENGTH = 20  # of the lists that are kept with predictions
MOST_GROUPS = 20  # of users, each of which has a table


@dataclass(frozen=True, eq=False)
class RatingsProblem(Problem):
    """Ratings with a split; models are rating models, ranking models, or their names.

    Parameters
    ----------
    ratings : Ratings
    splitter : str or Splitter
        As in `ordrec.evaluation.split_from_name`.
    decision, candidates, times, ranking_users, like, keep_predictions
        As in `ordrec.evaluation.evaluate`.
    cold_users : int, optional
        As in `ordrec.evaluation.evaluate`; by default all users are measured together only.
    reseed : bool
        Whether the seed of an experiment becomes the ``random_state`` of models that have one.
        Models that are given by name have it in any case.
    own_metrics : tuple of Measure
        Metrics of one's own, which are known by their names besides those of the library.
    groups : str, optional
        A column of the user table: users are also measured separately by its values.
    propensity : "popularity" or DataFrame, optional
        As in `ordrec.evaluation.evaluate`.
    """

    ratings: Ratings
    splitter: str | Splitter = SPLIT
    decision: str = DECISION
    candidates: Literal["catalogue", "rated"] = CANDIDATES
    times: Literal["unknown", "known"] = TIMES
    ranking_users: int | Literal["auto", "all"] = RANKING_USERS
    like: float | None = None
    cold_users: int | None = None
    keep_predictions: bool = False
    reseed: bool = True
    own_metrics: tuple[Measure, ...] = ()
    groups: str | None = None
    propensity: str | pd.DataFrame | None = None

    def __post_init__(self) -> None:
        choices = {
            "decision": ("auto", "mean", "median", "mode"),
            "candidates": ("catalogue", "rated"),
            "times": ("unknown", "known"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                *first, last = (f'"{word}"' for word in allowed)
                raise ArgumentError(
                    f"{name} must be {', '.join(first)} or {last}, got {getattr(self, name)!r}"
                )
        n_users = self.ranking_users
        if n_users not in ("auto", "all") and not (isinstance(n_users, int) and n_users > 0):
            raise ArgumentError(f'ranking_users must be "auto", "all" or a number, got {n_users!r}')
        if isinstance(self.propensity, str) and self.propensity != "popularity":
            raise ArgumentError(
                f'propensity must be "popularity" or a data frame, got {self.propensity!r}'
            )
        if self.groups is not None:
            table = self.ratings.user_table
            if table is None or self.groups not in table:
                has = "none" if table is None else ", ".join(map(str, table.columns))
                raise ArgumentError(
                    f"groups must be a column of the table of users (it has {has}), got "
                    f"{self.groups!r}"
                )
            if table[self.groups].nunique() > MOST_GROUPS:
                raise ArgumentError(
                    f"groups must be a column of at most {MOST_GROUPS} values, {self.groups!r} has "
                    f"{table[self.groups].nunique()}: put them into ranges first"
                )
        if self.cold_users is not None and self.cold_users < 0:
            raise ArgumentError(f"cold_users must not be negative, got {self.cold_users}")
        if self.like is not None and not self.like <= self.ratings.scale.high:
            raise ArgumentError(
                f"like must not be above the highest rating, {self.ratings.scale.high:g}, "
                f"got {self.like}"
            )

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the ratings."""
        return self.ratings.name

    @property
    def split(self) -> str:
        """The name of the split, without ``random_state``."""
        return self._splitter.name

    @property
    def folds(self) -> list[str]:
        """The names of published folds; numbers from 1 for any other split."""
        splitter = self._splitter
        if isinstance(splitter, PublishedFolds):
            return list(splitter.names)
        return [str(number + 1) for number in range(splitter.n_splits)]

    @property
    def default_metrics(self) -> tuple[str, ...]:
        """The default metrics of `ordrec.evaluation.evaluate`."""
        return DEFAULT_METRICS if self.ratings.has_ratings else PICK_METRICS

    @property
    def _splitter(self) -> Splitter:
        if isinstance(self.splitter, str):
            return split_from_name(self.splitter)
        return self.splitter

    def checksum(self) -> str:
        """Return a hash of the ratings with their side tables, the split and the options."""
        ratings = self.ratings
        return joblib.hash(
            [
                ratings_checksum(ratings),
                ratings.user_table,
                ratings.item_table,
                dict(ratings.folds),
                [self._splitter, self.decision, self.candidates, self.times],
                [self.ranking_users, self.like, self.cold_users],
                [self.keep_predictions, self.reseed, self.groups, self.propensity],
                [(measure.name, _code_of(measure)) for measure in self.own_metrics],
            ]
        )

    def about(self) -> dict[str, Any]:
        """Return a checksum of the ratings alone, their scale, and how models are measured."""
        known = "the ratings have none"
        if self.ratings.timestamps is not None:
            known = f"those of the test ratings are {self.times} to the models"
        liked = "top fifth of the scale" if self.like is None else f"from {self.like:g} on"
        about: dict[str, Any] = {
            "data": {self.name: ratings_checksum(self.ratings)},
            "scale": repr(self.ratings.scale),
            "split": repr(self._splitter),
            "decision": self.decision,
            "liked": liked,
            "times": known,
        }
        if self.propensity is not None:
            about["propensities"] = (
                "by item popularity in training" if isinstance(self.propensity, str) else "given"
            )
        if self.cold_users is not None:
            about["cold users"] = f"at most {self.cold_users} training ratings"
        return about

    def for_models(self, models: Iterable[Any]) -> RatingsProblem:
        """Return the problem with a number of users that are ranked for, the same for all models.

        "auto" becomes all users if every model scores blocks of users, or if there are few enough
        pairs of a user and an item to ask for each.
        """
        if self.ranking_users != "auto":
            return self
        if all(map(_scores_blocks, models)):
            return replace(self, ranking_users="all")
        return replace(self, ranking_users=affordable_users(self.ratings))

    def training(self, fold: str, n_folds: int, seed: int) -> Problem:
        """Return cross-validation of the training ratings, or their own validation part."""
        splitter = self._splitter
        chosen_on = None
        if isinstance(splitter, OwnParts):
            chosen_on = splitter.choosing(self._position(fold))
        return replace(
            self,
            ratings=self.ratings if chosen_on else self._fold(fold).train_and_given(),
            splitter=chosen_on or KFold(n_folds, random_state=seed),
            cold_users=None,
            keep_predictions=False,
        )

    def measure(self, model: Any, fold: str, metrics: Sequence[str], seed: int) -> list[Row]:
        """Fit a copy of the model and return its values."""
        with one_blas_thread():
            return self.measurement(model, fold, metrics, seed).rows

    def measurement(
        self, model: Any, fold: str, metrics: Sequence[str], seed: int, name: str = "model"
    ) -> Measurement:
        """Fit a copy of the model on the training part and measure it on the test part."""
        register_measures(self.own_metrics)  # this may be another process
        fresh = seeded(model, seed) if self.reseed else copy.deepcopy(model)
        fresh = _told_the_future(measurable_model(name, fresh, seed), self._splitter)
        measures = [measure_from_name(metric, like=self.like) for metric in dict.fromkeys(metrics)]
        if not measures:
            raise ArgumentError("metrics must hold at least one name")
        settled = self.for_models([fresh])
        return _FoldRun(name, fresh, settled, settled._fold(fold), measures, seed).measurement()

    def _fold(self, fold: str) -> Split:
        position = self._position(fold)
        # The models of one fold come one after the other, so only the last fold is remembered.
        last = self.__dict__.get("_last_fold")
        if last is None or last[0] != position:
            folds = self._splitter.split(self.ratings)
            last = position, next(islice(folds, position, None))
            self.__dict__["_last_fold"] = last
        return last[1]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_last_fold"}


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
        remedy = ""
        if type(model).__module__.partition(".")[0] == "implicit":
            remedy = ": wrap it, as in ordrec.peers.ImplicitModel(model)"
        raise ArgumentError(
            f"model {name!r} has neither predict(users, items) nor scores(users, items){remedy}"
        )
    return model


def _code_of(measure: Measure) -> Any:
    """What identifies the function of a metric of one's own: its source, or its compiled code."""
    function = getattr(measure, "function", None) or getattr(measure.metric, "function", None)
    try:
        return inspect.getsource(function)  # type: ignore[arg-type]
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        return repr(function) if code is None else (code.co_code, repr(code.co_consts))


def _told_the_future(model: Any, splitter: Any) -> Any:
    """The model, told what its lists are for, if it asks and nobody has said so."""
    if getattr(model, "future", None) == "auto" and hasattr(model, "set_params"):
        model.set_params(future=getattr(splitter, "future", "random"))
    return model


def _scores_blocks(model: Any) -> bool:
    """Whether a model scores the whole catalogue for blocks of users; or none of it."""
    if isinstance(model, Predictions):
        return True
    try:
        return hasattr(measurable_model("model", model, 0), "scores_block")
    except ArgumentError:  # it fails when it is measured
        return False


# ---- one model on one fold -----------------------------------------------------------------------


@dataclass
class _FoldRun:
    """One model on one fold: fitting, predicting, measuring."""

    name: str
    model: Any
    problem: RatingsProblem
    split: Split
    measures: Sequence[Measure]
    seed: int

    def measurement(self) -> Measurement:
        """Fit the model and return what was measured."""
        split, problem = self.split, self.problem
        self.measures = [measure for measure in self.measures if self._can_have(measure)]
        if not self.measures:
            return Measurement()
        start = work_clock()
        given = self._fit()
        fitted = work_clock()
        outcome = self._outcome()
        if problem.propensity is not None:
            outcome = replace(outcome, propensities=propensities(split, problem.propensity))
        predicted = work_clock()
        about = {
            "n_test": split.test.n_ratings,
            "n_cold_users": split.n_cold_users,
            "n_cold_items": split.n_cold_items,
            "n_cold_ratings": split.n_cold_ratings,
            "given": given,
            "fit_seconds": fitted - start,
            "predict_seconds": predicted - fitted,
        }
        rows: list[Row] = []
        sums: dict[Key, UserSums] = {}
        for users, part in self._groups(outcome).items():
            for measure in self.measures:
                if not measure.applies_to(part):
                    continue
                decision = measure.decision if problem.decision == "auto" else problem.decision
                for found in measure.values(part, decision):
                    rows.append(
                        about
                        | {"metric": measure.name, "average": found.average, "users": users}
                        | {"decision": _printed_decision(measure, part, decision)}
                        | {"candidates": _printed_candidates(measure, part)}
                        | {"value": float(found.value), "n": int(found.n)}
                    )
                    if found.sums is not None:
                        sums[users, measure.name, found.average] = found.sums
        if not problem.keep_predictions:
            return Measurement(rows, sums)
        p, expected = outcome.probabilities, outcome.ratings
        if p is not None:
            expected = p @ split.test.scale.values
        examples = []
        if getattr(self.model, "for_lists", True):
            examples = example_users(split, expected, self._catalogue_scores())
        return Measurement(rows, sums, _kept(outcome, expected), examples)

    def _can_have(self, measure: Measure) -> bool:
        """Whether predictions made elsewhere have what a metric needs: pairs, or the catalogue."""
        of_lists = isinstance(measure, ListMeasure)
        if of_lists or (measure.placed is not None and self.problem.candidates == "catalogue"):
            return getattr(self.model, "for_lists", True)
        return getattr(self.model, "for_pairs", True)

    def _fit(self) -> str:
        """Fit the model; return how the ratings given for fold-in reached it."""
        split, model = self.split, self.model
        folds_in = split.given is not None and hasattr(model, "fold_in")
        model.fit(split.train if folds_in else split.train_and_given())
        if folds_in:
            with replacing_ratings():
                self.model = model.fold_in(split.given)
            return "folded in"
        return "" if split.given is None else "in training"

    def _groups(self, outcome: Outcome) -> dict[str, Outcome]:
        """Return the outcome for all users, and for groups of them: by a column, warm and cold."""
        groups = {"all": outcome}
        column = self.problem.groups
        if column is not None:
            of_user = self.split.test.user_table[column]  # type: ignore[index]
            of_rating = of_user.to_numpy()[outcome.test.users]
            for value in sorted(of_user.dropna().unique().tolist(), key=str):
                mine = of_rating == value
                if mine.any():
                    groups[f"{column}={value}"] = outcome.select(mine)
        if self.problem.cold_users is None:
            return groups
        known = self.split.train_and_given().user_counts[outcome.test.users]
        cold = known <= self.problem.cold_users
        if cold.any():
            if not cold.all():
                groups["warm"] = outcome.select(~cold)
            groups["cold"] = outcome.select(cold)
        return groups

    def _outcome(self) -> Outcome:
        """Return the predictions for the test part and, if needed, places in the catalogue."""
        test, problem = self.split.test, self.problem
        users, items = test.user_ids.take(test.users), test.item_ids.take(test.items)
        if not getattr(self.model, "for_pairs", True):
            return self._ranked({"scores": np.zeros(test.n_ratings)}, by_scores=True)
        method, kind = _method_of(self.model)
        tells = problem.times == "known" and test.timestamps is not None
        takes = "timestamps" in inspect.signature(method).parameters
        times = {"timestamps": test.timestamps} if tells and takes else {}
        predictions = {kind: self._predictions(method, kind, users, items, **times)}
        return self._ranked(
            predictions, by_scores=kind == "scores" or hasattr(self.model, "scores_block")
        )

    def _ranked(self, predictions: dict[str, np.ndarray], *, by_scores: bool) -> Outcome:
        """Return the outcome with places and lists, as far as the metrics need them."""
        test, problem = self.split.test, self.problem
        list_measures = [m for m in self.measures if isinstance(m, ListMeasure)]
        needs_places = list_measures or any(m.placed is not None for m in self.measures)
        if problem.candidates != "catalogue" or not needs_places:
            return Outcome(test, **predictions)  # type: ignore[arg-type]
        assert problem.ranking_users != "auto"
        scores = self._catalogue_scores()
        ranked = ranked_users(self.split, problem.ranking_users, self.seed)
        list_length = max((m.list_length for m in list_measures), default=0)
        list_length = max(list_length, KEPT_LENGTH if problem.keep_predictions else 0)
        ranking = catalogue_ranking(scores, self.split, ranked, list_length=list_length)
        lists = None
        if list_length:
            needs_p_pick = any(m.needs_p_pick for m in list_measures)
            lists = self._top_lists(ranked, ranking.items, list_length if needs_p_pick else 0)
        return Outcome(
            test,
            **predictions,  # type: ignore[arg-type]
            places=ranking.places,
            ranked_by_scores=by_scores,
            lists=lists,
            cold_places=ranking.cold_places if ranking.cold_places.any() else None,
        )

    def _catalogue_scores(self) -> CatalogueScores:
        """Return the scores by which the fitted model ranks the catalogue."""
        if isinstance(self.model, PredictedLists):
            return self.model.catalogue_scores(self.split)
        if hasattr(self.model, "scores_block"):
            return scores_from_blocks(self.name, self.model, self.split)
        method, kind = _method_of(self.model)
        decision = "mean" if self.problem.decision == "auto" else self.problem.decision
        scale_values = self.split.test.scale.values

        def score(users: Any, items: Any) -> np.ndarray:
            values = self._predictions(method, kind, users, items)
            return decide(values, decision, scale_values) if kind == "probabilities" else values

        n_values = scale_values.size if kind == "probabilities" else 1
        return scores_from_pairs(score, self.split, n_values)

    def _top_lists(self, users: np.ndarray, items: np.ndarray, n_with_p_pick: int) -> TopLists:
        """Return the first items of the ranked users, with the model's ``p_pick`` if needed."""
        known = self.split.train_and_given()
        own_items, p_pick = None, None
        if n_with_p_pick:
            found = pick_lists(self.model, self.split, users, n_with_p_pick)
            if found is not None:
                own_items, p_pick = found
        n_users = int((known.user_counts > 0).sum())
        features = None
        if any(isinstance(m, ListMeasure) and m.measured == "diversity" for m in self.measures):
            features = _item_features(known)
        return TopLists(users, items, known.item_counts, n_users, own_items, p_pick, features)

    def _predictions(
        self, method: Callable[..., Any], kind: str, users: Any, items: Any, **times: Any
    ) -> np.ndarray:
        """Call a method of the model; check the shape and the numbers of what it returns."""
        values = np.asarray(method(users, items, **times), dtype=np.float64)
        n_ranks = self.split.test.scale.n_ranks
        shape = (len(users), n_ranks) if kind == "probabilities" else (len(users),)
        if values.shape != shape:
            raise DataError(f"model {self.name!r} returned shape {values.shape} instead of {shape}")
        bad = int((~np.isfinite(values)).sum())
        if bad:
            raise DataError(
                f"model {self.name!r} returned {bad} predictions that are not finite numbers"
            )
        return values


def _item_features(known: Ratings) -> np.ndarray | None:
    """Return the side features of the items as numbers; None if there are none."""
    if known.item_table is None:
        return None
    features = SideEncoder().fit(known.item_table).matrix(known.item_table)
    return features if features.any() else None


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


def _kept(outcome: Outcome, expected: np.ndarray | None) -> dict[str, np.ndarray]:
    """Return the test ratings, by codes, and all that was predicted for them."""
    test = outcome.test
    columns = {
        "users": test.users,
        "items": test.items,
        "levels": test.levels,
        "rating": test.values,
        "prediction": expected,
        "score": outcome.scores if np.any(outcome.scores) else None,
        "place": outcome.places,
        "p": outcome.probabilities,
        "scale": test.scale.values,
    }
    if outcome.lists is not None:
        columns |= {"list_users": outcome.lists.users, "list_items": outcome.lists.items}
    return {name: column for name, column in columns.items() if column is not None}


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
