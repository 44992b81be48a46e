"""Models of ratings that stay on disk: `fit_scan` fits them, `recommend_scan` makes their lists."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import singledispatchmethod
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from ordrec.choice.base import ChoiceModel
from ordrec.choice.calibration import calibrated_picks
from ordrec.choice.on_disk import StoredHistories
from ordrec.data.columns import as_pandas
from ordrec.data.on_disk.held_out import HeldOut
from ordrec.data.on_disk.partitions import parquet_engine
from ordrec.data.on_disk.scan import ROWS, RatingsScan
from ordrec.data.side_tables import side_table
from ordrec.errors import ArgumentError, callers_level
from ordrec.lists.bulk import (
    checked_file,
    join_tables,
    recommend_all,
    write_table,
)
from ordrec.lists.filters import check_list_length
from ordrec.lists.titles import item_titles
from ordrec.models.base import codes_of, drop_weights, replacing_ratings
from ordrec.models.workplace import Workplace, fingerprint, working_at
from ordrec.rating.factors.model import OrdinalFactors
from ordrec.rating.factors.on_disk import fit_factors
from ordrec.rating.predictor import RatingPredictor
from ordrec.recommend.recommender import Recommender
from ordrec.runtime.files import check_folder_visible, make_folder
from ordrec.runtime.parallel import Engine, one_blas_thread, run, worker_count
from ordrec.runtime.progress import progress as showing
from ordrec.storage.parts import PartFolder, checksum, model_checksum

__all__ = ["fit_scan", "recommend_scan"]

Model = TypeVar("Model")
Progress = Callable[[int, int, str], None]
SUPPORTED = "Recommender, OrdinalFactors, RatingPredictor or a choice model such as EASE"
LISTS, VERSION, MANIFEST = "ordrec lists", 1, "_lists.json"
NOT_LEARNT_FROM = "n_jobs", "verbose"  # parameters that change no digit


def fit_scan(
    model: Model,
    scan: RatingsScan,
    *,
    user_table: Any = None,
    item_table: Any = None,
    held_out: HeldOut | None = None,
    folder: str | Path | None = None,
    rows: int = ROWS,
    engine: Engine | str | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Model:
    """Fit a model to all ratings of a scan without loading them into memory.

    Ratings are read in chunks of users and kept in files. Choice models run the loops that they
    run in memory, over maps of these files, and learn the same digits. `OrdinalFactors` adds up
    over blocks of users what the items need; the result is that of ``model.fit(scan.collect())``
    except for rounding, for its pattern, whose random start differs, and for the drift of users:
    its times are not used, and a warning says so. The rating model of a `Recommender`, and
    `RatingPredictor`, are fitted as the preset "large", which is the factors.

    Parameters
    ----------
    model : Recommender, RatingPredictor, OrdinalFactors, or choice model
        Its parameters are used; it is fitted and returned.
    scan : RatingsScan
    user_table, item_table : DataFrame, optional
        Side data, as `Ratings.from_frame` takes it, beside those that the folder has.
    held_out : HeldOut, optional
        Ratings that are left out, for `predict_scan` and `ordrec.evaluation.evaluate_scan`. The
        model remembers them.
    folder : str or Path, optional
        Where files are kept while this runs: for choice models about 20 bytes per rating, and
        24 to 100 in each of the parts that are set aside to choose parameters; for factors about
        12 bytes per rating (20 with weights) and 9.2 kB per user (with 32 factors). A fit that was
        stopped goes on where it was when it is called again with the same arguments; the files
        are removed when it is complete. On a cluster, all workers need access to the folder. By
        default a temporary one, which is removed in any case.
    rows : int
        Number of ratings of a chunk. More of them need more memory; for factors, results change
        in the last digits.
    engine, n_jobs
        See `ordrec.runtime.parallel.run`; a task is a block of users or items. By default this
        process, with threads.
    progress : callable, optional
        Called as ``progress(done, total, text)`` after each step; fewer sweeps than ``total`` says
        may do.

    Returns
    -------
    model
        It knows all items and no user: `recommend_scan`, `predict_scan` and ``fold_in`` bring
        users in. ``fit_report_`` says what its stages took in this process.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from ordrec.data import Ratings
    >>> from ordrec.datasets import synthetic_ratings
    >>> from ordrec.recommend import EASE, recommend_scan
    >>> with tempfile.TemporaryDirectory() as place:
    ...     synthetic_ratings(60, 40, n_ratings=1200).to_partitions(f"{place}/ratings")
    ...     scan = Ratings.scan(f"{place}/ratings")
    ...     model = fit_scan(EASE(), scan)
    ...     lists = pd.read_csv(recommend_scan(model, scan, f"{place}/top.csv", 3))
    ...     len(model.user_ids_), len(lists)  # who has rated nearly all items has a shorter list
    (0, 152)
    """
    if not isinstance(model, (Recommender, RatingPredictor, OrdinalFactors, ChoiceModel)):
        raise ArgumentError(
            f"a {type(model).__name__} cannot be fitted to ratings on disk: take a {SUPPORTED}, "
            "or fit to scan.collect() or scan.sample_users(50_000)"
        )
    tables = [
        None if table is None else as_pandas(table).to_csv() for table in (user_table, item_table)
    ]
    about = scan.checksum(), _settings(model), held_out, rows, *tables
    with (
        _place_of(folder, fingerprint(*about)) as place,
        _connected(engine, n_jobs) as where,
        showing("fit_scan", getattr(model, "verbose", None)) as stage,
        working_at(Workplace(place, where, n_jobs)),
    ):
        source = _Source(
            scan, user_table, item_table, held_out, place, rows, where, n_jobs, progress
        )
        source.fit(model)
    (model.fit_report_,) = stage.found  # type: ignore[union-attr]
    return model


@dataclass
class _Source:
    """The ratings of a scan, and how models are fitted to them."""

    scan: RatingsScan
    user_table: Any
    item_table: Any
    held_out: HeldOut | None
    place: Path
    rows: int
    engine: Engine | None
    n_jobs: int | None
    progress: Progress | None
    done: int = 0

    @singledispatchmethod
    def fit(self, model: Any) -> None:
        """Fit a model, which then knows no user."""

    @fit.register
    def _fit_factors(self, model: OrdinalFactors) -> None:
        fit_factors(
            model, self.scan, self.place / "factors", user_table=self.user_table,
            item_table=self.item_table, held_out=self.held_out, rows=self.rows,
            engine=self.engine, n_jobs=self.n_jobs, progress=self._later,
        )  # fmt: skip

    @fit.register
    def _fit_predictor(self, model: RatingPredictor) -> None:
        model._check_parameters()
        if model.preset not in ("auto", "large"):
            raise ArgumentError(
                f'preset="{model.preset}": only "large" is fitted to ratings on disk: pass "auto" '
                'or "large", or fit to scan.sample_users(50_000)',
                parameter="preset",
            )
        factors = model._factors()
        self.fit(factors)
        model.preset_, model.process_model_, model.pool_weights_ = "large", None, (0.0, 1.0)
        model.factors_, model.side_columns_ = factors, factors.side_columns_
        model.titles_ = factors.titles_
        self._identify(model, factors)

    @fit.register
    def _fit_choice(self, model: ChoiceModel) -> None:
        histories = self._histories(model)
        self._report("histories written")
        histories.teach(model, self._item_table)
        self._report(type(model).__name__)
        self._forget_users(model)

    @fit.register
    def _fit_recommender(self, model: Recommender) -> None:
        model._check_parameters()
        choice = model._new_choice_model()
        histories = self._histories(choice)
        self._report("histories written")
        with one_blas_thread():
            histories.teach(choice, self._item_table)
            model.calibration_ = calibrated_picks(
                choice, histories.history, histories.times, model.random_state
            )
        self._report("what users pick")
        self._forget_users(choice)
        rated = not self.scan.scale.only_picks
        rating = model._new_rating_model() if rated or model.rating != "auto" else None
        if rating is not None:
            self.fit(rating)
        model.choice_, model.rating_ = choice, rating
        self._identify(model, choice)
        model.titles_ = item_titles(self._item_table)
        scale = self.scan.scale
        model.like_ = scale.liked_from if model.like is None else float(model.like)

    @property
    def _item_table(self) -> pd.DataFrame | None:
        """What is known of the items, in the order of their codes."""
        scan = self.scan
        return side_table(self.item_table, scan.item_ids, "item", "item", scan.item_table)

    def _histories(self, model: ChoiceModel) -> StoredHistories:
        if self.scan.weight is not None:
            (chunk, *_) = self.scan.chunks(1, part=0)
            drop_weights(chunk, type(model).__name__)  # says that they are ignored
        return StoredHistories.of(self.scan, self.place / "histories", self.rows, self.held_out)

    def _forget_users(self, model: ChoiceModel) -> None:
        """What is learnt of items is all that a model keeps; its histories are on disk."""
        for name, value in vars(model.without_users()).items():
            setattr(model, name, value)

    def _identify(self, model: Any, of: Any) -> None:
        model.scale_, model.user_ids_, model.item_ids_ = of.scale_, of.user_ids_, of.item_ids_

    def _report(self, text: str) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.done + 1, text)

    def _later(self, done: int, total: int, text: str) -> None:
        """Report steps of the factors after those that were done before."""
        if self.progress is not None:
            self.progress(self.done + done, self.done + total, text)


def _settings(model: Any) -> str:
    """What a model learns by, as a text."""
    if not is_dataclass(model):
        return repr(model)
    values = {each.name: getattr(model, each.name) for each in fields(model)}
    inner = {
        name: _settings(value) if is_dataclass(value) else repr(value)
        for name, value in values.items()
        if name not in NOT_LEARNT_FROM
    }
    return f"{type(model).__name__} {inner}"


@contextmanager
def _place_of(folder: str | Path | None, name: str) -> Iterator[Path]:
    """A folder for the files of a fit: one that outlives a stop, or a temporary one."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="ordrec-fit-") as passing:
            yield Path(passing).absolute()
        return
    place = make_folder(Path(folder).absolute() / f"ordrec-fit-{name}")
    yield place
    shutil.rmtree(place)  # after a fit that is complete


