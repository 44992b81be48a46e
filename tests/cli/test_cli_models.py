"""Fitting, predicting, recommending and explaining as a user types them."""

from __future__ import annotations

import io
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ordrec import load, save
from ordrec.cli import app
from ordrec.cli.chosen_models import say_chosen
from ordrec.cli.recommend import _check_order
from ordrec.data import Ratings
from ordrec.errors import ArgumentError, OrdrecError
from ordrec.recommend import RatingPredictor, Recommender, make_model, model_names
from ordrec.recommend.registry import storable_model_names


def run(*words: str) -> pd.DataFrame:
    """The csv that a command prints, run in this process."""
    done = CliRunner().invoke(app, [*words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return pd.read_csv(io.StringIO(done.stdout))


def mistake(*words: str) -> str:
    """The message of the `OrdrecError` that `main` would print."""
    done = CliRunner().invoke(app, [*words])
    assert isinstance(done.exception, OrdrecError), (done.exception, done.output)
    return str(done.exception)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((14, 11)) < 0.6)
    frame = pd.DataFrame(
        {"user": users + 1, "item": items + 50, "rating": rng.integers(1, 6, users.size),
         "timestamp": rng.integers(10_000, 20_000, users.size)}
    )  # fmt: skip
    titles = pd.DataFrame({"title": [f"Film №{k}" for k in range(11)]}, index=range(50, 61))
    return Ratings.from_frame(frame, item_table=titles, scale=range(1, 6))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, ratings) -> Path:
    """Ratings, pairs and models in files."""
    folder = tmp_path_factory.mktemp("cli")
    ratings.to_frame().to_csv(folder / "ratings.csv", index=False)
    pairs = pd.DataFrame({"user": [1, 2, 99], "item": [50, 57, 51], "timestamp": [12_000, 0, 5]})
    pairs.to_csv(folder / "pairs.csv", index=False)
    save(RatingPredictor(preset="fast").fit(ratings), folder / "fast.ordrec")
    save(make_model("bias").fit(ratings), folder / "bias.ordrec")
    save(make_model("als", n_factors=2).fit(ratings), folder / "als.ordrec")
    return folder


def test_the_way_from_ratings_to_explanations(ordrec, folder: Path, tmp_path: Path) -> None:
    """Nothing on standard error, csv on the other."""
    model = tmp_path / "model.ordrec"
    done = ordrec("fit", str(folder / "ratings.csv"), "-o", str(model), "-m", "predictor",
                  "--set", "preset=fast", "--set", "use_time=false",
                  "--set", "random_state=3")  # fmt: skip
    assert (done.code, done.out, done.err) == (0, "", "")
    fitted = load(model)
    assert (fitted.preset, fitted.use_time, fitted.random_state) == ("fast", False, 3)
    done = ordrec("predict", str(model), str(folder / "pairs.csv"))
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "user,item,rating,known_user,known_item"
    done = ordrec("recommend", str(folder / "fast.ordrec"), "--user", "3", "-n", "2")
    assert (done.code, done.err) == (0, "")
    assert "Film №" in done.out
    done = ordrec("explain", str(folder / "fast.ordrec"), "--user", "3", "--item", "52")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("source,id,title,rating,contribution\n")


def test_predictions_are_those_of_the_model(folder: Path, tmp_path: Path) -> None:
    model, pairs = str(folder / "fast.ordrec"), str(folder / "pairs.csv")
    asked = pd.read_csv(pairs)
    fitted = load(model)
    table = run("predict", model, pairs, "--proba")
    expected = fitted.predict_frame(asked)
    pd.testing.assert_frame_equal(table, expected, check_dtype=False)
    assert table["known_user"].tolist() == [True, True, False]
    out = tmp_path / "out.csv"
    done = CliRunner().invoke(app, ["predict", model, pairs, "-o", str(out)])
    assert (done.exit_code, done.output) == (0, "")
    plain = pd.read_csv(out)
    pd.testing.assert_frame_equal(plain, expected[plain.columns], check_dtype=False)
    assert "expected" not in plain


