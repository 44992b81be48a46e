"""A shop's table, as a stranger brings it, through the command line and through Python.

It has semicolons, its own names of columns, ids that are texts, ISO dates, a rating given twice, a
blank and columns that are of no use. Each test quotes what a stranger once met: a wrong number, a
silence or a traceback.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.commands import Said

from ordrec import load
from ordrec.cli.parameters import in_options
from ordrec.data import Ratings
from ordrec.data.ratings import as_ratings
from ordrec.datasets import load_ratings
from ordrec.errors import ArgumentError, DataError, ModelFileError, OrdrecWarning
from ordrec.evaluation import Candidates, evaluate, tune_model
from ordrec.recommend import OrdinalFactors, Recommender, make_model
from ordrec.storage.limits import claim_memory, memory_limit

HEADER = "Customer ID;article;stars;bought on;note;branch"
COLUMNS = ["--item-col", "article", "--time-col", "bought on"]
NEW = ["--item-col", "article", "--time-col", "when"]
PAIRS = ["pairs.csv", "--item-col", "article"]


@pytest.fixture
def ordrec(ordrec, monkeypatch, shop) -> Callable[..., Said]:
    """The command line in the folder of the shop."""
    monkeypatch.chdir(shop)
    monkeypatch.syspath_prepend(shop)
    return ordrec


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    """A folder of tables, and of models that were fitted to them."""
    folder = tmp_path_factory.mktemp("shop")
    rng = np.random.default_rng(1)
    rows = []
    for customer in range(30):
        for article in np.sort(rng.choice(20, 9, replace=False)):
            mean = 2.5 + 0.6 * (article % 5) - 0.5 * (customer % 3)
            stars = int(np.clip(np.rint(rng.normal(mean, 0.8)), 1, 5))
            day = f"2024-{article % 12 + 1:02d}-{customer % 28 + 1:02d}"
            rows.append(f"{customer:03d}-X;A-{article:02d};{stars};{day};;north")
    write(folder / "shop.csv", [HEADER, *rows])
    write(folder / "twice.csv", [HEADER, *rows, rows[2].replace("2024-", "2025-")])
    write(folder / "blank.csv", [HEADER, *rows, "001-X;A-33;;2024-01-01;;north"])
    write(folder / "typo.csv", [HEADER, *rows, "001-X;A-33;55;2024-01-01;;north"])
    write(folder / "comma.csv", ["user;item;rating", "a;x;4,5", "a;y;3,0", "b;x;1,5"])
    write(folder / "no_header.csv", ["1,10,4", "1,11,5", "2,10,3"])
    write(folder / "new.csv", ["customer,article,stars,when", "001-X,A-77,5,2025-01-01",
                               "007,A-77,4,2025-01-02", "007,A-01,2,2025-01-02"])  # fmt: skip
    write(folder / "pairs.csv", ["customer;article", "001-X;A-77", "007;A-03", "002-X;A-04"])
    write(
        folder / "articles.csv",
        ["article;price;title", *(f"A-{k:02d};{k * 1.5};Thing {k}" for k in range(20))],
    )
    (folder / "sheet.xlsx").write_bytes(b"PK\3\4 as spreadsheets begin")
    (folder / "my_models.py").write_text(OWN_MODELS)
    return folder


def write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n")


OWN_MODELS = """
from dataclasses import dataclass
import numpy as np
from ordrec.recommend import BiasModel

@dataclass
class Flat:
    level: float = 3.0
    def fit(self, ratings):
        return self
    def predict(self, users, items):
        return np.full(len(users), self.level)

@dataclass(eq=False)
class OwnBias(BiasModel):
    pass

