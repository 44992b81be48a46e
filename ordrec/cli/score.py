"""``ordrec score``: predictions that were made elsewhere, measured on a test part."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordrec.cli.evaluate import (
    AgainstOption,
    AverageOption,
    CandidatesOption,
    DecisionOption,
    GroupsOption,
    LikeOption,
    MetricsOption,
    OutputOption,
    OverlapOption,
    PropensityOption,
    ReportOption,
    SavePredictionsOption,
    SaveUsersOption,
    SeedOption,
    chosen_averages,
    chosen_metrics,
    further_writers,
    print_tables,
    read_propensity,
)
from ordrec.cli.options import QuietOption, words_of
from ordrec.cli.outputs import OverwriteOption, result_writer
from ordrec.cli.reading import USUAL, Reading, options_of_reading
from ordrec.cli.side_data import ItemsOption, UsersOption, with_side_data
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation.defaults import CANDIDATES, DECISION

if TYPE_CHECKING:
    from ordrec.data import Ratings
    from ordrec.evaluation import Predictions

FilesArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="PREDICTIONS... TEST",
        help="Files of predictions, csv or parquet, and last the test ratings. Predictions have "
        "users, items, and one of: a column prediction (or est, expected, rating), columns p_1, "
        "p_2, ... with the probabilities of ratings, a column rank or score. NAME=FILE names one.",
    ),
]
KindOption = Annotated[
    str,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="What is predicted: ratings, distributions or lists; auto for what the columns say.",
    ),
]
ColumnOption = Annotated[
    str | None,
    typer.Option(
        "--column",
        metavar="NAME",
        help="The column of predictions, if it is called otherwise; with --kind.",
    ),
]
TrainOption = Annotated[
    Path | None,
    typer.Option(
        "--train",
        metavar="FILE",
        help="The ratings that the predictions were learnt from: what a user rated there is left "
        "out of their list. Needed for --models.",
    ),
]
ModelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--models",
        "--model",
        "-m",
        metavar="NAMES",
        help="Models of ordrec to fit on --train and to measure beside the predictions.",
    ),
]


@options_of_reading()
def score(
    files: FilesArgument,
    kind: KindOption = "auto",
    column: ColumnOption = None,
    train: TrainOption = None,
    models: ModelsOption = None,
    groups: GroupsOption = None,
    propensity: PropensityOption = None,
    against: AgainstOption = None,
    overlap: OverlapOption = None,
    metrics: MetricsOption = None,
    decision: DecisionOption = DECISION,
    average: AverageOption = "micro",
    candidates: CandidatesOption = CANDIDATES,
    like: LikeOption = None,
    seed: SeedOption = 0,
    output: OutputOption = None,
    report: ReportOption = None,
    save_users: SaveUsersOption = None,
    save_predictions: SavePredictionsOption = None,
    reading: Reading = USUAL,
    items: ItemsOption = None,
    users: UsersOption = None,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
) -> None:
    """Measure predictions of other libraries on test ratings.

    The table has intervals over users and tests against the best, and calls a file by its name
    without ending. Every test rating must have its prediction; a user without a list has an empty
    one.
    """
    from ordrec.cli.chosen_models import made_models
    from ordrec.evaluation import evaluate_predictions

    averages = chosen_averages(average, propensity)
    *predicted, test_file = files
    if not predicted:
        raise ArgumentError("name files of predictions, and last the file of test ratings")
    if models and train is None:
        raise ArgumentError("--models: name the ratings to fit them on with --train")
    named = _named_files(predicted)
    about: dict[str, Any] = {
        "inputs": [*named.values(), test_file, train, users, items, propensity],
        "overwrite": overwrite,
    }
    writers = [result_writer(path, **about) for path in output or []]
    writers += further_writers(report, save_users, save_predictions, **about)
    known = None if train is None else reading.ratings(str(train))
    test = reading.ratings(str(test_file)) if known is None else reading.part(test_file, known)
    if known is not None:
        known = with_side_data(known, reading, users, items)
    else:
        test = with_side_data(test, reading, users, items)
    compared: dict[str, Any] = {
        name: _predictions(path, kind, column, reading, test) for name, path in named.items()
    }
    for name, model in (
        made_models(words_of(models, "--models"), [], seed).items() if models else ()
    ):
        if name in compared:
            raise ArgumentError(f"a model and a file are called {name!r}: write NAME=FILE")
        compared[name] = model
    result = evaluate_predictions(
        compared,
        test,
        train=known,
        metrics=chosen_metrics(metrics) or None,
        decision=decision,
        candidates=candidates,
        like=like,
        groups=groups,
        propensity=read_propensity(propensity, test),
        against=against,
        seed=seed,
        keep_predictions=any((report, save_predictions, overlap)),
    )
    for write in writers:
        write(result)
    if not quiet:
        print_tables(result, averages, overlap)


def _named_files(files: list[Path]) -> dict[str, Path]:
    """The files by the names of their models."""
    named: dict[str, Path] = {}
    for file in files:
        name, equals, path = str(file).partition("=")
        if not equals or file.exists():
            name, path = file.name.partition(".")[0], str(file)
        if name in named:
            raise ArgumentError(f"two files are called {name!r}: write NAME=FILE")
        named[name] = Path(path)
    return named


def _predictions(
    path: Path, kind: str, column: str | None, reading: Reading, test: Ratings
) -> Predictions:
    """Read a file of predictions, with ids of the types of the test ratings."""
    from ordrec.data.columns import find_pair_columns
    from ordrec.data.formats.archives import prefix_errors
    from ordrec.data.ids import ids_like
    from ordrec.data.read import load_side_table, load_texts
    from ordrec.evaluation import predictions_from_frame

    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    if path.suffix.lower() == ".parquet":
        frame = load_side_table(path)
    else:
        frame = load_texts(path, encoding=reading.encoding)
    user, item = reading.user_col or "user", reading.item_col or "item"
    with prefix_errors(str(path)):
        for_ids = zip(
            find_pair_columns(frame.columns, user, item, None)[:2],
            (test.user_ids, test.item_ids),
            strict=True,
        )
        for name, known in for_ids:
            frame[name] = ids_like(known, frame[name].astype(str), name)
        return predictions_from_frame(frame, kind, user=user, item=item, column=column)  # type: ignore[arg-type]