EXPLAINING_MODELS = (
    "factors",
    "predictor",
    "predictor-fast",
    "recommender",
    "recommender-fast",
)
CHOICE_MODELS = ("choice", "ordered", "ease", "als", "popularity")


@pytest.mark.parametrize("name", storable_model_names())
def test_every_model_that_can_be_saved_can_be_fitted_and_predicts(
    name: str, folder: Path, tmp_path: Path
) -> None:
    small = {
        "recommender": ["--set", "rating=factors"],
        "factors": ["--set", "max_iter=2"],
        "als": ["--set", "n_factors=2"],
        "predictor": ["--set", "learn=defaults"],
        "per-user-svor": ["--set", "min_ratings=4"],
    }
    path = str(tmp_path / "model.ordrec")
    words = ["fit", str(folder / "ratings.csv"), "-m", name, "-o", path, *small.get(name, [])]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    chose = 'ordrec: RatingPredictor chose preset="full" for 85 ratings\n'
    assert (done.exit_code, done.output) == (0, chose if name == "predictor" else "")
    table = run("predict", path, str(folder / "pairs.csv"))
    assert table["known_item"].all()
    fitted = load(path)
    assert table["rating" if hasattr(fitted, "predict") else "score"].notna().all()
    if name not in (*EXPLAINING_MODELS, *CHOICE_MODELS):
        says = mistake("recommend", path, "-u", "1")
        assert f"{type(fitted).__name__} cannot recommend" in says
        assert "Recommender, RatingPredictor, OrdinalFactors and the choice models" in says
    if name not in EXPLAINING_MODELS:
        assert "RatingPredictor" in mistake("explain", path, "-u", "1", "-i", "50")
        assert "cannot tell what is similar" in mistake("similar", path, "-i", "50")


def test_fit_says_which_preset_was_chosen_and_only_then(capsys) -> None:
    """Also in a recommender that makes its own predictor; never where somebody else has chosen."""
    for preset, rating, said in (
        ("auto", RatingPredictor("auto"), True),  # given to the recommender
        ("fast", "auto", True),  # made by the recommender, for the size of the data
        ("fast", "predictor-fast", False),
        ("fast", RatingPredictor("fast"), False),
    ):
        model = Recommender(rating=rating)
        model.rating_ = RatingPredictor(preset)
        model.rating_.preset_ = "fast"
        say_chosen(model, 250_000)
        line = 'ordrec: RatingPredictor chose preset="fast" for 250,000 ratings\n'
        assert capsys.readouterr().err == (line if said else "")


def test_the_help_names_all_models_that_can_be_saved() -> None:
    able = set()
    for name in model_names():
        try:
            able |= {name} if hasattr(make_model(name), "stored") else set()
        except ImportError:
            continue
    assert set(storable_model_names()) == able


def test_recommendations_are_those_of_the_model(folder: Path, ratings: Ratings) -> None:
    model = str(folder / "fast.ordrec")
    fitted = load(model)
    table = run("recommend", model, "-u", "3", "-u", "5", "-n", "3", "--by", "p_at_least")
    assert table["user"].tolist() == [3, 3, 3, 5, 5, 5]
    assert table["place"].tolist() == [1, 2, 3] * 2
    for user, part in table.groupby("user"):
        best = fitted.recommend(user, 3, by="p_at_least")
        assert part["item"].tolist() == best["item"].tolist()
        assert np.allclose(part["score"], best["score"])
    assert table["title"].tolist() == [f"Film №{item - 50}" for item in table["item"]]
    by_default = run("recommend", model, "-u", "3")
    assert by_default.equals(run("recommend", model, "-u", "3", "--by", "expected"))
    ranked = run("recommend", str(folder / "als.ordrec"), "-u", "3", "-n", "2")
    assert ranked.columns.tolist() == ["user", "place", "item", "score"]
    stranger = CliRunner().invoke(app, ["recommend", model, "-u", "999", "-n", "1"])
    assert "user 999 is not in the model" in stranger.stderr
    assert len(stranger.stdout.splitlines()) == 2


