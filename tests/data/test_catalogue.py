"""Data sets by name: search order, messages, and fetching from a server on this machine."""

from __future__ import annotations

import hashlib
import http.server
import re
import shutil
import threading
import zipfile
from functools import partial

import pytest

from ordrec.data import catalogue
from ordrec.data.catalogue import KNOWN_DATASETS, DatasetInfo
from ordrec.data.download import Download
from ordrec.datasets import (
    describe_dataset,
    fetch_dataset,
    find_dataset,
    list_datasets,
    load_dataset,
)
from ordrec.errors import ArgumentError, DataError, DatasetMissing


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Point all folders elsewhere, so that no test touches those of the user."""
    monkeypatch.setenv("ORDREC_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ORDREC_DATA", raising=False)


# ---- the known data sets ---------------------------------------------------------------


def test_the_bundled_ratings_load_offline():
    ratings = load_dataset("ml-latest-small-2016", offline=True)
    assert (ratings.n_ratings, ratings.n_users, ratings.n_items) == (100_004, 671, 9_066)
    assert ratings.name == "ml-latest-small-2016"
    assert ratings.item_table["title"].notna().all()


@pytest.mark.parametrize("name", list_datasets())
def test_every_entry_is_complete(name):
    info = describe_dataset(name)
    assert info.name == name
    assert info.kind in ("ratings", "ranking", "documents", "table")
    assert info.places
    assert info.page
    assert info.terms
    module, function = info.loader.split(":")
    assert hasattr(__import__(f"ordrec.data.formats.{module}", fromlist=[function]), function)
    for download in info.downloads:
        assert all(url.startswith("https://") for url in download.urls)
        assert download.checksum is None or re.fullmatch(
            "sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}", download.checksum
        )
        # without a published checksum only the publisher's own address is trusted
        assert download.checksum is not None or len(download.urls) == 1
    assert info.terms in str(info)


def test_unknown_names_are_answered_with_near_ones():
    with pytest.raises(
        ArgumentError, match=r"no data set is called 'ml100k': did you mean ml-100k"
    ):
        load_dataset("ml100k")


def test_missing_says_where_terms_and_place(tmp_path):
    with pytest.raises(DatasetMissing) as caught:
        load_dataset("eachmovie", folder=tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    for part in ("get it from", "terms: non-commercial research", "put it at eachmovie",
                 "ORDREC_DATA", str(tmp_path)):  # fmt: skip
        assert part in message
    with pytest.raises(DatasetMissing, match="allow the download"):
        load_dataset("ml-1m", offline=True)
    with pytest.raises(DatasetMissing, match="no such folder"):
        load_dataset("ml-1m", folder=tmp_path / "nowhere")


# ---- search order ----------------------------------------------------------------------


def put(samples, root, name="ml-100k", sample="ml-100k"):
    shutil.copytree(samples / sample, root / name)
    return root / name


def test_search_order(samples, tmp_path, monkeypatch):
    cached = put(samples, tmp_path / "cache")
    assert find_dataset("ml-100k") == cached
    bundled = put(samples, tmp_path / "bundle")
    monkeypatch.setattr(catalogue, "_bundled_folders", lambda: [tmp_path / "bundle"])
    assert find_dataset("ml-100k") == bundled
    named = put(samples, tmp_path / "named")
    monkeypatch.setenv("ORDREC_DATA", str(tmp_path / "named"))
    assert find_dataset("ml-100k") == named
    given = put(samples, tmp_path / "given")
    assert find_dataset("ml-100k", folder=tmp_path / "given") == given
    assert find_dataset("ml-100k", folder=given) == given  # the folder of the set itself


def test_a_zip_in_the_folder(samples, tmp_path):
    shutil.make_archive(str(tmp_path / "ml-100k"), "zip", samples / "ml-100k")
    ratings = load_dataset("ml-100k", folder=tmp_path, offline=True)
    assert ratings.name == "ml-100k"
    assert "u5" in ratings.folds


def test_an_empty_folder_does_not_count(samples, tmp_path):
    (tmp_path / "ml-100k").mkdir()
    assert find_dataset("ml-100k", folder=tmp_path) is None


def test_files_may_lie_two_folders_down(samples, tmp_path):
    shutil.copytree(samples / "ohsumed", tmp_path / "ohsumed-trec9" / "ohsu-trec" / "train")
    shutil.move(
        tmp_path / "ohsumed-trec9" / "ohsu-trec" / "train" / "query.ohsu.1-2",
        tmp_path / "ohsumed-trec9" / "ohsu-trec" / "train" / "query.ohsu.1-63",
    )
    assert len(load_dataset("ohsumed-trec9", folder=tmp_path, offline=True).documents) == 3


def test_options_reach_the_loader(samples, tmp_path):
    put(samples, tmp_path, "jester-5k", "jester")
    assert load_dataset("jester-5k", folder=tmp_path, ranks=7).scale.n_ranks == 7


def test_tables_are_files_in_folders(samples, tmp_path):
    (tmp_path / "ordinal-survey").mkdir()
    shutil.copy(samples / "ordinal" / "grades.csv", tmp_path / "ordinal-survey" / "ERA.csv")
    assert load_dataset("survey/ERA", folder=tmp_path).n_ranks == 3


# ---- fetching --------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path):
    """A web server on this machine; gives its address and folder."""
    folder = tmp_path / "www"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(folder))
    ) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}", folder
        httpd.shutdown()


@pytest.fixture
def offered(server, samples, monkeypatch):
    """Puts an invented data set on the server and into the table of known data sets."""
    address, folder = server
    with zipfile.ZipFile(folder / "tiny.zip", "w") as out:
        for file in (samples / "ml-latest").iterdir():
            out.write(file, f"tiny/{file.name}")
    right = "sha256:" + hashlib.sha256((folder / "tiny.zip").read_bytes()).hexdigest()

    def offer(*urls, checksum=right, file="tiny.zip"):
        info = DatasetInfo(
            "tiny", "invented", "ratings", "movielens:load_movielens", ("tiny",), ("ratings.csv",),
            "nowhere", "none", "nobody", (Download(file, urls, checksum),),
        )  # fmt: skip
        monkeypatch.setitem(KNOWN_DATASETS, "tiny", info)
        return info

    return address, folder, offer


def test_fetch_unpacks_and_is_found_again(offered, tmp_path):
    address, folder, offer = offered
    offer(f"{address}/tiny.zip")
    assert load_dataset("tiny").n_ratings == 5
    (folder / "tiny.zip").unlink()  # the second time needs no server
    assert load_dataset("tiny", offline=True).n_ratings == 5
    assert fetch_dataset("tiny") == tmp_path / "cache" / "tiny"
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [
        "tiny"
    ]  # no temporary files are left


def test_fetch_shows_progress_on_request(offered, capsys):
    address, _, offer = offered
    offer(f"{address}/tiny.zip")
    assert fetch_dataset("tiny", progress=True).is_dir()


def test_a_dead_mirror_is_passed_over(offered):
    address, _, offer = offered
    offer("http://127.0.0.1:9/tiny.zip", f"{address}/absent.zip", f"{address}/tiny.zip")
    assert load_dataset("tiny").n_ratings == 5


def test_a_wrong_checksum_is_refused(offered, tmp_path):
    address, _, offer = offered
    offer(f"{address}/tiny.zip", checksum="sha256:" + "0" * 64)
    with pytest.raises(DatasetMissing, match="does not have the expected checksum"):
        load_dataset("tiny")
    assert list((tmp_path / "cache").iterdir()) == []
    offer("http://127.0.0.1:9/tiny.zip")
    with pytest.raises(DatasetMissing, match=r"could not be downloaded .*check the connection"):
        load_dataset("tiny")


def test_the_first_download_is_remembered_without_published_checksum(offered, tmp_path):
    address, folder, offer = offered
    offer(f"{address}/tiny.zip", checksum=None)
    fetch_dataset("tiny")
    shutil.rmtree(tmp_path / "cache" / "tiny")
    fetch_dataset("tiny")  # the same file again
    shutil.rmtree(tmp_path / "cache" / "tiny")
    with zipfile.ZipFile(folder / "tiny.zip", "a") as out:
        out.writestr("tiny/more", "changed")
    with pytest.raises(DatasetMissing, match="does not have the expected checksum"):
        fetch_dataset("tiny")


def test_plain_files_are_put_into_the_folder(offered, samples, tmp_path):
    address, folder, offer = offered
    shutil.copy(samples / "ml-latest" / "ratings.csv", folder)
    offer(f"{address}/ratings.csv", checksum=None, file="ratings.csv")
    assert load_dataset("tiny").n_ratings == 5
    assert (tmp_path / "cache" / "tiny" / "ratings.csv").is_file()


def test_a_hostile_archive_leaves_nothing_behind(offered, tmp_path):
    address, folder, offer = offered
    with zipfile.ZipFile(folder / "tiny.zip", "w") as out:
        out.writestr("../../evil", "x")
    offer(f"{address}/tiny.zip", checksum=None)
    with pytest.raises(DataError, match="outside the folder"):
        load_dataset("tiny")
    assert not (tmp_path / "cache" / "tiny").exists()
    assert not (tmp_path / "evil").exists()


def test_offline_never_connects(offered, monkeypatch):
    address, _, offer = offered
    offer(f"{address}/tiny.zip")
    with pytest.raises(DatasetMissing):
        load_dataset("tiny", offline=True)
    with pytest.raises(DatasetMissing, match="not fetched automatically"):
        fetch_dataset("jester-5k")
