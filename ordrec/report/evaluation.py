"""The report of an evaluation: a verdict, a chart, tables with intervals, reliability, users.

The verdict says in two sentences which model is best, by how much, and how surely.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ordrec.evaluation.drawing import interval_chart
from ordrec.evaluation.metrics.measures import as_losses, direction, kind_of
from ordrec.evaluation.problems.example_users import ExampleUser
from ordrec.evaluation.result import EvaluationResult
from ordrec.report.figures import reliability_diagram, time_against_accuracy
from ordrec.report.html import FigureGrid, FigureSection, Report, Section, TableSection

__all__ = ["evaluation_report", "leading_model", "main_metrics", "verdict"]

FEWEST = 50  # test ratings of cold users that make a table
MOST_ACROSS = 12  # columns; with more, the models are side by side


def evaluation_report(result: EvaluationResult, title: str = "") -> Report:
    """Return a page about the result of `ordrec.evaluation.evaluate`.

    It opens with a verdict in two sentences and a chart of the main metrics with intervals. Then
    come tables of both averages for all users and, if there are enough cold users, for warm and
    cold users separately; seconds against the first metric; a reliability diagram of each model
    whose distributions were kept; and five users, with what they rated, what was predicted and
    what would be recommended.

    Parameters
    ----------
    result : EvaluationResult
    title : str
        By default made from the name of the data.
    """
    names = ", ".join(result.manifest.get("data", {}))
    sections: list[Section] = []
    if not result.frame.empty:
        sections = [
            _chart(result),
            *_tables(result),
            _time(result),
            *_reliability(result),
            *_users(result),
        ]
    return Report(
        title or f"{result.subject} on {names}",
        verdict(result),
        sections,
        result.manifest,
        result.failures,
        [text for text in (result.caption(), result.test_caption()) if text],
    )


def _chart(result: EvaluationResult) -> FigureGrid:
    """Values of the main metrics with their intervals, a small figure each."""
    intervals = result.intervals()
    figures = [
        (f"main-{number}", f"{metric} of all models", interval_chart(part))
        for number, metric in enumerate(main_metrics(result))
        if len(part := intervals[intervals["metric"] == metric])
    ]
    said = "Arrows point to better values; the best model is on top."
    if result.reference and not result.comparison.empty:
        said += (
            f" Bars are 95 % intervals; blue: {result.reference}, green: significantly better, "
            "grey: significantly worse, turquoise: neither."
        )
    elif not result.comparison.empty:
        said += (
            " Bars are 95 % intervals; blue: the best, turquoise: not significantly worse, grey: "
            "significantly worse."
        )
    return FigureGrid("", figures, said)


# ---- tables ------------------------------------------------------------------------------------


def _tables(result: EvaluationResult) -> list[TableSection]:
    """Both averages of each group of users; that over users is folded."""
    n_cold = _n_ratings(result, "cold")
    few = 0 < n_cold < FEWEST
    said = f" {n_cold} test ratings of cold users are too few for a table of their own."
    return [
        _table(result, average, users, said if few and average == "micro" else "")
        for users in (["all"] if few else result.user_groups)
        for average in result.reported
    ]


def _n_ratings(result: EvaluationResult, users: str) -> int:
    """The number of test ratings of a group of users, over all folds."""
    rows = result.frame[(result.frame["users"] == users) & (result.frame["average"] == "micro")]
    return int(rows.groupby("fold")["n"].max().sum())


def _table(result: EvaluationResult, average: str, users: str, more: str = "") -> TableSection:
    """Return values with half intervals; the best is bold, ~ marks those not worse."""
    table = result.table(average, users)
    frame = table.frame().replace("", np.nan).dropna(axis=1, how="all").fillna("")
    turned = frame.shape[1] > MOST_ACROSS

    def mark(row: Any, column: Any, _: Any) -> str:
        model, heading = (column, row) if turned else (row, column)
        return "best" if table.is_best(model, heading) else ""

    pooled = "all ratings together" if average == "micro" else f"the mean over {result.unit}"
    caption = f"{pooled.capitalize()}, where a metric has both. Best in bold."
    if table.tested:
        marks = "~ not significantly worse than the best"
        if result.reference:
            marks = f"+, - significantly better, worse than {result.reference}; ~ neither"
        caption += f" ± half the 95 % interval; {marks}."
    if result.times != "none":
        caption += f" Times: {result.manifest['times']}."
    if users != "all":
        caption += f" Cold: {result.manifest['cold users']}."
    return TableSection(
        f"{users.capitalize()} {result.unit}, {average} average",
        frame.T.rename_axis("metric") if turned else frame,
        caption + more,
        mark=mark,
        folded=average != result.reported[0],
    )


# ---- figures -----------------------------------------------------------------------------------


def _time(result: EvaluationResult) -> FigureSection:
    first = str(result.frame["metric"].iloc[0])
    average = result.averages()[first]
    rows = result.frame[(result.frame["users"] == "all") & (result.frame["average"] == average)]
    return FigureSection(
        "Time against accuracy",
        time_against_accuracy(rows, first),
        "time",
        f"Mean seconds per fit, without compilation, and mean {first} {direction(first)} "
        f"({average}) over the folds.",
    )


def _reliability(result: EvaluationResult) -> list[FigureGrid]:
    if not result.distributions:
        return []
    figures = [
        (
            f"reliability-{number}",
            f"Reliability of {model}",
            reliability_diagram(levels, probabilities, title=model),
        )
        for number, (model, (levels, probabilities)) in enumerate(result.distributions.items())
    ]
    n_ratings = len(next(iter(result.distributions.values()))[0])
    return [
        FigureGrid(
            "Do probabilities mean what they say?",
            figures,
            f"How often a rating occurred that was predicted with some probability, over "
            f"{n_ratings:,} test ratings and all values of the scale. On the dotted line, "
            "probabilities are right. The bars show how many predictions there are (not to scale).",
        )
    ]


# ---- users -------------------------------------------------------------------------------------


def _users(result: EvaluationResult) -> list[TableSection]:
    """Five users, as the best model for ratings and the best one for lists see them."""
    rates, ranks = _of_kind(result, "error"), _of_kind(result, "ranking")
    rates, ranks = rates or ranks, ranks or rates
    if rates is None or ranks is None or not {rates, ranks} <= set(result.examples):
        return []
    lists = {user.user: user.recommended for user in result.examples[ranks]}
    rows = {
        user.user: {
            "rated": _ratings_in_words(user),
            f"and {rates} predicted": _tests_in_words(user),
            f"{ranks} would recommend": "\n".join(lists[user.user]),
        }
        for user in result.examples[rates]
    }
    return [
        TableSection(
            "Five users",
            pd.DataFrame.from_dict(rows, orient="index").rename_axis("user"),
            "From users with few ratings to users with many, in the first fold. Of what they rated "
            "the highest and the lowest are shown; predictions are of ratings that the model did "
            "not see.",
        )
    ]


def _of_kind(result: EvaluationResult, kind: str) -> str | None:
    """The best model by the first metric of a kind."""
    for metric in main_metrics(result):
        if kind_of(metric) == kind:
            return leading_model(result, metric)
    return None


def _ratings_in_words(user: ExampleUser) -> str:
    lines = [f"{title}: {rating:g}" for title, rating in user.rated]
    more = user.n_known - len(user.rated)
    return "\n".join([*lines, f"and {more} more"] if more else lines)


def _tests_in_words(user: ExampleUser) -> str:
    return "\n".join(
        f"{title}: {rating:g}" + ("" if predicted is None else f", predicted {predicted:.1f}")
        for title, rating, predicted in user.tested
    )


N_MAIN = 4
WORDS = {
    "error": "predicts ratings best",
    "probability": "knows best how sure it is",
    "ranking": "makes the best lists",
}


def main_metrics(result: EvaluationResult) -> list[str]:
    """Return up to four metrics to be shown first: one of each kind, then others in order."""
    measured = [metric for metric in result.averages() if _n_models(result, metric)]
    first = {kind_of(metric): metric for metric in reversed(measured)}
    wanted = [first[kind] for kind in WORDS if kind in first]
    rest = [metric for metric in measured if metric not in wanted]
    chosen = [*wanted, *rest][:N_MAIN]
    return [metric for metric in measured if metric in chosen]


def leading_model(result: EvaluationResult, metric: str) -> str:
    """Return the model with the best value of a metric."""
    values = result.summary()[metric].dropna()
    return str(as_losses(metric, values).idxmin())


def verdict(result: EvaluationResult) -> list[str]:
    """Return two sentences, about ratings and about lists where both were measured.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> from ordrec.evaluation import evaluate
    >>> result = evaluate(synthetic_ratings(60, 40, n_ratings=1200, seed=0), ["mean", "bias"])
    >>> print(verdict(result)[0])  # doctest: +ELLIPSIS
    bias predicts ratings best: its rmse of ... is ... below that of mean, the next best, which
    is more than chance can explain.
    """
    metrics = main_metrics(result)
    if not metrics:
        return ["Nothing could be measured."]
    kinds = {kind_of(metric): metric for metric in reversed(metrics)}
    described = [kinds[kind] for kind in ("error", "ranking", "probability") if kind in kinds]
    sentences = [_sentence(result, metric) for metric in described[:2]]
    if len(sentences) == 1 and len(result.models) > 1:
        sentences.append(_sweep(result, described[0]))
    return [sentence for sentence in sentences if sentence]


def _sentence(result: EvaluationResult, metric: str) -> str:
    """Who is best by a metric, ahead of whom, and whether that is significant."""
    best = leading_model(result, metric)
    values = result.summary()[metric].dropna()
    if len(values) == 1:
        return f"The {metric} of {best} is {values[best]:.4f}."
    others = values.drop(best)
    following = str(as_losses(metric, others).idxmin())
    apart = values[following] - values[best]
    text = f"{best} {WORDS[kind_of(metric)]}: its {metric} of {values[best]:.4f} is "
    if round(abs(apart), 4) == 0:
        return f"{text}also that of {following}."
    text += f"{abs(apart):.4f} {'below' if apart > 0 else 'above'} that of {following}, the next "
    text += "best"
    standing = _comparison(result, metric)
    if standing.empty:
        return f"{text}."
    if following in standing.index and standing.loc[following, "verdict"] == "worse":
        return f"{text}, which is more than chance can explain."
    tied = [str(model) for model in standing.index[standing["verdict"] == "tied"]]
    if following in tied:
        worse = len(standing) - len(tied) - 1
        behind = f"; {_counted(worse)} significantly worse" if worse else ""
        return f"{text}, which may be chance{behind}."
    return f"{text}."


def _sweep(result: EvaluationResult, metric: str) -> str:
    """By how many of all metrics the best model by one metric is the best."""
    best = leading_model(result, metric)
    metrics = [name for name in result.averages() if _n_models(result, name) > 1]
    if len(metrics) < 2:
        return ""
    won = [name for name in metrics if leading_model(result, name) == best]
    lost = [name for name in metrics if name not in won]
    if not lost:
        return f"It is the best by all {len(metrics)} metrics."
    other = leading_model(result, lost[0])
    return (
        f"It is the best by {len(won)} of {len(metrics)} metrics; by {lost[0]}, {other} is better."
    )


def _counted(n: int) -> str:
    return "one model is" if n == 1 else f"{n} models are"


def _comparison(result: EvaluationResult, metric: str) -> pd.DataFrame:
    """Verdicts against the best model, by model; empty if nothing was tested against it."""
    rows = result.comparison[:0] if result.reference else result.comparison
    average = result.averages()[metric]
    rows = rows[(rows["users"] == "all") & (rows["metric"] == metric)]
    return rows[rows["average"] == average].set_index("model")


def _n_models(result: EvaluationResult, metric: str) -> int:
    return int(np.isfinite(result.summary()[metric]).sum())