number = 3
"""


# ---- reading ---------------------------------------------------------------------------------


def test_the_table_is_read_as_it_is(ordrec) -> None:
    said = ordrec("data", "describe", "shop.csv", *COLUMNS)
    assert said.code == 0, said.err
    assert "30 users x 20 items, 270 ratings" in said.out
    assert "Scale(1..5 by 1)" in said.out
    assert "dated" in said.out
    undated = ordrec("data", "describe", "shop.csv", "--item-col", "article", "--time-col", "none")
    assert "dated" not in undated.out


def test_a_missing_column_is_answered_with_options(ordrec) -> None:
    text = Path("shop.csv").read_text(encoding="utf-8").replace("article", "thing", 1)
    Path("things.csv").write_text(text, encoding="utf-8")
    said = ordrec("fit", "things.csv", "-o", "m.ordrec")
    assert said.code == 2
    assert "things.csv: no column 'item' in the table (it has ['Customer ID', 'thing'" in said.err
    assert "name the columns with --user-col, --item-col, --rating-col, --time-col" in said.err
    assert "rating=" not in said.err


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("twice.csv", "'000-X' rated item 'A-0"),
        ("twice.csv", "pass --duplicates last or --duplicates mean"),
        ("blank.csv", "blank.csv, line 272: row 270: stars is nan (1 in all)"),
        ("typo.csv", "row 270: rating 55 is unlike the others"),
        ("typo.csv", "declare the scale with --scale if it is right"),
        ("sheet.xlsx", "is a spreadsheet: open it and save the sheet as csv"),
        ("no_header.csv", "holds numbers and no names"),
    ],
)
def test_what_cannot_be_read_is_said_in_plain_words(ordrec, file: str, says: str) -> None:
    columns = [] if file == "no_header.csv" else COLUMNS
    said = ordrec("data", "describe", file, *columns)
    assert said.code == 2
    assert says in said.err
    assert len(said.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--duplicates", "first"], '--duplicates must be "error", "last" or "mean"'),
        (["--sep", "::"], "--sep must be one character"),
        (["--scale", "one"], "--scale one: write it as 1..5, 0.5..5:0.5, 1,2,4, poor,fair,good"),
        (["--scale", "bins:x"], "--scale bins:x"),
        (["--scale", "1..4"], "is not on the declared scale Scale(1..4 by 1)"),
    ],
)
def test_options_with_wrong_values(ordrec, options: list[str], says: str) -> None:
    said = ordrec("data", "describe", "shop.csv", *COLUMNS, *options)
    assert said.code == 2
    assert says in said.err


def test_options_for_reading(ordrec) -> None:
    last = ordrec("data", "describe", "twice.csv", *COLUMNS, "--duplicates", "last")
    assert "270 ratings" in last.out
    halves = ordrec("data", "describe", "shop.csv", *COLUMNS, "--scale", "0.5..5:0.5")
    assert "Scale(0.5..5 by 0.5)" in halves.out
    assert "3 ratings" in ordrec("data", "describe", "comma.csv").out
    assert load_ratings("comma.csv").values.tolist() == [4.5, 3.0, 1.5]
    named = ordrec("data", "describe", "ml-latest-small-2016", "--scale", "1..5")
    assert "--scale is for tables of your own" in named.err


def test_weights_by_an_option_from_a_table_to_a_fit_from_disk(ordrec, shop: Path) -> None:
    table = pd.read_csv(shop / "shop.csv", sep=";")
    table["sure"] = np.where(table["article"] < "A-10", 1.0, 0.25)
    table.to_csv(shop / "sure.csv", index=False)
    weights = ["--weight-col", "sure"]
    assert ", weighted>" in ordrec("data", "describe", "sure.csv", *COLUMNS, *weights).out
    said = ordrec("data", "describe", "sure.csv", *COLUMNS, "--weight-col", "w")
    assert "no column 'w' in the table" in said.err
    assert "name the column of weights with --weight-col, or leave it out" in said.err
    parts = ["sure.csv", "sure_parts", *COLUMNS, *weights]
    assert ordrec("data", "partition", *parts).code == 0
    assert Ratings.scan("sure_parts").collect().weights.sum() == table["sure"].sum()
    small = ["--set", "n_factors=2", "--set", "max_iter=3", "--set", "use_time=false"]
    fit = ["fit", "sure.csv", *COLUMNS, "-m", "factors", *small]
    assert ordrec("fit-all", "sure_parts", "-o", "all.ordrec", *small).code == 0
    said = ordrec(*fit, *weights, "-o", "w.ordrec")
    assert (said.code, said.err) == (0, "")
    assert ordrec(*fit, "-o", "one.ordrec").code == 0
    pairs = ["nobody"] * 20, sorted(set(table["article"]))
    unweighted, weighted, from_disk = (
        load(f"{name}.ordrec").predict_proba(*pairs) for name in ("one", "w", "all")
    )
    assert np.abs(weighted - from_disk).max() < 0.02 < np.abs(weighted - unweighted).max()
    said = ordrec("fit", "sure.csv", *COLUMNS, *weights, "-m", "bias", "-o", "b.ordrec")
    assert said.err == (
        "ordrec: BiasModel ignores the weights of the ratings, all of which count as 1: pass "
        '--weight-col none, or take OrdinalFactors ("factors") or PerUserPredictor '
        '("per-user-logistic"), which count them\n'
    )


def test_an_update_with_weights(ordrec, shop: Path) -> None:
    write(shop / "sure_new.csv", ["user,item,rating,sure", "000-X,A-77,5,0.5", "000-X,A-78,4,1"])
    fit = ["fit", "shop.csv", *COLUMNS, "-m", "factors", "-o", "before.ordrec"]
    assert ordrec(*fit, "--set", "n_factors=2", "--set", "use_time=false").code == 0
    update = ["update", "before.ordrec", "sure_new.csv", "-o", "after.ordrec"]
    assert ordrec(*update, "--weight-col", "sure").code == 0
    known = load("after.ordrec").known_ratings().of_user("000-X").set_index("item")["weight"]
    assert known[["A-77", "A-78"]].tolist() == [0.5, 1.0]
    assert len(known) == 11
    assert (known.drop("A-77") == 1.0).all()


def test_an_update_is_read_on_the_scale_of_the_model(ordrec, shop: Path) -> None:
    fit = ["fit", "shop.csv", *COLUMNS, "-m", "factors", "-o", "before.ordrec"]
    assert ordrec(*fit, "--set", "n_factors=2", "--set", "max_iter=2").code == 0
    write(shop / "equal.csv", ["user,item,rating", "somebody,A-01,5", "somebody,A-02,5"])
    assert ordrec("update", "before.ordrec", "equal.csv", "-o", "after.ordrec").code == 0
    assert load("after.ordrec").known_ratings().of_user("somebody")["rating"].tolist() == [5, 5]
    write(shop / "beyond.csv", ["user,item,rating", "somebody,A-01,7"])
    said = ordrec("update", "before.ordrec", "beyond.csv", "-o", "beyond.ordrec")
    assert said.code == 2
    assert "beyond.csv, line 2: row 0: rating 7 is not on the declared scale" in said.err


def test_fine_scales_are_binned_by_an_option(ordrec, shop: Path) -> None:
    lines = [f"u{k % 9},i{k // 9},{k}" for k in range(0, 100)]
    write(shop / "fine.csv", ["user,item,rating", *lines])
    said = ordrec("data", "describe", "fine.csv")
    assert "To choose otherwise, pass --scale bins:20" in said.err
    chosen = ordrec("data", "describe", "fine.csv", "--scale", "bins:4")
    assert chosen.out.count("▇") + chosen.out.count("█") == 4


def test_partitions_of_a_table(ordrec, shop: Path) -> None:
    pytest.importorskip("pyarrow")
    said = ordrec("data", "partition", "shop.csv", "parts", *COLUMNS)
    assert said.code == 0, said.err
    assert "270 ratings" in ordrec("data", "describe", "parts").out


def test_the_library_s_own_words_become_options() -> None:
    """Of errors and warnings that are hard to bring about here, as they are worded now."""
    with memory_limit(1.0), pytest.raises(ModelFileError) as large:
        claim_memory(2e9, "the kernel")
    assert "and --max-memory is 1: raise it" in in_options(large.value)
    with pytest.raises(ArgumentError) as none, memory_limit(0):
        pass
    assert in_options(none.value).startswith("--max-memory must")
    table = pd.DataFrame({"user": [1, 2], "item": [11, 12], "rating": [3, 3]})
    with pytest.warns(OrdrecWarning) as single:
        Ratings.from_frame(table)
    assert "Pass --scale 1..5 if other ratings" in in_options(single[0].message)  # type: ignore[arg-type]
    ratings = Ratings.from_frame(table, scale=range(1, 6))
    with pytest.raises(ArgumentError) as timeless:
        OrdinalFactors(use_time=True).fit(ratings)
    assert in_options(timeless.value).startswith("--set use_time=true, but")
    with pytest.raises(DataError) as foreign:
        ratings.with_side_tables(item_table=pd.DataFrame({"item": [8, 9]}))
    assert in_options(foreign.value).startswith("--items: none of its ids")


# ---- models ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [["-m", "predictor-fast"], ["--set", "rating=factors"]])
def test_fit_predict_recommend_explain_update(ordrec, model: list[str]) -> None:
    said = ordrec("fit", "twice.csv", *COLUMNS, "--duplicates", "last", "--items", "articles.csv",
                  "-o", "shop.ordrec", "--overwrite", *model)  # fmt: skip
    assert said.code == 0, said.err
    assert "articles.csv: 20 rows for 20 items; price (numeric)" in said.err
    said = ordrec("update", "shop.ordrec", "new.csv", "-o", "new.ordrec", *NEW)
    assert said.code == 0, said.err
    assert "ordrec: 3 ratings; new: 1 of 2 users, 1 of 2 items" in said.err
    assert "007" in load("new.ordrec").user_ids_  # and not 7
    before = ordrec("predict", "shop.ordrec", *PAIRS).table
    after = ordrec("predict", "new.ordrec", *PAIRS).table
    assert before["known_user"].tolist() == [True, False, True]
    assert after["known_user"].tolist() == [True, True, True]
    assert before["rating"].between(1, 5).all()
    listed = ordrec("recommend", "new.ordrec", "--user", "007", "-n", "3").table
    assert listed["title"].str.startswith("Thing").all()
    assert "A-01" not in listed["item"].tolist()
    reasons = ordrec("explain", "new.ordrec", "--user", "007", "--item", "A-03")
    assert "A-01" in reasons.out


def test_new_items_come_with_what_is_known_of_them(ordrec, shop: Path) -> None:
    write(shop / "new_articles.csv", ["article,price", "A-77,1e3", "A-01,1.5"])
    fit = ["fit", "shop.csv", *COLUMNS, "--items", "articles.csv", "-o", "side.ordrec"]
    assert ordrec(*fit, "-m", "factors", "--set", "n_factors=2").code == 0
    update = ["update", "side.ordrec", "new.csv", *NEW]
    assert ordrec(*update, "-o", "without.ordrec").code == 0
    said = ordrec(*update, "-o", "with.ordrec", "--items", "new_articles.csv")
    assert said.code == 0, said.err
    assert "new: 1 of 2 users, 1 of 2 items" in said.err
    plain, priced = load("without.ordrec"), load("with.ordrec")
    assert plain.known_ratings().n_ratings == priced.known_ratings().n_ratings == 273
    pair = ["002-X"], ["A-77"]
    assert not np.allclose(plain.predict_proba(*pair), priced.predict_proba(*pair))
    known = ["005-X"], ["A-01"]
    np.testing.assert_allclose(plain.predict_proba(*known), priced.predict_proba(*known))


def test_columns_of_pairs(ordrec) -> None:
    assert ordrec("fit", "shop.csv", *COLUMNS, "-m", "bias", "-o", "bias.ordrec").code == 0
    said = ordrec("predict", "bias.ordrec", *PAIRS, "--user-col", "who")
    assert said.code == 2
    assert "pairs.csv: no column 'who' in the table" in said.err
    named = ordrec("predict", "bias.ordrec", *PAIRS, "--user-col", "customer")
    assert len(named.table) == 3
    said = ordrec("update", "bias.ordrec", "new.csv", "-o", "new.ordrec", *NEW)
    assert "a BiasModel cannot take in further ratings" in said.err


def test_a_model_of_ones_own(ordrec) -> None:
    fit = ["fit", "shop.csv", *COLUMNS, "-o", "own.ordrec"]
    assert ordrec(*fit, "-m", "my_models:OwnBias", "--set", "user_damping=3").code == 0
    said = ordrec("predict", "own.ordrec", *PAIRS)
    assert said.code == 2
    assert "a class of your own that is registered" in said.err
    assert said.err.rstrip().endswith(": see --class")
    assert len(ordrec("predict", "own.ordrec", *PAIRS, "--class", "my_models:OwnBias").table)
    for model, says in {
        "my_models:Flat": "cannot be saved: choose one that can, or declare what it stores",
        "my_models:Missing": "my_models has no 'Missing'",
        "my_models:number": "is neither a class nor a function",
        "no_models:Flat": "there is no module 'no_models'",
        "pathlib:Path": "is no rating model",
    }.items():
        said = ordrec(*fit, "-m", model)
        assert (said.code, says in said.err) == (2, True), said.err


def test_a_model_file_cannot_name_code(ordrec, monkeypatch) -> None:
    """A stranger's file that names a module must not import it."""
    assert (
        ordrec("fit", "shop.csv", *COLUMNS, "-m", "my_models:OwnBias", "-o", "f.ordrec").code == 0
    )
    monkeypatch.delitem(sys.modules, "my_models")
    assert ordrec("predict", "f.ordrec", *PAIRS).code == 2
    assert "my_models" not in sys.modules


