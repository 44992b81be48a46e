"""`tune_model`: choose the parameters of a rating model on inner splits.

The next setting to try is from a grid, random, or Optuna's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ParameterSampler

from ordrec.data import Ratings
from ordrec.data.ratings import as_ratings
from ordrec.errors import ArgumentError
from ordrec.evaluation.metrics.measures import as_losses, measure_from_name
from ordrec.evaluation.problems.base import none_applies
from ordrec.evaluation.problems.ratings import RatingsProblem, measurable_model
from ordrec.evaluation.run import Interrupted
from ordrec.evaluation.splits.base import Splitter
from ordrec.evaluation.splits.ratings import split_from_name
from ordrec.evaluation.tuning.spaces import Between, Space, default_space
from ordrec.runtime.progress import progress as showing
from ordrec.runtime.progress import report, work_clock

__all__ = ["METHODS", "Proposals", "TunedModel", "proposals_for", "tune_model"]

Progress = Callable[[int, int, str], None]

MOST_REPEATED = 100  # proposals that were tried before, until a space counts as exhausted


@dataclass(frozen=True)
class TunedModel:
    """The result of `tune_model`.

    Attributes
    ----------
    model : model
        Fitted to all ratings with the best parameters; unfitted with ``refit=False``.
    best_params : dict
        Those that were searched; empty if the defaults won.
    best_score, default_score : float
        Means of the metric over the inner test parts. The best of many is a little too good: for
        an honest number, evaluate the winner on ratings that had no part in the search.
    metric : str
    method : str
        "grid", "random" or "optuna".
    table : DataFrame
        One row per setting in the order they were tried, the defaults first: parameters, the
        score of each fold, their mean ``score``, ``seconds``, and the ``error`` of one that failed.
    """

    model: Any
    best_params: dict[str, Any]
    best_score: float
    default_score: float
    metric: str
    method: str
    table: pd.DataFrame


def tune_model(
    ratings: Ratings | pd.DataFrame,
    model: Any,
    space: Space | None = None,
    *,
    metric: str | None = None,
    split: str | Splitter = "kfold:3",
    n_trials: int = 20,
    seconds: float | None = None,
    method: Literal["auto", "grid", "random", "optuna"] = "auto",
    refit: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
    verbose: bool | None = None,
) -> TunedModel:
    """Search the parameters of a rating model on inner splits, and fit the winner to all ratings.

    Parameters
    ----------
    ratings : Ratings or DataFrame
        The training ratings; test ratings must not be among them.
    model : str or model
        A name for `ordrec.recommend.make_model`, or an unfitted model. Its parameters are tried
        first; of those that are searched by default, ones that differ from the class's defaults
        stay as they are.
    space : mapping of str to list or Between, optional
        The values to try for each parameter, as ``name__inner`` for those of a parameter. By
        default a few that matter, see `default_space`.
    metric : str, optional
        By default ``graded_ndcg@10`` for models that make lists, ``rmse`` for others.
    split : str or splitter
        The inner splits, as in `split_from_name`.
    n_trials : int
        How many settings are tried, the defaults included.
    seconds : float, optional
        A budget: no fit is started after it. The defaults are measured in any case.
    method : {"auto", "grid", "random", "optuna"}
        "auto" tries all settings if they are at most ``n_trials``; otherwise it takes Optuna if
        that is installed (``pip install 'ordrec[tune]'``), and random settings if not.
    refit : bool
        Whether the winner is fitted to all ratings.
    seed : int
        Of splits, draws, and the model if given by name.
    progress : callable, optional
        Called as ``progress(done, total, text)`` before each setting and at the end.
    verbose : bool, optional
        Whether progress is shown, see `ordrec.runtime.progress`; by default on a terminal.

    Returns
    -------
    TunedModel

    Raises
    ------
    Interrupted
        A KeyboardInterrupt that carries what was found until then, if anything.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(60, 40, n_ratings=1200, seed=0)
    >>> found = tune_model(ratings, "bias", {"user_damping": [1.0, 5.0, 15.0]})
    >>> len(found.table), found.best_score <= found.default_score
    (3, True)
    """
    ratings = as_ratings(ratings)
    name = getattr(model, "__name__", type(model).__name__)
    blank = measurable_model(name, model, seed)
    if not (hasattr(blank, "get_params") and hasattr(blank, "set_params")):
        raise ArgumentError(
            f"{type(blank).__name__} has no get_params and set_params, by which parameters are "
            "searched: derive it from sklearn.base.BaseEstimator"
        )
    if n_trials < 1:
        raise ArgumentError(f"n_trials must be at least 1, got {n_trials}")
    space = default_space(blank) if space is None else dict(space)
    known = blank.get_params()
    for name in space:
        if name not in known:
            raise ArgumentError(
                f"{type(blank).__name__} has no parameter {name!r}: choose from {', '.join(known)}"
            )
    metric = metric or ("graded_ndcg@10" if hasattr(blank, "scores_block") else "rmse")
    proposals = proposals_for(space, method, n_trials, seed)
    measure_from_name(metric)
    splitter = split_from_name(split, random_state=seed) if isinstance(split, str) else split
    problem = RatingsProblem(ratings, splitter, reseed=False).for_models([blank])
    search = _Search(blank, problem, metric, seconds, seed)
    try:
        with showing("tune_model", verbose):
            search.run({name: known[name] for name in space}, proposals, n_trials, progress)
            found = search.found(proposals.name)
            return replace(found, model=found.model.fit(ratings)) if refit else found
    except KeyboardInterrupt:
        if not search.settings:
            raise
        raise Interrupted(search.found(proposals.name)) from None


@dataclass
class _Search:
    """The settings that were tried on the same folds, and their losses."""

    blank: Any
    problem: RatingsProblem
    metric: str
    seconds: float | None
    seed: int
    settings: list[dict[str, Any]] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    def run(
        self,
        defaults: dict[str, Any],
        proposals: Proposals,
        n_trials: int,
        progress: Progress | None,
    ) -> None:
        """Try the defaults, and then what is proposed, until the budget is used up."""
        self.began = time.perf_counter()
        setting: dict[str, Any] | None = defaults
        while setting is not None and len(self.settings) < n_trials:
            report(len(self.settings), n_trials, self._news(), span=0.0)
            if progress is not None:
                progress(len(self.settings), n_trials, self._news())
            loss = self._try(setting)
            if loss is None:
                break
            if len(self.settings) > 1:
                proposals.tell(loss)
            setting = self._untried(proposals)
        report(n_trials, n_trials, "fitting the best to all ratings")
        if progress is not None:
            progress(n_trials, n_trials, "fitting the best to all ratings")

    def _untried(self, proposals: Proposals) -> dict[str, Any] | None:
        """Return the next setting that was not tried before; None if none is found."""
        for _ in range(MOST_REPEATED):
            setting = proposals.next()
            if setting is None or setting not in self.settings:
                return setting
            proposals.tell(np.inf)
        return None

    def _try(self, setting: dict[str, Any]) -> float | None:
        """Measure a setting; None if the budget is used up before all folds are."""
        is_default = not self.settings
        started = work_clock()
        scores: list[float] = []
        error = ""
        for fold in self.problem.folds:
            if not is_default and self._late():
                return None
            model = clone(self.blank).set_params(**setting)
            try:
                rows = self.problem.measurement(model, fold, [self.metric], self.seed).rows
            except Exception as raised:  # any exception of a setting: the others go on
                if is_default:
                    raise
                error = error or f"{type(raised).__name__}: {raised}"
                continue
            if not rows:
                raise none_applies([self.metric], [type(self.blank).__name__])
            scores.append(rows[0]["value"])
        score = float(np.mean(scores)) if not error else np.nan
        loss = float(as_losses(self.metric, score)) if np.isfinite(score) else np.inf
        of_folds = {f"fold {number + 1}": value for number, value in enumerate(scores)}
        self.settings.append(setting)
        self.losses.append(loss)
        self.rows.append(
            setting | of_folds | {"score": score, "seconds": work_clock() - started, "error": error}
        )
        return loss

    def _late(self) -> bool:
        return self.seconds is not None and time.perf_counter() - self.began >= self.seconds

    def _news(self) -> str:
        if not self.losses:
            return "the defaults"
        return f"best {self.metric} {self.score(int(np.argmin(self.losses))):.4f}"

    def score(self, number: int) -> float:
        """The mean of the metric for one of the settings."""
        return float(self.rows[number]["score"])

    def found(self, method: str) -> TunedModel:
        """What was found so far, with an unfitted model."""
        winner = int(np.argmin(self.losses))
        best = self.settings[winner] if winner else {}
        model = clone(self.blank).set_params(**best)
        table = pd.DataFrame(self.rows)
        return TunedModel(
            model, best, self.score(winner), self.score(0), self.metric, method, table
        )


METHODS = ("auto", "grid", "random", "optuna")
DRAWS_PER_TRIAL = 100  # of random settings, as some may have been tried before


class Proposals(Protocol):
    """Proposes settings, one after the other, and learns how good they are."""

    name: str

    def next(self) -> dict[str, Any] | None:
        """Return a setting, which may have been proposed before; None if there are no more."""
        ...

    def tell(self, loss: float) -> None:
        """Take in the loss of the last proposal, infinite if it failed or was tried before."""
        ...


def proposals_for(space: Space, method: str, n_trials: int, seed: int) -> Proposals:
    """Return the proposals of a method.

    Parameters
    ----------
    space : mapping
    method : {"auto", "grid", "random", "optuna"}
        "auto" is a grid if all of it can be tried, else Optuna if installed, else random.
    n_trials : int
    seed : int
    """
    if method not in METHODS:
        raise ArgumentError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    for name, values in space.items():
        if not isinstance(values, Between) and (isinstance(values, str) or not len(values)):
            raise ArgumentError(f"space: {name} must be a Between or a list of values")
    ranges = [name for name, values in space.items() if isinstance(values, Between)]
    if method == "grid" and ranges:
        raise ArgumentError(f"a grid needs lists of values: {ranges[0]} is a range")
    size = math.inf if ranges else len(ParameterGrid(dict(space)))
    if method == "grid" or (method == "auto" and size <= n_trials):
        return _Listed("grid", ParameterGrid(dict(space)))
    if method == "random" or (method == "auto" and not _has_optuna()):
        n_draws = int(min(size, DRAWS_PER_TRIAL * n_trials))
        return _Listed("random", ParameterSampler(dict(space), n_draws, random_state=seed))
    return _Optuna(space, seed)


class _Listed:
    """The settings of a grid, or scikit-learn's random ones: what is proposed is settled."""

    def __init__(self, name: str, settings: Iterable[dict[str, Any]]):
        self.name, self._rest = name, iter(settings)

    def next(self) -> dict[str, Any] | None:
        return next(self._rest, None)

    def tell(self, loss: float) -> None:
        """Nothing is learnt."""


