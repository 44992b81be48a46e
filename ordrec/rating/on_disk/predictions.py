"""Predictions for all users of a scan, by a model that was fitted to some of them.

Users are added by `fold_in`, which needs only the model and their own ratings. Users can
therefore be processed in chunks and the parts of the scan in parallel; each part's predictions
are one file, written atomically. Parts finished before an interruption are not computed again.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.data.columns import as_pandas
from ordrec.data.groups import Groups
from ordrec.data.on_disk.held_out import HeldOut
from ordrec.data.on_disk.partitions import parquet_engine
from ordrec.data.on_disk.scan import ROWS, RatingsScan
from ordrec.data.times import seconds_of
from ordrec.errors import ArgumentError, OrdrecWarning, StorageError, callers_level
from ordrec.models.base import codes_of, replacing_ratings
from ordrec.models.protocols import FoldInModel, ProbabilityModel
from ordrec.runtime.files import check_folder_visible, replace_file
from ordrec.runtime.parallel import Engine, run
from ordrec.storage.parts import PartFolder, checksum, model_checksum

__all__ = ["ScanPredictions", "predict_scan"]

FORMAT = "ordrec predictions"
VERSION = 1
MANIFEST = "_predictions.json"


@dataclass(frozen=True)
class ScanPredictions:
    """Predictions on disk: one parquet file per part of the scan.

    Attributes
    ----------
    path : Path
    n_pairs : int
        Number of predictions.
    """

    path: Path
    n_pairs: int

    def frames(self) -> Iterator[pd.DataFrame]:
        """Yield one frame per part: user, item, rating, expected, ``p_...`` and actual if held out.

        ``rating`` is the model's decision, ``expected`` the mean of the distribution,
        ``p_1`` and so on are the probabilities of the scale's values, for models that have them.
        """
        _, parquet = parquet_engine(self.path)
        for file in sorted(self.path.glob("part-*.parquet")):
            yield parquet.ParquetFile(file).read().to_pandas()


def predict_scan(
    model: FoldInModel,
    scan: RatingsScan,
    pairs: HeldOut | Any,
    out: str | Path,
    *,
    rows: int = ROWS,
    engine: Engine | str | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> ScanPredictions:
    """Fold in all users of a scan and write predictions for them.

    Parameters
    ----------
    model : FoldInModel
        Fitted, for example on ``scan.sample_users(50_000)``. `OrdinalFactors` takes a few
        microseconds per rating, `RatingPredictor` some ten milliseconds per user. A `Recommender`
        predicts by its rating model.
    scan : RatingsScan
    pairs : HeldOut or frame with the columns user and item
        Ratings to leave out and predict, or pairs to predict from all ratings. A column
        ``timestamp`` says for which times, in seconds since 1970, to models that use times.
    out : str or Path
        A new folder, or one of an interrupted call with the same arguments: finished parts
        are kept. On a cluster, all workers need access to it and to the folder of the scan.
    rows : int
        Number of ratings that each worker holds in memory, see `RatingsScan.chunks`.
    engine, n_jobs, progress
        See `ordrec.runtime.parallel.run`; a task is a part.

    Warns
    -----
    UserWarning
        If some of the pairs belong to users who are not in the scan, if the scan has items that
        the model does not know: users are folded in without their ratings of these, and if the
        model was fitted to ratings that it is to predict.

    Examples
    --------
    >>> import tempfile
    >>> from ordrec.datasets import synthetic_ratings
    >>> from ordrec.recommend import OrdinalFactors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     synthetic_ratings(60, 40, n_ratings=1200).to_partitions(f"{folder}/ratings")
    ...     scan = Ratings.scan(f"{folder}/ratings")
    ...     held = HeldOut(0.2)
    ...     sample, _ = held.parted(scan.sample_users(30))
    ...     model = OrdinalFactors(n_factors=2, pattern=2).fit(sample)
    ...     found = predict_scan(model, scan, held, f"{folder}/predictions")
    ...     list(next(found.frames()))[:5]
    ['user', 'item', 'actual', 'rating', 'expected']
    """
    if hasattr(model, "rating_model"):
        model = model.rating_model()  # a recommender's choice model predicts nothing
    if not isinstance(model, FoldInModel):
        raise ArgumentError(f"{type(model).__name__} has no fold_in: it only knows its own users")
    targets = pairs if isinstance(pairs, HeldOut) else _Pairs.of(pairs)
    place = Path(out).absolute()  # it may travel to workers that are in other folders
    folder = PartFolder(place, MANIFEST, FORMAT, VERSION, _identity(model, scan, targets))
    if isinstance(targets, HeldOut):
        _warn_of_training_ratings(model, targets)
    _warn_of_unknown_items(model, scan)
    if hasattr(model, "without_users"):
        model = model.without_users()  # less to send, and quicker id lookups
    waiting = folder.waiting(range(len(scan.parts)))
    shared = model, scan, targets, folder, rows
    for _ in run(
        _predict_part, waiting, shared=shared, engine=engine, n_jobs=n_jobs, progress=progress,
        label=lambda number: scan.parts[number].file,
    ):  # fmt: skip
        pass
    _, parquet = parquet_engine(folder.path)
    n_pairs = sum(
        parquet.read_metadata(folder.file(number)).num_rows for number in range(len(scan.parts))
    )
    if isinstance(targets, _Pairs) and n_pairs < targets.items.size:
        warnings.warn(
            f"{targets.items.size - n_pairs} of {targets.items.size} pairs belong to users who "
            f"are not in {scan.path}: they get no predictions",
            stacklevel=callers_level(),
        )
    folder.finish(n_pairs=n_pairs)
    return ScanPredictions(folder.path, n_pairs)


def _warn_of_training_ratings(model: Any, held: HeldOut) -> None:
    """Say that errors will look too small if the model has seen what it is to predict."""
    remedy = "errors on these are too small: fit again without them (held_out=)"
    known = model.known_ratings() if hasattr(model, "known_ratings") else None
    if known is not None and known.n_ratings:
        n_seen = int(held.mask(known).sum())
        if not n_seen:
            return
        text = f"the model was fitted to {n_seen} of the ratings that it is to predict: {remedy}"
    elif hasattr(model, "held_out_"):  # fitted from disk, a model does not know its ratings
        before = model.held_out_
        if before is None:
            text = f"nothing was held out when the model was fitted: {remedy}"
        elif before.covers(held):
            return
        else:
            text = (
                f"the model was fitted with random_state {before.random_state} and held out "
                f"{before.share:g} of the ratings, not those that it is to predict: {remedy}"
            )
    else:
        return
    warnings.warn(OrdrecWarning(text, parameter="held_out"), stacklevel=callers_level())


def _warn_of_unknown_items(model: Any, scan: RatingsScan) -> None:
    """Say once, before the parts, what `_predictions` leaves out."""
    if not hasattr(model, "item_ids_"):
        return
    unknown = scan.item_ids[codes_of(model.item_ids_, scan.item_ids) < 0]
    if len(unknown):
        warnings.warn(
            f"{len(unknown)} of {len(scan.item_ids)} items in {scan.path} are not known to the "
            f"model, such as {unknown[:1].tolist()[0]!r}: users are folded in without their "
            "ratings of these",
            stacklevel=callers_level(),
        )


def _predict_part(
    number: int,
    model: Any,
    scan: RatingsScan,
    targets: HeldOut | _Pairs,
    folder: PartFolder,
    rows: int,
) -> None:
    """Write the predictions of one part."""
    check_folder_visible(folder.path)
    pyarrow, parquet = parquet_engine(folder.path)
    try:
        with replace_file(folder.file(number)) as file:
            writer = None
            for chunk in scan.chunks(rows, part=number):
                frame = _predictions(model, chunk, targets)
                table = pyarrow.Table.from_pandas(frame, preserve_index=False)
                writer = writer or parquet.ParquetWriter(file, table.schema)
                writer.write_table(table)
            assert writer is not None, "a part has users"
            writer.close()
    except StorageError as error:
        raise StorageError(
            f"{error}. Finished parts are kept: call again with the same arguments to continue"
        ) from None


def _predictions(model: Any, chunk: Ratings, targets: HeldOut | _Pairs) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    times = None
    if isinstance(targets, HeldOut):
        history, wanted = targets.parted(chunk)
        columns["user"] = wanted.user_ids.take(wanted.users)
        columns["item"] = wanted.item_ids.take(wanted.items)
        columns["actual"] = wanted.values
    else:
        history = chunk
        columns["user"], columns["item"], times = targets.of_users(chunk.user_ids)
    users, items = columns["user"], columns["item"]
    if hasattr(model, "item_ids_"):  # a new item would be learnt from the users of its chunk alone
        is_known = codes_of(model.item_ids_, history.item_ids) >= 0
        history = history.select(is_known[history.items])
    with replacing_ratings():
        known = model.fold_in(history)
    when = {}
    if times is not None and "timestamps" in inspect.signature(known.predict).parameters:
        when = {"timestamps": times}
    columns["rating"] = known.predict(users, items, **when)
    if isinstance(known, ProbabilityModel):
        p = known.predict_proba(users, items, **when)
        scale = getattr(known, "scale_", chunk.scale)
        columns["expected"] = p @ scale.values
        for k, value in enumerate(scale.values):
            columns[f"p_{value:g}"] = p[:, k].astype(np.float32)
    return pd.DataFrame(columns)


@dataclass(frozen=True)
class _Pairs:
    """Pairs to predict, grouped by user."""

    users: pd.Index
    start: np.ndarray
    items: np.ndarray
    times: np.ndarray | None

    @classmethod
    def of(cls, pairs: Any) -> _Pairs:
        frame = as_pandas(pairs)
        for column in ("user", "item"):
            if column not in frame:
                raise ArgumentError(f"predict_scan: no column {column!r} in the table of pairs")
        codes, users = pd.factorize(frame["user"])
        if len(frame) == 0 or (codes < 0).any():
            raise ArgumentError("predict_scan: the table of pairs is empty, or lacks user ids")
        groups = Groups.of(codes, len(users))
        times = None
        if "timestamp" in frame:
            times = seconds_of(frame["timestamp"])[groups.order]
        items = frame["item"].to_numpy()[groups.order]
        return cls(pd.Index(users), groups.start, items, times)

    def of_users(self, ids: pd.Index) -> tuple[pd.Index, np.ndarray, np.ndarray | None]:
        """User ids, item ids and times of the pairs of some users."""
        places = self.users.get_indexer(ids)
        there = places >= 0
        places = places[there]
        counts = self.start[places + 1] - self.start[places]
        first = np.repeat(self.start[places] - np.cumsum(counts) + counts, counts)
        rows = first + np.arange(counts.sum())
        times = None if self.times is None else self.times[rows]
        return ids[there].repeat(counts), self.items[rows], times


def _identity(model: Any, scan: RatingsScan, targets: HeldOut | _Pairs) -> dict[str, Any]:
    """What predictions depend on: ratings, pairs and model, each by a checksum of its content."""
    if isinstance(targets, HeldOut):
        pairs = repr(targets)
    else:
        hashes = [pd.util.hash_array(np.asarray(ids)) for ids in (targets.users, targets.items)]
        arrays = [*hashes, targets.start, *([] if targets.times is None else [targets.times])]
        pairs = checksum(*(array.tobytes() for array in arrays))
    return {
        "ratings": scan.checksum(),
        "pairs": pairs,
        "model": model_checksum(model),
    }
