"""Measure how well documents are ranked, with intervals over queries and paired tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import joblib
import numpy as np
import pandas as pd
from sklearn.base import clone

from ordrec.documents.judgements import Judgements
from ordrec.documents.peers import make_ranker
from ordrec.documents.ranker import RelevanceRanker
from ordrec.errors import ArgumentError, DataError, OrdrecError
from ordrec.evaluation.manifest import circumstances
from ordrec.evaluation.metrics.outcome import UserSums
from ordrec.evaluation.problems.base import Measurement, result_row, timed
from ordrec.evaluation.problems.queries import query_measure
from ordrec.evaluation.result import EvaluationResult
from ordrec.evaluation.run import Interrupted
from ordrec.evaluation.significance.against_best import against_best
from ordrec.evaluation.significance.rank_tests import holm_against
from ordrec.runtime.progress import progress as showing
from ordrec.runtime.progress import report

__all__ = ["METRICS", "RankingResult", "evaluate_ranking"]

METRICS = ("ndcg@10", "map", "err@20", "mrr", "p@5")
FAILURES = ["data", "model", "split", "fold", "seed", "error"]


@dataclass(frozen=True, eq=False, repr=False)
class RankingResult(EvaluationResult):
    """What `evaluate_ranking` measured: an `EvaluationResult` of queries in place of users.

    Attributes
    ----------
    queries : DataFrame
        ``model query fold metric value``, one row each.
    rankings : DataFrame
        ``model query document score rank grade``, in the order that was measured; one model of
        it is what `ordrec.documents.trec.write_run` takes.
    """

    unit: ClassVar[str] = "queries"
    subject: ClassVar[str] = "Rankers of documents"
    reported: ClassVar[tuple[str, ...]] = ("macro",)

    queries: pd.DataFrame = field(default_factory=pd.DataFrame)
    rankings: pd.DataFrame = field(default_factory=pd.DataFrame)

    def per_query(self, metric: str) -> pd.DataFrame:
        """Return the values of a metric, one row per query and one column per model."""
        self._chosen([metric])
        chosen = self.queries[self.queries["metric"] == metric]
        table = chosen.pivot(index="query", columns="model", values="value")
        return table[list(chosen["model"].unique())].rename_axis(columns=None)

    def against(self, reference: str, metric: str | None = None) -> pd.DataFrame:
        """Compare every ranker with one, over the queries.

        Parameters
        ----------
        reference : str
            The name of a ranker.
        metric : str, optional
            The first by default.

        Returns
        -------
        DataFrame
            ``difference effect p adjusted_p``: the mean difference to the reference, that over
            its standard deviation, and signed-rank tests, adjusted by Holm's method.
        """
        return holm_against(self.per_query(metric or next(iter(self.averages()))), reference)

    def caption(self, average: str = "macro", users: str = "all") -> str:
        """Return a text about the table: data, folds, queries, averages."""
        if self.frame.empty:
            return f"{self.split}: nothing could be measured."
        folds = self.frame.drop_duplicates("fold")
        return (
            f"{self.frame['data'].iloc[0]}, {self.split}, {len(folds)} "
            f"fold{'s' if len(folds) > 1 else ''}, {int(folds['n_test'].sum())} documents of "
            f"{int(folds['n'].sum())} queries. Means over queries, then over folds; a query "
            f"without relevant documents counts 0. NDCG: {self.manifest['ndcg']}."
        )

    @property
    def _describes_one_evaluation(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<RankingResult {self.caption()}\n{self.summary()}>"


def evaluate_ranking(
    rankers: Any,
    judgements: Any,
    *,
    metrics: Iterable[str] = METRICS,
    folds: int = 5,
    discount: Literal["auto", "log2", "letor"] = "auto",
    gain: Literal["exponential", "linear"] = "exponential",
    n_resamples: int = 2000,
    seed: int = 0,
    verbose: bool | None = None,
) -> RankingResult:
    """Measure rankers, or scores, on judged documents.

    Parameters
    ----------
    rankers : ranker, scores, name, list of names, or mapping of names to these
        * an unfitted ranker with ``fit(X, y, queries)`` and ``scores(X, queries)``, or a name for
          `make_ranker`: fitted on the other folds, and measured on the queries held out;
        * a fitted one: measured as it is;
        * an array with a score for each judgement, or a DataFrame ``query document score`` (a
          run): a judged document that it lacks comes last.
    judgements : DataFrame, Letor, Ohsumed or Judgements
        A frame has columns ``query``, ``document`` and ``grade``, and others that describe the
        documents, as `Judgements.from_frame` reads them. Grade 0 (and below) is not relevant; if
        no document has it, the lowest grade counts as 0.
    metrics : iterable of str
        ``ndcg@k``, ``map``, ``err@k``, ``mrr``, ``p@k``, ``recall@k``.
    folds : int
        Queries are divided into so many parts, never the documents of one query; published folds
        are used where the data has them. Topics, whose models know their own queries only, are
        divided by documents.
    discount, gain : str
        Of NDCG, see `ordrec.evaluation.ndcg`; by default LETOR's discount for LETOR's files.
        trec_eval's NDCG has "log2" and "linear".
    n_resamples : int
        Number of draws of queries for intervals and tests; 0 for none.
    seed : int
        Of the folds and the draws.
    verbose : bool, optional
        Whether progress is shown; by default on a terminal.

    Returns
    -------
    RankingResult

    Examples
    --------
    >>> frame = pd.DataFrame({"query": ["a", "a", "b", "b"], "document": [1, 2, 3, 4],
    ...                       "grade": [2, 0, 0, 1]})
    >>> result = evaluate_ranking([0.9, 0.1, 0.8, 0.3], frame, metrics=["mrr"])
    >>> result.summary()["mrr"].tolist()
    [0.75]
    """
    judged = Judgements.of(judgements)
    named = _named(rankers)
    metrics = list(dict.fromkeys(metrics))
    if discount == "auto":
        discount = judged.discount  # type: ignore[assignment]
    relevance = _relevance(judged.grades)
    options = {"discount": discount, "gain": gain, "highest": float(relevance.max())}
    measures = {metric: query_measure(metric, **options) for metric in metrics}
    split, parts = _folds(judged, named, folds, seed)
    cells = [(name, number) for number in range(len(parts)) for name in named]
    work = _Work(judged, relevance, measures, split, parts, seed)
    with showing("evaluate", verbose):
        try:
            for done, (name, number) in enumerate(cells):
                report(done, len(cells), f"{name}, fold {number + 1}")
                work.measure(name, named[name], number)
            report(len(cells), len(cells), "done")
        except KeyboardInterrupt:
            if not work.rows:
                raise
            raise Interrupted(work.result(named, 0, options)) from None
    return work.result(named, n_resamples, options)


class _Work:
    """What has been measured so far."""

    def __init__(
        self,
        judged: Judgements,
        relevance: np.ndarray,
        measures: Mapping[str, Any],
        split: str,
        parts: list[tuple[np.ndarray, np.ndarray]],
        seed: int,
    ):
        self.judged, self.relevance, self.measures = judged, relevance, measures
        self.split, self.parts, self.seed = split, parts, seed
        self.codes = pd.factorize(judged.queries)[0]
        self.names = pd.unique(pd.Series(judged.queries)).tolist()
        self.rows: list[dict[str, Any]] = []
        self.failed: list[dict[str, Any]] = []
        self.measured: dict[str, list[Measurement]] = {}
        self.queries: list[pd.DataFrame] = []
        self.rankings: list[pd.DataFrame] = []

    def measure(self, name: str, ranker: Any, number: int) -> None:
        """Measure a ranker on a fold, or keep its error."""
        train, test = self.parts[number]
        about = {"data": self.judged.name, "model": name, "split": self.split,
                 "fold": str(number + 1), "seed": self.seed}  # fmt: skip
        found = self.measured.setdefault(name, [])
        try:
            scores, fit_seconds, predict_seconds = _scored(ranker, self.judged, train, test)
        except (OrdrecError, ValueError, ArithmeticError) as error:
            self.failed.append(about | {"error": f"{type(error).__name__}: {error}"})
            found.append(Measurement(error=str(error)))
            return
        codes = self.codes[test]
        present = np.unique(codes)
        sums = {}
        for metric, measure in self.measures.items():
            values = measure(self.relevance[test], scores, codes)
            row = result_row(metric, "macro", "score", float(values.mean()), present.size)
            self.rows.append(
                about
                | {"n_test": test.size, "fit_seconds": fit_seconds}
                | {"predict_seconds": predict_seconds, "users": "all"}
                | row
            )
            sums["all", metric, "macro"] = UserSums(present, values, np.ones(present.size))
            self.queries.append(
                pd.DataFrame({"model": name, "query": [self.names[code] for code in present],
                              "fold": about["fold"], "metric": metric, "value": values})
            )  # fmt: skip
        found.append(Measurement(sums=sums))
        self.rankings.append(self._ranking(name, test, scores))

    def _ranking(self, name: str, test: np.ndarray, scores: np.ndarray) -> pd.DataFrame:
        from ordrec.evaluation.metrics import ranking
        from ordrec.evaluation.metrics.averaging import segments

        order, start = segments(self.codes[test], test.size)
        best_first = order[ranking.best_first(scores[order], start)]
        rows = test[best_first]
        return pd.DataFrame(
            {
                "model": name,
                "query": self.judged.queries[rows],
                "document": self.judged.documents[rows],
                "score": scores[best_first],
                "rank": ranking.ranks_in(start).astype(np.int64),
                "grade": self.judged.grades[rows],
            }
        )

    def result(
        self, named: Mapping[str, Any], n_resamples: int, options: Mapping[str, Any]
    ) -> RankingResult:
        """Return the result of what has been measured so far."""
        whole = {name: each for name, each in self.measured.items() if each}
        return RankingResult(
            pd.DataFrame(self.rows),
            pd.DataFrame(self.failed, columns=FAILURES),
            circumstances()
            | {
                "models": {name: _described(ranker) for name, ranker in named.items()},
                "data": {self.judged.name: joblib.hash([self.judged.X, self.judged.grades])},
                "splits": {self.judged.name: self.split},
                "seeds": [self.seed],
                "ndcg": f"{options['gain']} gain, discount {options['discount']}",
            },
            against_best(whole, n_resamples=n_resamples, seed=self.seed),
            queries=pd.concat(self.queries, ignore_index=True) if self.queries else pd.DataFrame(),
            rankings=(
                pd.concat(self.rankings, ignore_index=True) if self.rankings else pd.DataFrame()
            ),
        )


def _named(rankers: Any) -> dict[str, Any]:
    """Rankers and scores by name."""
    if isinstance(rankers, str):
        rankers = [rankers]
    if isinstance(rankers, Mapping):
        named = dict(rankers)
    elif isinstance(rankers, list | tuple) and all(isinstance(each, str) for each in rankers):
        named = {name: name for name in rankers}
    elif hasattr(rankers, "scores"):
        named = {type(rankers).__name__: rankers}
    else:
        named = {"scores": rankers}
    if not named:
        raise ArgumentError("there is nothing to measure: name at least one ranker")
    return {
        str(name): make_ranker(each) if isinstance(each, str) else each
        for name, each in named.items()
    }


def _relevance(grades: np.ndarray) -> np.ndarray:
    lowest = grades.min()
    return np.maximum(grades - max(lowest, 0), 0).astype(np.float64)


def _is_learnt(ranker: Any) -> bool:
    fitted = [name for name in vars(ranker) if name.endswith("_") and not name.startswith("_")]
    return not fitted


def _folds(
    judged: Judgements, named: Mapping[str, Any], n_folds: int, seed: int
) -> tuple[str, list[tuple[np.ndarray, np.ndarray]]]:
    """How the folds are called, and the rows to train and to test on."""
    every = np.arange(len(judged))
    if not any(hasattr(ranker, "scores") and _is_learnt(ranker) for ranker in named.values()):
        return "all queries", [(every[:0], every)]
    if judged.X is None:
        raise DataError(
            f"{judged.name}: has grades only, and a ranker needs texts or features of documents"
        )
    if judged.folds:
        return "published folds", list(judged.folds)
    if n_folds < 2:
        raise ArgumentError(f"folds must be at least 2, got {n_folds}")
    rng = np.random.default_rng(seed)
    codes, names = pd.factorize(judged.queries)
    if any(_knows_topics_only(ranker, judged) for ranker in named.values()):
        part = np.empty(codes.size, dtype=np.int64)
        for code in range(len(names)):
            rows = np.flatnonzero(codes == code)
            order = rows[np.lexsort((rng.random(rows.size), judged.grades[rows]))]
            part[order] = np.arange(rows.size) % n_folds
        split = f"{n_folds} folds by document"
    else:
        if len(names) < 2:
            raise DataError(f"{judged.name}: has one query only, and none can be held out")
        n_folds = min(n_folds, len(names))
        part = (rng.permutation(len(names)) % n_folds)[codes]
        split = f"{n_folds} folds by query"
    numbers = [number for number in range(n_folds) if (part == number).any()]
    return split, [(every[part != number], every[part == number]) for number in numbers]


def _knows_topics_only(ranker: Any, judged: Judgements) -> bool:
    return isinstance(ranker, RelevanceRanker) and ranker.recognised(judged) == "topics"


def _scored(
    ranker: Any, judged: Judgements, train: np.ndarray, test: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """Scores of the test rows, seconds to fit and to score."""
    if not hasattr(ranker, "scores"):
        return _given_scores(ranker, judged)[test], 0.0, 0.0
    fit_seconds = 0.0
    if _is_learnt(ranker):
        own = clone(ranker)
        X, y, queries = judged.rows(train), judged.grades[train], judged.queries[train]
        ranker, fit_seconds = timed(lambda: own.fit(X, y, queries))
    scores, seconds = timed(lambda: ranker.scores(judged.rows(test), judged.queries[test]))
    return np.asarray(scores, dtype=np.float64), fit_seconds, seconds


def _given_scores(given: Any, judged: Judgements) -> np.ndarray:
    """A score for each judgement; documents that a run lacks have the lowest."""
    if not isinstance(given, pd.DataFrame):
        scores = np.asarray(given, dtype=np.float64)
        if scores.shape != (len(judged),):
            raise DataError(f"{scores.size} scores for {len(judged)} judgements: pass one for each")
        return scores
    for column in ("query", "document", "score"):
        if column not in given:
            raise DataError(f"the run has no column {column!r}")
    if given.duplicated(["query", "document"]).any():
        raise DataError("the run lists a document twice for a query")
    by = "rank" if "rank" in given else "score"
    key = pd.MultiIndex.from_arrays([given["query"].astype(str), given["document"].astype(str)])
    values = pd.Series(given[by].to_numpy(dtype=np.float64) * (-1 if by == "rank" else 1), key)
    wanted = pd.MultiIndex.from_arrays(
        [pd.Series(judged.queries).astype(str), pd.Series(judged.documents).astype(str)]
    )
    found = values.reindex(wanted).to_numpy()
    if np.isnan(found).all():
        raise DataError("the run has none of the judged documents: look at the names of both")
    return np.where(np.isnan(found), np.nanmin(found) - 1.0, found)


def _described(ranker: Any) -> str:
    return " ".join(repr(ranker).split()) if hasattr(ranker, "scores") else "scores as given"