def test_evaluate_says_what_is_known_of_times(ordrec) -> None:
    """Once models saw the dates of the test ratings without a word."""
    words = ["evaluate", "shop.csv", *COLUMNS, "-m", "bias", "--metrics", "mae"]
    assert "test ratings are unknown to the models" in " ".join(ordrec(*words).out.split())
    known = ordrec(*words, "--times", "known")
    assert "test ratings are known to the models" in " ".join(known.out.split())
    assert "--times must be" in ordrec(*words, "--times", "soon").err


def test_evaluate_with_settings_and_a_model_of_ones_own(ordrec) -> None:
    words = ["evaluate", "shop.csv", *COLUMNS, "-m", "bias,my_models:Flat", "--metrics", "mae"]
    said = ordrec(*words, "--set", "my_models:Flat.level=4", "--set", "bias.user_damping=2",
                  "-o", "results.json", "--overwrite")  # fmt: skip
    assert said.code == 0, said.err
    assert "Flat" in said.out
    written = Path("results.json").read_text()
    assert "Flat(level=4)" in written
    assert "user_damping=2" in written
    for setting, says in {
        "factors.n_factors=4": "'factors' is not one of the models bias, my_models:Flat",
        "n_factors=4": "write it as model.name=value, such as factors.n_factors=8",
        "bias.n_factors=4": "model 'bias' has no parameter 'n_factors'",
        "bias.user_damping=big": "user_damping is a number",
    }.items():
        said = ordrec(*words, "--set", setting)
        assert (said.code, says in said.err) == (2, True), said.err