def test_explanations_add_up_and_have_titles(folder: Path) -> None:
    model = str(folder / "fast.ordrec")
    fitted = load(model)
    of_items = {item: fitted.explain(3, item, 15_000) for item in fitted.item_ids_.tolist()}
    item, explained = max(of_items.items(), key=lambda entry: len(entry[1].table))
    assert len(explained.table) > 4  # three rows for all, and two ratings of their own
    when = "1970-01-01T04:10:00"
    words = ["explain", model, "-u", "3", "-i", str(item), "--timestamp", when]
    whole = run(*words, "-n", "1000")
    assert len(whole) == len(explained.table)
    short = run(*words, "-n", "1")
    assert short["source"].tolist()[-1] == "others"
    for table in (whole, short):
        assert table["contribution"].sum() == pytest.approx(explained.expected, abs=1e-6)
        assert table["source"].tolist()[:3] == ["all ratings", "this item", "you"]
    own = whole[whole["source"] == "own rating"]
    assert own["title"].tolist() == [f"Film №{int(item) - 50}" for item in own["id"]]
    assert whole[whole["source"] != "own rating"]["title"].isna().all()
    sizes = whole["contribution"].abs().to_numpy()[3:]
    assert (np.diff(sizes) <= 0).all()
    done = CliRunner().invoke(app, ["explain", model, "-u", "99", "-i", "98"])
    assert "user 99 is not" in done.stderr
    assert "item 98 is not" in done.stderr


def test_ids_of_text(folder: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(folder / "ratings.csv")
    frame["user"] = "ü" + frame["user"].astype(str)
    frame.to_csv(tmp_path / "r.csv", index=False)
    path = str(tmp_path / "m")
    words = ["fit", str(tmp_path / "r.csv"), "-o", path, "-m", "predictor-fast"]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert run("recommend", path, "-u", "ü3", "-n", "2")["user"].tolist() == ["ü3", "ü3"]
    (tmp_path / "p.csv").write_text("user,item\nü3,52\n3,52\n", encoding="utf-8")
    table = run("predict", path, str(tmp_path / "p.csv"))
    assert table["known_user"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["fit", "ratings.csv", "-o", "m", "-m", "biass"], "did you mean 'bias'"),
        (["fit", "ratings.csv", "-o", "m", "--set", "preset"], "name=value"),
        (["fit", "ratings.csv", "-o", "m", "--set", "tastes=1"], "did you mean 'taste'"),
        (["fit", "ratings.csv", "-o", "m", "--set", "taste=salty"], "taste must be"),
        (["fit", "ratings.csv", "-o", "m", "-m", "predictor", "--set", "presett=fast"], "preset'"),
        (["fit", "ratings.csv", "-o", "m", "-m", "predictor", "--set", "preset=x"], "full or fast"),
        (["fit", "ratings.csv", "-o", "m", "-m", "item-knn", "--set", "k=many"], "--set k=many"),
        (["fit", "ratings.csv", "-o", "none/m"], "does not exist"),
        (["fit", "ratings.csv", "-o", "."], "is not a file"),
        (["fit", "nothing.csv", "-o", "m"], "no such file"),
        (["predict", "pairs.csv", "pairs.csv"], "pairs.csv"),
        (["predict", "bias.ordrec", "none.csv"], "no such file"),
        (["predict", "bias.ordrec", "pairs.csv", "--proba"], "a BiasModel has no probabilities"),
        (["predict", "none.ordrec", "pairs.csv"], "no such file"),
        (["predict", "none.ordrec", "pairs.csv", "-o", "none/x.csv"], "does not exist"),
        (["recommend", "none.ordrec", "-u", "1", "-o", "none/x.csv"], "does not exist"),
        (["recommend", "fast.ordrec", "-u", "ann"], "--user 'ann': the ids of this model"),
        (["recommend", "fast.ordrec", "-u", "1", "--by", "luck"], "by must be"),
        (["recommend", "fast.ordrec", "-u", "1", "--candidates", "few"], "candidates must be"),
        (["recommend", "als.ordrec", "-u", "1", "--by", "p_at_least"], "need rating distributions"),
        (["recommend", "bias.ordrec", "-u", "1"], "BiasModel cannot recommend"),
        (["recommend", "als.ordrec"], "name the users"),
        (["recommend", "als.ordrec", "-u", "1", "--for", "all"], "name the users"),
        (["recommend", "als.ordrec", "--for", "all"], "name a file to write to"),
        (["recommend", "als.ordrec", "--for", "all", "-o", "top.txt"], "name a file to write to"),
        (["recommend", "als.ordrec", "--for", "none.txt", "-o", "top.csv"], "there is no file"),
        (["recommend", "bias.ordrec", "--for", "all", "-o", "top.csv"], "BiasModel cannot"),
        (["recommend", "als.ordrec", "-u", "1", "--only", "none.txt"], "there is no file"),
        (["recommend", "als.ordrec", "-u", "1", "--only", "ratings.csv", "-n", "0"], "at least 1"),
        (["explain", "fast.ordrec", "-u", "1", "-i", "x"], "--item 'x'"),
        (["explain", "fast.ordrec", "-u", "1", "-i", "52", "--timestamp", "soon"], "'soon'"),
        (["explain", "fast.ordrec", "-u", "1", "-i", "52", "-n", "0"], "-n must be"),
    ],
)
def test_mistakes_are_reported_in_one_line(folder: Path, monkeypatch, words, says: str) -> None:
    monkeypatch.chdir(folder)
    assert says in mistake(*words)
    assert not (folder / "m").exists()


