"""Five people and what each wants, from a file to an answer, by commands and in Python.

A shop's analyst, a doctoral student, a search engineer, a statistician and an operator. Where both
faces give a number, it is the same number.
"""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ordrec import Ratings, Recommender, evaluate, load, save
from ordrec.cli import app
from ordrec.cli.parameters import in_options
from ordrec.datasets import load_letor, load_ratings
from ordrec.documents import RelevanceRanker
from ordrec.errors import DataError
from ordrec.evaluation import Candidates
from ordrec.ordinal import OrdinalLogistic, scorers
from ordrec.recommend import BiasModel, OrdinalFactors

WORDS = ["terrible", "poor", "fair", "good", "great"]
SMALL = ["--set", "n_factors=2", "--set", "max_iter=3", "--set", "use_time=false"]


def run(*words: object) -> str:
    """The standard output of a command that succeeds."""
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exception is None or found.exit_code == 0, found.output or found.exception
    return found.stdout


def refused(*words: object) -> str:
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exception is not None
    return in_options(found.exception)


def rmse_of(frame: pd.DataFrame) -> pd.Series:
    """The error of each model over all test ratings."""
    chosen = frame[(frame["average"] == "micro") & (frame["users"] == "all")]
    return chosen.set_index("model")["value"]


def drawn(n_users: int = 60, n_items: int = 30) -> pd.DataFrame:
    """Orders of a shop, with stars for most of them."""
    rng = np.random.default_rng(2)
    keys = rng.permutation(n_users * n_items)[:900]
    mean = 3.4 + 0.5 * rng.normal(size=n_users)[keys // n_items]
    mean = mean + 0.7 * rng.normal(size=n_items)[keys % n_items]
    stars = np.clip(np.rint(mean + 0.7 * rng.normal(size=keys.size)), 1, 5)
    return pd.DataFrame(
        {
            "customer_id": [f"c{key // n_items:02d}" for key in keys],
            "sku": [f"s{key % n_items:02d}" for key in keys],
            "stars": stars.astype(int),
        }
    )


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """The orders, in files as a shop has them, in the current folder."""
    monkeypatch.chdir(tmp_path)
    orders = drawn()
    orders.to_csv("orders.csv", index=False)
    names = [f"Thing {k}" for k in range(30)]
    things = pd.DataFrame({"sku": [f"s{k:02d}" for k in range(30)], "product_name": names})
    things.to_csv("things.csv", index=False)
    return orders


# ---- the analyst of a shop ------------------------------------------------------------------


def test_an_analyst_with_ratings_in_words_and_orders_without_one(orders: pd.DataFrame) -> None:
    said = orders.assign(stars=[WORDS[stars - 1] for stars in orders["stars"]])
    said.to_csv("said.csv", index=False)
    message = refused("fit", "said.csv", "-o", "said.ordrec", "-m", "bias")
    assert "holds words and no numbers ('fair', 'good'" in message
    assert "--scale poor,fair,good" in message
    run("fit", "said.csv", "--scale", ",".join(WORDS), "-o", "said.ordrec", "-m", "bias")
    with pytest.raises(DataError, match=r"'terrible'\): name all of them.*scale="):
        Ratings.from_frame(said)
    in_order = said.assign(stars=pd.Categorical(said["stars"], WORDS, ordered=True))
    own = BiasModel().fit(Ratings.from_frame(in_order))
    pair = ["c01"], ["s07"]
    np.testing.assert_allclose(load("said.ordrec").predict(*pair), own.predict(*pair))

    silent = orders.astype({"stars": object})
    silent.loc[::9, "stars"] = ""
    silent.to_csv("silent.csv", index=False)
    assert "100 in all" in refused("data", "describe", "silent.csv")
    assert "--missing drop" in refused("data", "describe", "silent.csv")
    assert "800 ratings" in run("data", "describe", "silent.csv", "--missing", "drop")
    with pytest.raises(DataError, match='pass missing="drop"'):
        Ratings.from_frame(pd.read_csv("silent.csv"))
    with pytest.warns(UserWarning, match="100 of 900 rows have no rating and are dropped"):
        kept = Ratings.from_frame(pd.read_csv("silent.csv"), missing="drop")
    assert kept.n_ratings == 800


def test_an_analyst_from_orders_to_lists_of_titles(orders: pd.DataFrame) -> None:
    models = ["--set", "choice=ease", "--set", "rating=bias"]
    run("fit", "orders.csv", "--items", "things.csv", "-o", "shop.ordrec", *models)
    lists = pd.read_csv(io.StringIO(run("recommend", "shop.ordrec", "--user", "c01", "-n", 3)))
    assert lists["title"].str.startswith("Thing").all()
    ratings = load_ratings("orders.csv").with_side_tables(item_table=pd.read_csv("things.csv"))
    model = Recommender("ease", rating="bias").fit(ratings)
    assert lists["item"].tolist() == model.recommend("c01", n=3)["item"].tolist()
    assert model.recommend("c01", n=3)["title"].str.startswith("Thing").all()
    bought = set(orders.loc[orders["customer_id"] == "c01", "sku"])
    assert not bought & set(model.recommend("c01", n=30)["item"])


# ---- a doctoral student ---------------------------------------------------------------------


def test_a_student_compares_one_model_and_a_grid(orders: pd.DataFrame) -> None:
    run("evaluate", "orders.csv", "-m", "mean,bias", "--metrics", "rmse", "-o", "table.csv")
    written = rmse_of(pd.read_csv("table.csv"))
    ratings = load_ratings("orders.csv")
    result = evaluate(ratings, ["mean", "bias"], metrics=["rmse"])
    both = rmse_of(result.frame)
    np.testing.assert_allclose(written[["mean", "bias"]], both[["mean", "bias"]])
    assert written["bias"] < written["mean"]
    alone = evaluate(ratings, BiasModel(), metrics=["rmse"])  # once: not iterable
    assert rmse_of(alone.frame).item() == pytest.approx(both["bias"])
    grid = Candidates.grid(BiasModel(), {"user_damping": [1.0, 9.0]}, "rmse", n_folds=2)
    assert evaluate(ratings, grid, metrics=["rmse"]).complete
    assert "±" in str(result.summary())


def test_a_student_s_model_from_disk_is_honest_about_its_users(orders: pd.DataFrame) -> None:
    pytest.importorskip("pyarrow")
    run("data", "partition", "orders.csv", "parts", "--items", "things.csv")
    run("fit-all", "parts", "-o", "all.ordrec", "--hold-out", 0.1, *SMALL)
    listed = CliRunner().invoke(app, ["recommend", "all.ordrec", "--user", "c01", "-n", "2"])
    assert "fitted from disk and keeps no users" in listed.output
    assert "Thing" in listed.output
    run("predict-all", "all.ordrec", "parts", "-o", "predicted")
    held_out = pd.concat(map(pd.read_parquet, Path("predicted").rglob("*.parquet")))
    assert 0.05 < len(held_out) / len(orders) < 0.15


# ---- a search engineer ----------------------------------------------------------------------


def test_a_search_engineer_with_documents_that_have_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = []
    for k in range(60):
        x = rng.normal(size=2)
        grade = int(np.digitize(x[0] + 0.2 * rng.normal(), [-0.4, 0.6]))
        lines.append(f"{grade} qid:{k // 10 + 1} 1:{x[0]:.4f} 2:{x[1]:.4f} #docid = G00-{k:02d}")
    file = tmp_path / "judged.txt"
    file.write_text("\n".join(lines) + "\n")
    judged = load_letor(file)
    assert judged.documents[[0, 59]].tolist() == ["G00-00", "G00-59"]  # once -1
    ranker = RelevanceRanker(OrdinalLogistic()).fit(judged.X, judged.y, judged.queries)
    ranking = ranker.rank(judged.X, judged.queries, documents=judged.documents)
    assert ranking["document"].str.startswith("G00-").all()
    run("rank", "fit", file, "-o", tmp_path / "ranker.ordrec", "-m", "ordinal")
    run("rank", "predict", tmp_path / "ranker.ordrec", file, "-o", tmp_path / "run.csv")
    by_command = pd.read_csv(tmp_path / "run.csv")
    assert len(by_command) == 60


# ---- a statistician -------------------------------------------------------------------------


def test_a_statistician_whose_labels_have_an_order() -> None:
    from sklearn.model_selection import cross_val_score

    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    ranks = np.digitize(X[:, 0] + rng.logistic(scale=0.5, size=150), [-0.8, 0.8])
    words = pd.Categorical.from_codes(ranks, ["poor", "fair", "good"], ordered=True)
    model = OrdinalLogistic(alpha=1e-2)
    by_number = cross_val_score(model, X, ranks, scoring="neg_log_loss", cv=3)
    by_word = cross_val_score(model, X, pd.Series(words), scoring=scorers.neg_log_loss, cv=3)
    np.testing.assert_allclose(by_word, by_number, rtol=1e-6)
    with pytest.raises(Exception, match=r"ordrec\.ordinal\.scorers"):  # once -2.55 for -1.02
        cross_val_score(model, X, pd.Series(words), scoring="neg_log_loss", error_score="raise")
    apart = OrdinalLogistic().fit(X, (X[:, 0] > 0).astype(int) + (X[:, 0] > 1))
    if apart.separated_:
        with pytest.warns(UserWarning, match="separate"):
            assert apart.summary()["p"].isna().all()  # once 1e-80


# ---- an operator ----------------------------------------------------------------------------


def test_an_operator_s_server_answers_under_load_as_alone(orders: pd.DataFrame) -> None:
    pytest.importorskip("fastapi")
    from concurrent.futures import ThreadPoolExecutor

    from support.serving import client_of

    ratings = Ratings.from_frame(orders)
    model = Recommender("ease", rating=OrdinalFactors(n_factors=2, max_iter=3)).fit(ratings)
    save(model, "shop.ordrec")
    client, alone = client_of(load("shop.ordrec")), client_of(load("shop.ordrec"))
    asked = [{"user": f"c{k % 20:02d}", "n": 4} for k in range(60)]
    folded = [{"ratings": [{"item": f"s{k:02d}", "rating": 5}], "n": 4} for k in range(8)]
    requests = [("/api/recommend", each) for each in asked]
    requests += [("/api/fold-in", each) for each in folded]

    def answer(of: tuple[str, dict[str, object]]) -> object:
        return client.post(of[0], json=of[1]).json()

    with ThreadPoolExecutor(6) as clients:
        together = list(clients.map(answer, requests))
    assert together == [alone.post(path, json=body).json() for path, body in requests]
    listed = together[0]["items"]  # type: ignore[index]
    table = model.recommend("c00", 4)
    assert [row["item"] for row in listed] == table["item"].tolist()
    assert client.get("/health").json()["status"] == "ok"
    assert 'path="/api/recommend",method="POST",status="200"} 60' in client.get("/metrics").text


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_operator_who_stops_a_fit_is_told_what_stays(orders: pd.DataFrame) -> None:
    Path("slow_models.py").write_text(
        "import time\n"
        "from ordrec.recommend import BiasModel\n"
        "class Slow(BiasModel):\n"
        "    def fit(self, ratings):\n"
        "        print('fitting', flush=True)\n"
        "        time.sleep(600)\n"
    )
    Path("shop.ordrec").write_text("a model of yesterday")
    command = [sys.executable, "-m", "ordrec.cli", "fit", "orders.csv", "-m", "slow_models:Slow"]
    for name, says in (("shop.ordrec", "stays as it was"), ("new.ordrec", "was not written")):
        fit = subprocess.Popen(
            [*command, "-o", name, "--overwrite"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert fit.stdout is not None
        assert fit.stdout.readline() == "fitting\n"
        time.sleep(0.1)  # any moment of the fit will do
        fit.send_signal(signal.SIGTERM)
        _, err = fit.communicate(timeout=120)
        assert fit.returncode == 130
        assert f"ordrec: interrupted: {name} {says}" in err
    assert Path("shop.ordrec").read_text() == "a model of yesterday"
    assert not Path("new.ordrec").exists()