def test_tune_saves_the_winner_and_says_how_to_fit_it(ordrec) -> None:
    words = ["tune", "shop.csv", *COLUMNS, "-m", "bias", "--search", "user_damping=1,15,60",
             "--search", "item_damping=1..30:log", "--trials", "4"]  # fmt: skip
    said = ordrec(*words, "-o", "tuned.ordrec")
    assert said.code == 0, said.err
    assert "*: the defaults" in said.out
    assert "4 settings by" in said.out
    last = said.out.strip().splitlines()[-1]
    assert last.startswith("ordrec fit shop.csv --item-col article --time-col 'bought on' --model")
    again = shlex.split(last)[1:-1]
    assert ordrec(*again, "again.ordrec").code == 0
    np.testing.assert_array_equal(
        load("tuned.ordrec").predict(["001-X"], ["A-01"]),
        load("again.ordrec").predict(["001-X"], ["A-01"]),
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["-m", "mean"], "give the values to try with --search"),
        (["-m", "bias", "--search", "n_factors"], "write it as n_factors=4,8,16 or mix=0..1"),
        (["-m", "bias", "--search", "user_damping=9..1"], "from a number to a higher one"),
        (
            ["-m", "bias", "--search", "user_damping=few..1"],
            "--search 'user_damping=few..1': could",
        ),
        (["-m", "bias", "--trials", "0"], "--trials must be at least 1"),
        (["-m", "bias", "--method", "luck"], "--method must be one of"),
        (["-m", "my_models:Flat", "-o", "m.ordrec"], "cannot be saved"),
        (["-m", "my_models:Flat"], "Flat has no get_params and set_params"),
    ],
)
def test_tune_explains_mistakes(ordrec, options: list[str], says: str) -> None:
    said = ordrec("tune", "shop.csv", *COLUMNS, *options)
    assert (said.code, says in said.err) == (2, True), said.err