@contextmanager
def _connected(engine: Engine | str | None, n_jobs: int | None) -> Iterator[Engine | None]:
    """The engine; one of Dask with a client that all loops of the fit share."""
    where = None if engine is None else Engine.of(engine)
    if where is None or where.name != "dask":
        yield where
        return
    from ordrec.runtime.parallel.dask_cluster import connected

    with connected(where.scheduler, worker_count(-1 if n_jobs is None else n_jobs)) as client:
        yield Engine("dask", client)


# ---- lists ---------------------------------------------------------------------------------------


def recommend_scan(
    model: Any,
    scan: RatingsScan,
    out: str | Path,
    n: int = 10,
    *,
    held_out: HeldOut | None = None,
    rows: int = ROWS,
    overwrite: bool = False,
    engine: Engine | str | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Path:
    """Fold in all users of a scan and write a list for each of them.

    Parameters
    ----------
    model : fitted model that makes lists and folds users in
        For example by `fit_scan`, to the same folder or another one of the same items.
    scan : RatingsScan
    out : path
        A file, csv or parquet by its ending. Finished parts are kept in a folder beside it until
        it is complete: the same call again goes on where it stopped. On a cluster, all workers
        need access to it and to the folder of the scan.
    n : int
        Length of a list.
    held_out : HeldOut, optional
        Ratings that are not counted as known: neither learnt from nor left out of the lists. By
        default none.
    rows : int
        Number of ratings that each worker holds in memory, see `RatingsScan.chunks`.
    overwrite : bool
        Whether finished parts of a run with other arguments are removed; they are refused
        otherwise.
    engine, n_jobs, progress
        See `ordrec.runtime.parallel.run`; a task is a part of the scan.
    **options
        ``exclude``, ``only``, ``include_rated`` and ``timestamp``, see `recommend_all`.

    Returns
    -------
    Path
        The file: one row per user and place, users in the order of the scan.
    """
    check_list_length(n)
    if not (hasattr(model, "fold_in") and hasattr(model, "lists")):
        raise ArgumentError(
            f"a {type(model).__name__} cannot fold in users and list items for them: take a "
            f"{SUPPORTED}"
        )
    path = checked_file(out)
    _warn_of_other_items(model, scan)
    if hasattr(model, "without_users"):
        model = model.without_users()  # less to send, and quicker id lookups
    asked = f"{n} {held_out} {sorted((name, repr(value)) for name, value in options.items())}"
    identity = {
        "model": model_checksum(model),
        "users": scan.checksum(),
        "options": checksum(asked.encode()),
    }
    beside = path.with_name(path.name + ".parts")
    folder = PartFolder(
        beside, MANIFEST, LISTS, VERSION, identity, path.suffix, overwrite,
        "end it with the same arguments, pass overwrite=True to throw its parts away, or name "
        "another file",
    )  # fmt: skip
    waiting = folder.waiting(range(len(scan.parts)))
    shared = model, scan, folder, n, held_out, rows, options
    for _ in run(
        _list_part, waiting, shared=shared, engine=engine, n_jobs=n_jobs, progress=progress,
        label=lambda number: f"lists for {scan.parts[number].file}",
    ):  # fmt: skip
        pass
    parts = [folder.file(number) for number in range(len(scan.parts))]
    join_tables(parts, path, _lists_for([], model, n, options))
    shutil.rmtree(folder.path)
    return path


def _list_part(
    number: int,
    model: Any,
    scan: RatingsScan,
    folder: PartFolder,
    n: int,
    held_out: HeldOut | None,
    rows: int,
    options: dict[str, Any],
) -> None:
    """Write the lists of the users of one part."""
    check_folder_visible(folder.path)
    parquet_engine(folder.path)
    frames = [_lists_for([], model, n, options)]
    for chunk in scan.chunks(rows, part=number):
        history = chunk if held_out is None else held_out.parted(chunk)[0]
        known = codes_of(model.item_ids_, history.item_ids) >= 0
        history = history.select(known[history.items])
        if scan.user_table is not None:
            history = history._replaced(user_table=scan.user_table.reindex(history.user_ids))
        with replacing_ratings():
            folded = model.fold_in(history)
        users = chunk.user_ids[codes_of(folded.user_ids_, chunk.user_ids) >= 0]
        if len(users):
            frames.append(_lists_for(users, folded, n, options))
    table = pd.concat(frames[1:] or frames, ignore_index=True)
    write_table(table, folder.file(number))


def _lists_for(users: Any, model: Any, n: int, options: dict[str, Any]) -> pd.DataFrame:
    table = recommend_all(model, n, users, engine="serial", **options)
    assert isinstance(table, pd.DataFrame)  # no file was named
    return table


def _warn_of_other_items(model: Any, scan: RatingsScan) -> None:
    unknown = scan.item_ids[codes_of(model.item_ids_, scan.item_ids) < 0]
    if len(unknown):
        warnings.warn(
            f"{len(unknown)} of {len(scan.item_ids)} items in {scan.path} are not known to the "
            f"model, such as {unknown[:1].tolist()[0]!r}, and are in no list",
            stacklevel=callers_level(),
        )