def test_a_mistake_ends_with_code_2(ordrec, folder: Path, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    done = ordrec("explain", "bias.ordrec", "-u", "1", "-i", "2")
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("ordrec: BiasModel cannot explain: fit a model that can")
    assert len(done.err.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_noticed_first(folder: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "cannot be written to" in mistake(
        "predict", str(folder / "none"), "pairs.csv", "-o", str(tmp_path / "x.csv")
    )


@pytest.fixture(scope="module")
def recommender(folder: Path) -> str:
    path = str(folder / "recommender.ordrec")
    words = ["fit", str(folder / "ratings.csv"), "-o", path, "--set", "rating=factors"]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert (done.exit_code, done.output) == (0, "")
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_lists_for_all_users_are_those_of_each(
    recommender: str, folder: Path, tmp_path: Path, ending: str
) -> None:
    out = tmp_path / f"top.{ending}"
    done = CliRunner().invoke(
        app, ["recommend", recommender, "--for", "all", "-n", "3", "-o", str(out)]
    )
    assert (done.exit_code, done.output) == (0, "")
    table = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    fitted = load(recommender)
    assert table["user"].drop_duplicates().tolist() == fitted.user_ids_.tolist()
    for user, rows in table.groupby("user"):
        expected = fitted.recommend(user, 3)
        assert rows["place"].tolist() == [1, 2, 3][: len(rows)]
        assert rows["item"].tolist() == expected["item"].tolist()
        for column in ("score", "p_pick", "expected", "p_like"):
            np.testing.assert_allclose(rows[column], expected[column], rtol=1e-5)
    assert list(tmp_path.iterdir()) == [out]  # the folder of parts is gone


def test_likely_candidates_come_from_a_recommender(recommender: str, folder, ratings) -> None:
    words = ["-u", "3", "--by", "expected", "--candidates", "likely"]
    two_stages = run("recommend", recommender, *words)
    assert not set(two_stages["item"]) & set(ratings.of_user(3)["item"])
    assert two_stages["expected"].is_monotonic_decreasing
    assert "only a Recommender knows" in mistake("recommend", str(folder / "fast.ordrec"), *words)


def test_some_users_and_some_items(recommender: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "users.txt").write_text("3\n5\n")
    (tmp_path / "items.csv").write_text("title,item\na,51\nb,52\nc,53\nd,54\n")
    (tmp_path / "not.txt").write_text("52\n")
    words = ["recommend", recommender, "--for", str(tmp_path / "users.txt"), "--include-rated",
             "--only", str(tmp_path / "items.csv"), "--exclude", str(tmp_path / "not.txt"),
             "-o", str(tmp_path / "top.csv")]  # fmt: skip
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.output) == (0, "")
    table = pd.read_csv(tmp_path / "top.csv")
    assert table.groupby("user")["item"].apply(set).to_dict() == {3: {51, 53, 54}, 5: {51, 53, 54}}


def test_a_recommender_explains_both_of_its_parts(folder: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "both.ordrec")
    words = ["fit", str(folder / "ratings.csv"), "-o", path, "--set", "rating=predictor-fast"]
    assert CliRunner().invoke(app, words).exit_code == 0
    table = run("explain", path, "-u", "3", "-i", "52", "-n", "2")
    assert table["why"].drop_duplicates().tolist() == ["pick", "like"]
    ordered = run("recommend", path, "-u", "3", "--by", "expected", "-n", "4")
    assert ordered["expected"].is_monotonic_decreasing


@pytest.mark.parametrize("command", ["fit", "predict", "recommend", "explain", "similar"])
def test_help(command: str) -> None:
    done = CliRunner().invoke(app, [command, "--help"])
    assert done.exit_code == 0
    assert "Usage" in done.output


def test_tables_of_users_and_items_are_used_and_said(folder, ratings, tmp_path) -> None:
    rng = np.random.default_rng(1)
    items = pd.DataFrame({"movieId": ratings.item_ids, "price": rng.random(11) * 9,
                          "maker": rng.choice(["a", "b"], 11)})  # fmt: skip
    users = pd.DataFrame({"user": ratings.user_ids, "plan": rng.choice(["x", "y"], 14)})
    items.to_csv(tmp_path / "items.csv", index=False)
    users.to_csv(tmp_path / "users.csv", index=False)
    tables = ["--items", str(tmp_path / "items.csv"), "--users", str(tmp_path / "users.csv")]
    words = ["fit", str(folder / "ratings.csv"), "-o", str(tmp_path / "model"), *tables]
    done = CliRunner().invoke(app, [*words, "-m", "predictor-fast"], catch_exceptions=False)
    assert "items.csv: 11 rows for 11 items; price (numeric), maker (categorical)\n" in done.stderr
    assert "users.csv: 14 rows for 14 users; plan (categorical)\n" in done.stderr
    assert load(tmp_path / "model").side_columns_ == {
        "user": {"plan": "categorical"},
        "item": {"price": "numeric", "maker": "categorical"},
    }
    done = CliRunner().invoke(app, [*words, "-m", "bias"], catch_exceptions=False)
    assert "model 'bias' does not use tables of users and items" in done.stderr
    items.assign(movieId=-ratings.item_ids).to_csv(tmp_path / "items.csv", index=False)
    assert "items.csv: item_table: none of its ids (-50, -51, -52, ...)" in mistake(*words)


def test_evaluate_takes_tables_of_items(folder, ratings, tmp_path) -> None:
    table = pd.DataFrame({"item": ratings.item_ids, "size": ["s", "l"] * 5 + ["s"]})
    table.to_csv(tmp_path / "items.csv", index=False)
    words = ["evaluate", str(folder / "ratings.csv"), "-m", "mean", "--metrics", "rmse", "-q"]
    done = CliRunner().invoke(
        app, [*words, "--items", str(tmp_path / "items.csv")], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert "items.csv: 11 rows for 11 items; size (categorical)" in done.stderr


def test_a_class_of_ones_own_may_list_for_one_user_but_not_for_all() -> None:
    lists_for_one = SimpleNamespace(recommend=lambda user, n: None)
    assert _check_order(lists_for_one, None, "all") == {}
    with pytest.raises(ArgumentError, match="cannot recommend to all"):
        _check_order(lists_for_one, None, "all", batch=True)
    lists_for_one.recommend_all = lists_for_one.recommend
    assert _check_order(lists_for_one, None, "all", batch=True) == {}
    for options in (("expected", "all"), (None, "likely")):
        with pytest.raises(ArgumentError, match="are for --user"):
            _check_order(lists_for_one, *options, batch=True)
        with pytest.raises(ArgumentError, match="need rating distributions"):
            _check_order(lists_for_one, *options)