# ---- from Python -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame(shop: Path) -> pd.DataFrame:
    """The shop's table as pandas reads it, with usual names of its columns."""
    table = pd.read_csv(shop / "shop.csv", sep=";")
    return table.rename(columns={"article": "product", "bought on": "timestamp"})


@pytest.mark.parametrize("name", ["bias", "factors", "ease", "predictor-fast"])
def test_fit_takes_a_data_frame(frame: pd.DataFrame, name: str) -> None:
    """Once an AttributeError: 'DataFrame' object has no attribute 'n_ratings'."""
    ratings = Ratings.from_frame(frame)
    one, two = make_model(name).fit(frame), make_model(name).fit(ratings)
    asked = ["001-X", "002-X", "nobody"], ["A-01", "A-04", "A-01"]
    predict = "predict" if hasattr(one, "predict") else "scores"
    np.testing.assert_array_equal(getattr(one, predict)(*asked), getattr(two, predict)(*asked))
    with pytest.raises(ArgumentError, match="ratings must be Ratings or a data frame with the col"):
        make_model(name).fit(ratings.matrix())
    with pytest.warns(OrdrecWarning, match="the table has no column of ratings"):
        picks = as_ratings(frame.drop(columns="stars"))
    if name == "ease":
        assert not make_model(name).fit(picks).known_ratings().has_ratings
        return
    with pytest.raises(DataError, match="predicts ratings, and the table has none"):
        make_model(name).fit(picks)


