"""`evaluate_scan`: measure a model on ratings of a folder that were held out of its fit."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from ordrec.data import Ratings
from ordrec.data.on_disk.held_out import HeldOut
from ordrec.data.on_disk.scan import ROWS, RatingsScan
from ordrec.errors import ArgumentError
from ordrec.evaluation.metrics.measures import LIST_METRICS
from ordrec.evaluation.result import EvaluationResult
from ordrec.evaluation.run import evaluate_predictions
from ordrec.rating.on_disk.predictions import predict_scan
from ordrec.recommend.on_disk import recommend_scan
from ordrec.runtime.files import make_folder
from ordrec.runtime.parallel import Engine

__all__ = ["evaluate_scan"]

RATING_METRICS = ("rmse", "mae", "mze")
LONGEST = 100  # places of a list that are measured, at most


def evaluate_scan(
    model: Any,
    scan: RatingsScan,
    out: str | Path,
    *,
    of: Literal["lists", "ratings"] = "lists",
    held_out: HeldOut | None = None,
    metrics: Iterable[str] | None = None,
    length: int = 10,
    rows: int = ROWS,
    engine: Engine | str | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> EvaluationResult:
    """Measure the lists, or the predictions, of a model for ratings that its fit has not seen.

    Users are folded in with the ratings that are not held out. The lists of all users, or the
    predictions of all held-out ratings, are written to files and measured by
    `evaluate_predictions`; in memory are what was held out and what is said of it, not the
    ratings.

    Parameters
    ----------
    model : fitted model
        By `fit_scan` with ``held_out``, which the model remembers.
    scan : RatingsScan
    out : path
        A folder for the lists and predictions. A call that was stopped goes on where it was.
    of : {"lists", "ratings"}
    held_out : HeldOut, optional
        By default what was held out when the model was fitted; a model that does not remember
        any is refused, as it may have seen everything.
    metrics : iterable of str, optional
        By default ``rmse``, ``mae`` and ``mze`` of ratings; of lists those of
        `evaluate_predictions`.
    length : int
        Of the lists, which metrics at shorter lengths look at, too.
    rows, engine, n_jobs
        See `recommend_scan`.
    **options
        Further arguments of `evaluate_predictions`.

    Examples
    --------
    >>> import tempfile
    >>> from ordrec import Ratings
    >>> from ordrec.datasets import synthetic_ratings
    >>> from ordrec.recommend import EASE, fit_scan
    >>> with tempfile.TemporaryDirectory() as place:
    ...     synthetic_ratings(60, 40, n_ratings=1200).to_partitions(f"{place}/ratings")
    ...     scan = Ratings.scan(f"{place}/ratings")
    ...     model = fit_scan(EASE(), scan, held_out=HeldOut(0.2))
    ...     result = evaluate_scan(model, scan, f"{place}/measured")
    >>> bool(result.summary().loc["EASE", "recall@10"] > 0.25)  # by chance 10 of 34
    True
    """
    if of not in ("lists", "ratings"):
        raise ArgumentError(f'of must be "lists" or "ratings", got {of!r}', parameter="of")
    if not 1 <= length <= LONGEST:
        raise ArgumentError(f"length must lie between 1 and {LONGEST}, got {length}")
    held = held_out or getattr(model, "held_out_", None)
    if held is None:
        raise ArgumentError(
            "nothing was held out when the model was fitted, so that it has seen all ratings: fit "
            "it again with held_out=",
            parameter="held_out",
        )
    place = make_folder(out)
    name, where = type(model).__name__, {"rows": rows, "engine": engine, "n_jobs": n_jobs}
    if of == "ratings":
        found = predict_scan(model, scan, held, place / "predictions", **where)  # type: ignore[arg-type]
        frame = pd.concat(found.frames(), ignore_index=True)
        test = frame[["user", "item", "actual"]].rename(columns={"actual": "rating"})
        said = frame.drop(columns="actual")
        chosen = RATING_METRICS if metrics is None else tuple(metrics)
    else:
        path = recommend_scan(
            model, scan, place / "lists.parquet", length, held_out=held, **where  # type: ignore[arg-type]
        )  # fmt: skip
        said = pd.read_parquet(path)[["user", "item", "place"]]
        parts = [held.parted(chunk)[1].to_frame() for chunk in scan.chunks(rows)]
        test = pd.concat(parts, ignore_index=True)
        test = test.drop(columns=["timestamp"], errors="ignore")
        chosen = tuple(LIST_METRICS) if metrics is None else tuple(metrics)
    tested = Ratings.from_frame(test, scale=None if scan.scale.only_picks else scan.scale)
    return evaluate_predictions({name: said}, tested, metrics=chosen, **options)
