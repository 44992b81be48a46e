"""Files that experiments and commands read back: judgements, cells, published numbers, pairs."""

from __future__ import annotations

import tempfile
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from fuzz.campaign import answered, both_runs, explore
from fuzz.mutation import mutated
from hypothesis import strategies as st

from ordrec.datasets import synthetic_ratings
from ordrec.documents.trec import measure_run, read_qrels
from ordrec.evaluation import EvaluationResult
from ordrec.evaluation.problems.base import Measurement
from ordrec.evaluation.run import Cell, stored_measurement
from ordrec.experiments.published import beside_published
from ordrec.features.text import read_stop_list
from ordrec.lists.frames import predict_pairs, read_pairs
from ordrec.recommend import BiasModel
from ordrec.storage.parts import PartStore

CELL = Cell("svm", "toy", "kfold:5", "1", 0)
ROW = CELL.about | {"metric": "mae", "average": "micro", "decision": "auto", "value": 0.25, "n": 4}


def written_cell() -> bytes:
    """The file of a finished cell."""
    with tempfile.TemporaryDirectory() as folder:
        store = PartStore(folder)
        store.put(asdict(CELL), *Measurement([ROW, ROW]).to_arrays())
        return store.file(asdict(CELL)).read_bytes()


CONTENTS = {
    "qrels": b"1 0 a 2\n1 0 b 0\n2 0 a 1\n2 0 c -1\n",
    "cell": written_cell(),
    "published": b"table,metric,data,model,mean,standard_error\n1,mae,toy,svm,0.2,0.01\n",
    "stop list": b"the\nof\nand\nOf\n",
    "pairs": b"user,item,timestamp\n1,2,10\n3,4,2020-01-01\n-7,1,12\n",
}
MODEL = BiasModel().fit(synthetic_ratings(9, 8, n_ratings=45, seed=1))


def read(kind, path, folder):
    """What ordrec does with such a file."""
    if kind == "qrels":
        qrels = read_qrels(path)
        ranking = qrels.assign(score=1.0, rank=np.arange(len(qrels)) + 1)
        assert measure_run(ranking, qrels, ["AP", "P@1"]).notna().all(axis=None)
    elif kind == "cell":
        store = PartStore(folder)
        path.replace(store.file(asdict(CELL)))
        found = stored_measurement(store, CELL) or Measurement([ROW])
        repr(EvaluationResult(pd.DataFrame(found.rows)))
    elif kind == "published":
        beside_published(pd.DataFrame([ROW]), path)
    elif kind == "stop list":
        assert read_stop_list(path)
    else:
        predicted = predict_pairs(MODEL, read_pairs(path, MODEL))
        assert np.isfinite(predicted["rating"]).all()


@both_runs
@pytest.mark.parametrize("kind", CONTENTS)
def test_files_are_read_or_refused(run, kind, tmp_path):
    path = tmp_path / "a.file"
    path.write_bytes(CONTENTS[kind])
    read(kind, path, tmp_path)

    def check(content):
        path.write_bytes(content)
        answered(lambda: read(kind, path, tmp_path), says=str(path))

    contents = mutated(CONTENTS[kind]) | st.binary(max_size=30)
    explore("results", run, check, contents, pieces=len(CONTENTS))


@pytest.mark.parametrize("kind", ["qrels", "published", "stop list", "pairs"])
def test_folders_and_missing_files_are_refused(kind, tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        assert answered(lambda path=path: read(kind, path, tmp_path) or 1, says=str(path)) is None