class _Optuna:
    """Optuna's tree-structured Parzen estimator."""

    name = "optuna"

    def __init__(self, space: Space, seed: int):
        optuna = _optuna()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space = space
        self._distributions = {name: _distribution(values) for name, values in space.items()}
        self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))

    def next(self) -> dict[str, Any] | None:
        self._trial = self._study.ask(self._distributions)
        return {
            name: values.rounded(self._trial.params[name])
            if isinstance(values, Between)
            else values[self._trial.params[name]]
            for name, values in self._space.items()
        }

    def tell(self, loss: float) -> None:
        if math.isfinite(loss):
            self._study.tell(self._trial, loss)
        else:
            self._study.tell(self._trial, state=_optuna().trial.TrialState.FAIL)


def _distribution(values: Any) -> Any:
    """How Optuna calls these values; those of a list by their position, as they may be anything."""
    distributions = _optuna().distributions
    if not isinstance(values, Between):
        return distributions.CategoricalDistribution(list(range(len(values))))
    if values.whole:
        low, high = round(values.low), round(values.high)
        return distributions.IntDistribution(low, high, log=values.log)
    return distributions.FloatDistribution(values.low, values.high, log=values.log)


def _has_optuna() -> bool:
    from importlib.util import find_spec

    return find_spec("optuna") is not None


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ArgumentError(
            "optuna is not installed: pip install 'ordrec[tune]', or choose method random"
        ) from None
    return optuna
