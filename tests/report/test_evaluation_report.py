"""The report of an evaluation: what it says first, what it shows, and what it leaves out."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.evaluation_results import distributions, made_result
from support.two_taste_ratings import two_taste_ratings

from ordrec.evaluation import EvaluationResult, evaluate
from ordrec.evaluation.problems.example_users import ExampleUser, chosen_users
from ordrec.evaluation.splits.ratings import split_from_name
from ordrec.report.evaluation import (
    _ratings_in_words,
    _tests_in_words,
    evaluation_report,
    main_metrics,
    verdict,
)

RATINGS = {"good": 0.8, "fair": 0.9, "poor": 1.2}
LISTS = {"good": 0.1, "fair": 0.3, "poor": 0.2}


def test_the_verdict_names_the_best_by_how_much_and_how_surely() -> None:
    result = made_result({"rmse": RATINGS, "ndcg@10": LISTS}, tied=(("ndcg@10", "poor"),))
    assert verdict(result) == [
        "good predicts ratings best: its rmse of 0.8000 is 0.1000 below that of fair, the next "
        "best, which is more than chance can explain.",
        "fair makes the best lists: its ndcg@10 of 0.3000 is 0.1000 above that of poor, the next "
        "best, which may be chance; one model is significantly worse.",
    ]


def test_without_lists_the_verdict_counts_metrics() -> None:
    errors = {"rmse": RATINGS, "mae": RATINGS, "mze": {"good": 0.6, "fair": 0.5, "poor": 0.7}}
    assert verdict(made_result(errors))[1] == (
        "It is the best by 2 of 3 metrics; by mze, fair is better."
    )
    assert verdict(made_result({"rmse": RATINGS, "mae": RATINGS}))[1] == (
        "It is the best by all 2 metrics."
    )


def test_what_was_not_tested_is_not_called_significant() -> None:
    (said,) = verdict(made_result({"rmse": RATINGS}, tested=False))
    assert said.endswith("is 0.1000 below that of fair, the next best.")
    assert verdict(made_result({"rmse": {"good": 0.8}})) == ["The rmse of good is 0.8000."]
    (same,) = verdict(made_result({"rmse": {"good": 0.8, "fair": 0.8}}, (("rmse", "fair"),)))
    assert same == "good predicts ratings best: its rmse of 0.8000 is also that of fair."


def test_the_main_metrics_are_of_all_kinds() -> None:
    metrics = ["rmse", "mae", "int_mae", "mze", "rps", "log_loss", "fcp", "ndcg@10"]
    result = made_result(dict.fromkeys(metrics, RATINGS))
    assert main_metrics(result) == ["rmse", "mae", "rps", "fcp"]


def test_the_page_opens_with_the_verdict_and_a_chart() -> None:
    result = made_result({"rmse": RATINGS, "ndcg@10": LISTS})
    page = evaluation_report(result).html()
    lead = page.index("good predicts ratings best")
    assert lead < page.index("<svg") < page.index("All users, micro average")
    chart = page[page.index('<div class="grid">') : page.index("<figcaption>")]
    assert chart.count("<svg") == 2
    for text in ("rmse ↓", "ndcg@10 ↑", "good", "fair", "poor"):
        assert text in chart
    notes = page[page.index("How this came about") :]
    assert "Holm" in notes
    assert "Holm" not in page[: page.index("How this came about")]


def test_columns_have_arrows_and_the_best_is_marked() -> None:
    page = evaluation_report(made_result({"rmse": RATINGS, "ndcg@10": LISTS})).html()
    assert re.search(r">rmse.↓</th>", page)
    assert re.search(r">ndcg@10.↑</th>", page)
    best = re.findall(r'<td class="best"[^>]*>([\d.]+)', page)
    assert best == ["0.8000", "0.3000", "0.8000", "0.3000"]  # both averages


def test_many_metrics_stand_below_each_other() -> None:
    metrics = {f"recall@{k}": LISTS for k in range(1, 14)}
    table = evaluation_report(made_result(metrics)).sections[1]
    assert list(table.frame.columns) == ["good", "fair", "poor"]  # type: ignore[union-attr]
    page = evaluation_report(made_result(metrics)).html()
    assert len(re.findall(r'<td class="best"', page)) == 2 * 13


@pytest.mark.parametrize(("cold", "shown"), [(49, False), (50, True)])
def test_few_cold_ratings_make_no_table(cold: int, shown: bool) -> None:
    page = evaluation_report(made_result({"rmse": RATINGS}, cold=cold)).html()
    assert ("Cold users, micro average" in page) == shown
    assert ("Warm users, micro average" in page) == shown
    assert ("49 test ratings of cold users are too few" in page) == (not shown)


def test_reliability_diagrams_stand_side_by_side() -> None:
    result = made_result({"rmse": RATINGS}, distributions=distributions(("good", "fair")))
    page = evaluation_report(result).html()
    part = page[page.index("Do probabilities mean what they say?") :]
    part = part[: part.index("</figure>")]
    assert part.count("<svg") == 2
    assert "Reliability of fair" in part
    assert "200 test ratings" in part


def test_whether_times_were_known_is_said_below_the_tables() -> None:
    result = made_result({"rmse": RATINGS})
    result.manifest["times"] = "unknown while predicting"
    page = evaluation_report(result).html()
    assert "Times: unknown while predicting." in page[: page.index("How this came about")]


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.parametrize("width", [1200, 1060, 700])
def test_tables_fit_the_window(tmp_path: Path, width: int) -> None:
    metrics = ["rmse", "mae", "int_mae", "mze", "log_loss", "rps", "ece", "ndcg@10", "fcp"]
    result = made_result(
        {metric: RATINGS | {"per-user-logistic": 1.0} for metric in metrics},
        distributions=distributions(("good", "fair")),
        examples={"good": [ExampleUser("7", 9, [(20 * "long ", 5.0)], [("a", 1.0, 2.0)], ["b"])]},
    )
    asks = """<script>document.title = Math.max(...[document.documentElement,
        ...document.querySelectorAll(".wide, figure")].map((e) => e.scrollWidth - e.clientWidth));
        </script></body>"""
    page = tmp_path / "report.html"
    page.write_text(evaluation_report(result).html().replace("</body>", asks), encoding="utf-8")
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900", "--dump-dom",
        page.as_uri(),
    ]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, timeout=180)
    title = re.search(r"<title>(-?\d+)</title>", ran.stdout)
    assert title is not None, ran.stderr[-2000:]
    assert int(title[1]) <= 0


# ---- users -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured() -> EvaluationResult:
    return evaluate(
        two_taste_ratings(0),
        ["bias", "popularity"],
        metrics=["mae", "ndcg@5"],
        keep_predictions=True,
    )


def test_five_users_show_what_the_numbers_mean(measured: EvaluationResult) -> None:
    users = measured.examples["bias"]
    assert len(users) == 5
    assert [user.user for user in users] == [user.user for user in measured.examples["popularity"]]
    known = [user.n_known for user in users]
    assert known == sorted(known)
    split = next(iter(split_from_name("holdout:0.2", random_state=0).split(two_taste_ratings(0))))
    train, test = (
        part.to_frame().set_index(["user", "item"])["rating"] for part in (split.train, split.test)
    )
    for user in users:
        for title, rating in user.rated:
            assert train[int(user.user), int(title)] == rating
        for title, rating, predicted in user.tested:
            assert test[int(user.user), int(title)] == rating
            assert predicted is not None
            assert 1 <= predicted <= 5
        assert len(user.recommended) == 3
        seen = {str(item) for item in train[int(user.user)].index}
        assert not seen & set(user.recommended)
    assert all(each[2] is None for user in measured.examples["popularity"] for each in user.tested)


def test_the_table_of_users_takes_each_column_from_the_best_model(
    measured: EvaluationResult,
) -> None:
    page = evaluation_report(measured).html()
    part = page[page.index("<h2>Five users") :]
    assert "and bias predicted" in part
    assert "would recommend" in part
    user = measured.examples["bias"][0]
    title, rating, predicted = user.tested[0]
    assert f"{title}: {rating:g}, predicted {predicted:.1f}" in part


def test_users_are_chosen_where_there_are_few() -> None:
    split = next(iter(split_from_name("holdout:0.2").split(two_taste_ratings(0, n_users=3))))
    assert 1 <= len(chosen_users(split)) <= 3


def test_users_survive_an_interrupted_run(tmp_path, measured: EvaluationResult) -> None:
    options = {"metrics": ["mae"], "keep_predictions": True, "store": tmp_path / "parts"}
    first = evaluate(two_taste_ratings(0), ["bias"], **options)
    again = evaluate(two_taste_ratings(0), ["bias"], **options)
    assert again.examples == first.examples
    assert again.examples["bias"]
    user = first.examples["bias"][0]
    assert ExampleUser.from_json(user.to_json()) == user


@pytest.mark.parametrize(("n_known", "more"), [(2, []), (9, ["and 7 more"])])
def test_what_a_user_rated_and_was_predicted_in_words(n_known: int, more: list[str]) -> None:
    user = ExampleUser("7", n_known, [("High", 5.0), ("Low", 1.5)], [], [])
    assert _ratings_in_words(user).split("\n") == ["High: 5", "Low: 1.5", *more]
    tested = ExampleUser("7", 2, [], [("New", 4.0, 3.26), ("Other", 2.0, None)], [])
    assert _tests_in_words(tested).split("\n") == ["New: 4, predicted 3.3", "Other: 2"]