def test_fold_in_takes_a_data_frame_on_the_scale_of_the_model(frame: pd.DataFrame) -> None:
    model = make_model("factors", n_factors=2).fit(frame)
    mine = pd.DataFrame({"user": "me", "item": ["A-01", "A-02"], "rating": 4})  # one value alone
    assert "me" in model.fold_in(mine).user_ids_


def test_evaluate_takes_a_data_frame(frame: pd.DataFrame) -> None:
    assert len(evaluate(frame, "bias", metrics=["mae"]).summary()) == 1


def test_dates_are_dates_everywhere(frame: pd.DataFrame) -> None:
    """Once: row 0: timestamp '2024-01-01' is not a number."""
    assert frame["timestamp"].iloc[0].startswith("2024-")
    ratings = Ratings.from_frame(frame)
    parsed = Ratings.from_frame(frame.assign(timestamp=pd.to_datetime(frame["timestamp"])))
    np.testing.assert_array_equal(ratings.timestamps, parsed.timestamps)
    model = make_model("predictor-fast").fit(ratings)
    seconds = int(pd.Timestamp("2024-06-01", tz="UTC").timestamp())
    pair = ["001-X"], ["A-04"]
    for day in ("2024-06-01", pd.Timestamp("2024-06-01"), "2024-06-01T00:00:00Z"):
        np.testing.assert_array_equal(
            model.predict_proba(*pair, [day]), model.predict_proba(*pair, [seconds])
        )
    updated = model.update("001-X", "A-04", 5, "2025-01-01")
    assert updated.factors_.known_ratings().timestamps.max() == 1_735_689_600
    with pytest.raises(DataError, match="row 1: timestamp 'soon' is neither seconds since 1970"):
        model.predict(["001-X"] * 2, ["A-04"] * 2, ["2024-06-01", "soon"])


@pytest.mark.parametrize("name", ["popularity", "predictor-fast"])
def test_lists_are_for_one_user(frame: pd.DataFrame, name: str) -> None:
    """Once a traceback of pandas."""
    model = make_model(name).fit(frame)
    with pytest.raises(ArgumentError, match=r"one id, got 2 of them: recommend_all\(n, users\)"):
        model.recommend(["001-X", "002-X"])


def test_candidates_of_a_rating_model(frame: pd.DataFrame) -> None:
    """Once a TypeError of scikit-learn's clone."""
    grid = Candidates.grid(OrdinalFactors(), {"n_factors": [1, 2]}, "mae", n_folds=2)
    assert [model.n_factors for model in grid.models.values()] == [1, 2]
    with pytest.raises(ArgumentError, match="has no parameter 'ranks'"):
        Candidates.grid(OrdinalFactors(), {"ranks": [1, 2]}, "mae")


def test_the_same_way_from_python(frame: pd.DataFrame) -> None:
    """Check, fit, predict, recommend, explain, update, evaluate, tune, without a file."""
    with pytest.raises(DataError, match=r'user .000-X. rated item .* pass duplicates="last"'):
        Ratings.from_frame(pd.concat([frame, frame.iloc[:1]]))
    titles = pd.DataFrame({"product": frame["product"].unique()})
    titles["title"] = "Thing " + titles["product"].str[2:]
    ratings = Ratings.from_frame(frame, item_table=titles, scale=range(1, 6))
    model = Recommender(rating="factors").fit(ratings)
    assert model.predict(["001-X"], ["A-01"], ["2024-12-24"]).shape == (1,)
    assert model.recommend("001-X", n=3)["title"].str.startswith("Thing").all()
    item = model.recommend("001-X", n=1)["item"].iloc[0]
    assert "Thing" in str(model.explain("001-X", item))
    mine = model.update(["me", "me"], ["A-01", "A-02"], [5, 1], ["2025-01-01", "2025-01-02"])
    assert not {"A-01", "A-02"} & set(mine.recommend("me", n=20)["item"])
    result = evaluate(ratings, {"mine": Recommender(rating="bias"), "bias": "bias"},
                      metrics=["rmse"], n_resamples=50)  # fmt: skip
    assert result.complete
    found = tune_model(ratings, "item-knn", n_trials=3, split="holdout:0.2", method="random")
    assert found.best_score <= found.default_score
    assert len(found.model.predict(["001-X"], ["A-01"])) == 1
