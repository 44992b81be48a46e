"""Workers that are in other folders, or that do not see a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from ordrec.data import Ratings
from ordrec.datasets import synthetic_ratings
from ordrec.errors import DataError
from ordrec.lists.bulk import _write_block
from ordrec.rating.on_disk.predictions import _predict_part
from ordrec.recommend import HeldOut, Popularity, make_model, predict_scan
from ordrec.runtime.parallel import Engine, run_all
from ordrec.storage.parts import PartFolder

RATINGS = synthetic_ratings(60, 30, n_ratings=900, seed=0)


@pytest.fixture(scope="module", params=["processes", "dask"])
def engine(request, tmp_path_factory) -> Iterator[Engine]:
    """Workers that were started in a folder of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("workers"))
        if request.param == "processes":
            run_all(abs, [1, 2, 3], engine="processes", n_jobs=2)
            yield Engine("processes")
            return
        distributed = pytest.importorskip("distributed")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster:
            yield Engine("dask", cluster.scheduler_address)


def test_relative_paths_mean_the_callers_folder(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    RATINGS.to_partitions("parts", rows_per_part=200)
    scan = Ratings.scan("parts")
    model = make_model("factors", n_factors=2, max_iter=2).fit(scan.sample_users(40))
    found = predict_scan(model, scan, HeldOut(0.2), "out", engine=engine, n_jobs=2)
    alone = predict_scan(model, scan, HeldOut(0.2), "alone")
    pd.testing.assert_frame_equal(pd.concat(found.frames()), pd.concat(alone.frames()))
    assert (tmp_path / "out" / "_predictions.json").exists()
    popular = Popularity().fit(RATINGS)
    assert popular.recommend_all(3, out="top.csv", engine=engine, n_jobs=2) == tmp_path / "top.csv"
    pd.testing.assert_frame_equal(pd.read_csv("top.csv"), popular.recommend_all(3))


def test_a_worker_that_sees_no_folder_names_its_machine_and_deletes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "far-away")
    RATINGS.to_partitions(tmp_path / "parts", rows_per_part=200)
    scan = Ratings.scan(tmp_path / "parts")
    folder = PartFolder(tmp_path / "out", "_m.json", "ordrec predictions", 1, {})
    (tmp_path / "parts").rename(tmp_path / "hidden")
    with pytest.raises(DataError, match="far-away sees no such folder") as refused:
        next(scan.chunks())
    assert str(tmp_path / "parts") in str(refused.value)
    (tmp_path / "hidden").rename(tmp_path / "parts")
    (tmp_path / "out" / "_m.json").unlink()
    (tmp_path / "out").rmdir()
    model = make_model("bias").fit(RATINGS)
    for work in (
        lambda: _predict_part(0, model, scan, HeldOut(0.1), folder, 1000),
        lambda: _write_block((folder.file(0), [0]), None),  # type: ignore[arg-type]
    ):
        with pytest.raises(DataError, match="far-away sees no such folder") as refused:
            work()
        assert not any(word in str(refused.value) for word in ("delete", "remove", "take it away"))


def test_a_file_that_is_missing_is_not_called_damaged(tmp_path: Path) -> None:
    RATINGS.to_partitions(tmp_path / "parts", rows_per_part=200)
    scan = Ratings.scan(tmp_path / "parts")
    (tmp_path / "parts" / scan.parts[0].file).unlink()
    with pytest.raises(DataError, match="no such file"):
        next(scan.chunks())
