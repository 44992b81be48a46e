"""``ordrec rank``: fit, evaluate, predict, explain and update; documents by graded relevance."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordrec.cli.options import (
    EncodingOption,
    MemoryOption,
    NoBarOption,
    OfflineOption,
    QuietOption,
    TableOption,
    console,
    place_of,
    progress_bar,
    words_of,
)
from ordrec.cli.outputs import (
    OverwriteOption,
    check_output,
    report_writer,
    result_writer,
    table_writer,
)
from ordrec.errors import visible

if TYPE_CHECKING:
    import pandas as pd

    from ordrec.documents import Judgements, RelevanceRanker

JUDGED = (
    "Judged documents: a csv or parquet table with columns query, grade, perhaps document, and "
    "texts or features; a folder or file of LETOR; a folder of OHSUMED as in TREC-9; a qrels file "
    "of TREC with --documents and --queries; or the name of a data set, such as ohsumed-letor."
)
JudgedArgument = Annotated[str, typer.Argument(metavar="JUDGED", help=JUDGED)]
DocumentsOption = Annotated[
    Path | None,
    typer.Option(
        "--documents", metavar="FILE", help="For qrels: a csv with a column document, and texts."
    ),
]
QueriesOption = Annotated[
    Path | None,
    typer.Option(
        "--queries",
        metavar="FILE",
        help="For qrels: a csv with a column query, and the words of each. Without it, queries "
        "are topics of which only the name is known.",
    ),
]
GradesOption = Annotated[
    str | None,
    typer.Option(
        "--scale",
        metavar="WORDS",
        help="Grades that are words, from the worst to the best: poor,fair,good.",
    ),
]

RankerArgument = Annotated[Path, typer.Argument(metavar="RANKER", help="From 'ordrec rank fit'.")]
NewArgument = Annotated[
    Path,
    typer.Argument(
        metavar="NEW",
        help="A csv with columns query, perhaps document, and the texts or features that the "
        "ranker was fitted to; or a file of LETOR.",
    ),
]


def rank_fit(
    judged: JudgedArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="File for the ranker.")
    ],
    ranker: Annotated[
        str,
        typer.Option(
            "--ranker",
            "-m",
            metavar="NAME",
            help="ordinal (chosen on queries held out), or an estimator of ordrec.ordinal.",
        ),
    ] = "ordinal",
    documents: DocumentsOption = None,
    queries: QueriesOption = None,
    scale: GradesOption = None,
    encoding: EncodingOption = None,
    offline: OfflineOption = False,
    overwrite: OverwriteOption = False,
    quiet: NoBarOption = False,
) -> None:
    """Fit a ranker to judged documents and save it.

    It says what the documents were taken for: rows of features, texts with the words of their
    queries, or topics that have a model each.
    """
    from ordrec.documents import RelevanceRanker, make_ranker
    from ordrec.errors import ArgumentError
    from ordrec.files import save

    check_output(output, "model", [place_of(judged)], overwrite=overwrite)
    unfitted = make_ranker(ranker)
    if not isinstance(unfitted, RelevanceRanker) or ranker in ("ridge", "ranksvm", "lambdamart"):
        raise ArgumentError(
            f"--ranker {ranker} cannot be saved: choose ordinal, or an estimator of ordrec.ordinal"
        )
    found = _judgements(judged, documents, queries, scale, encoding, offline)
    _need_documents(found)
    with progress_bar(quiet, f"fitting {ranker} to {len(found):,} judged documents"):
        fitted = unfitted.fit(found.X, found.grades, found.queries)
    save(fitted, output)
    if not quiet:
        chosen = "" if fitted.choice_ is None else f"; chosen: {fitted.choice_['setting'][0]}"
        print(f"{found!r}, taken for {fitted.kind_}{chosen}", file=sys.stderr)


def rank_evaluate(
    judged: Annotated[
        str | None,
        typer.Argument(metavar="[JUDGED]", help=f"{JUDGED} By default a small bundled sample."),
    ] = None,
    rankers: Annotated[
        list[str] | None,
        typer.Option(
            "--rankers",
            "--ranker",
            "-m",
            metavar="NAMES",
            help="Separated by commas or each with its own -m: ordinal, bm25, ridge, ranksvm, "
            "lambdamart, an estimator of ordrec.ordinal, or a file from 'ordrec rank fit'.",
        ),
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(
            "--run", metavar="FILE", help="A run file of TREC to measure. Can be repeated."
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics", metavar="NAMES", help="Such as ndcg@10, map, err@20, mrr, p@5, recall@20."
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference", metavar="NAME", help="Also print paired tests against this ranker."
        ),
    ] = None,
    folds: Annotated[
        int, typer.Option("--folds", metavar="N", help="Parts that queries are divided into.")
    ] = 5,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Seed of folds and draws.")
    ] = 0,
    documents: DocumentsOption = None,
    queries: QueriesOption = None,
    scale: GradesOption = None,
    encoding: EncodingOption = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Also write the results to FILE.csv or .json."
        ),
    ] = None,
    per_query: Annotated[
        Path | None,
        typer.Option("--per-query", metavar="FILE", help="Also write the values of each query."),
    ] = None,
    write_runs: Annotated[
        Path | None,
        typer.Option("--write-runs", metavar="FOLDER", help="Also write run files and qrels."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Also write a report to FILE.html."),
    ] = None,
    offline: OfflineOption = False,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare rankers on queries that were held out of their training.

    Intervals are over queries. Published folds are used where the data has them, such as those of
    LETOR; files and runs are measured on all queries.
    """
    from ordrec.documents import evaluate_ranking, read_run
    from ordrec.documents.evaluation import METRICS
    from ordrec.documents.judgements import sample_of_judgements
    from ordrec.evaluation.run import Interrupted
    from ordrec.report.tables import print_summary

    judged = str(sample_of_judgements()) if judged is None else judged
    about: dict[str, Any] = {"inputs": [place_of(judged)], "overwrite": overwrite}
    writers = [result_writer(path, **about) for path in output or []]
    if report is not None:
        writers.append(report_writer(report, **about))
    if per_query is not None:
        check_output(per_query, "values of queries", **about)
    found = _judgements(judged, documents, queries, scale, encoding, offline)
    compared: dict[str, Any] = {path.stem: read_run(path) for path in run or []}
    named = words_of(rankers, "--rankers") if rankers else []
    for name in named or ([] if compared else _usual(found)):
        is_file = Path(name).is_file()
        compared[Path(name).stem if is_file else name] = _loaded(name, None) if is_file else name
    interrupted = False
    try:
        with progress_bar(quiet, f"ranking {len(found):,} documents"):
            result = evaluate_ranking(
                compared,
                found,
                metrics=METRICS if metrics is None else words_of(metrics, "--metrics"),
                folds=folds,
                seed=seed,
                verbose=False,
            )
    except Interrupted as interruption:
        result, interrupted = interruption.result, True
        print("ordrec: interrupted: this is what was finished", file=sys.stderr)
    for write in writers:
        write(result)
    if per_query is not None:
        table_writer(per_query, "values of queries", overwrite=True)(result.queries)
    if write_runs is not None:
        _write_runs(result, write_runs)
    if not quiet:
        if not result.frame.empty:
            print_summary(console(), result, "macro")
        if reference is not None and not interrupted:
            metric = next(iter(result.averages()))
            print(f"\n{metric} against {reference}, signed-rank tests over queries:")
            print(result.against(reference).round(4).to_string())
    for failed in result.failures.drop_duplicates("model").itertuples():
        words = " ".join(str(failed.error).split())
        print(f"ordrec: {visible(f'{failed.model} failed: {words}')}", file=sys.stderr)
    if interrupted:
        raise typer.Exit(130)
    if not result.complete:
        raise typer.Exit(1)


def rank_predict(
    model: RankerArgument,
    new: NewArgument,
    encoding: EncodingOption = None,
    output: TableOption = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each grade.")
    ] = False,
    max_memory: MemoryOption = None,
    overwrite: OverwriteOption = False,
    quiet: NoBarOption = False,
) -> None:
    """Rank new documents: for each query the best first, as csv."""
    import numpy as np

    from ordrec.documents.judgements import documents_of, read_documents

    write = table_writer(output, "rankings", inputs=[model, new], overwrite=overwrite)
    ranker = _loaded(model, max_memory)
    X, asked, names = documents_of(read_documents(new, encoding=encoding))
    with progress_bar(quiet, f"ranking {len(asked):,} documents"):
        ranking = ranker.rank(X, asked, np.arange(len(asked)))
        if proba:
            p = ranker.predict_proba(X, asked)[ranking["document"].to_numpy()]
            for place, grade in enumerate(ranker.grades_):
                ranking[f"p_{grade:g}"] = p[:, place]
    ranking["document"] = names[ranking["document"].to_numpy()]
    write(ranking)


def rank_explain(
    model: RankerArgument,
    new: NewArgument,
    query: Annotated[
        str,
        typer.Option(
            "--query", metavar="TEXT", help="As it stands in NEW; needed if there are several."
        ),
    ] = "",
    document: Annotated[
        str,
        typer.Option(
            "--document",
            metavar="ID",
            help="As it stands in NEW; by default the first of its query.",
        ),
    ] = "",
    n: Annotated[int, typer.Option("-n", metavar="N", help="Number of features, at most.")] = 20,
    encoding: EncodingOption = None,
    output: TableOption = None,
    max_memory: MemoryOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Show which features lift a document above the next one.

    The csv has one row per feature, the one that changes the order most first: its value, that of
    the other document, and what the difference adds to the score. The last document of a query is
    compared with the one above it.
    """
    import numpy as np

    from ordrec.documents.judgements import documents_of, read_documents
    from ordrec.errors import ArgumentError

    write = table_writer(output, "lifts", inputs=[model, new], overwrite=overwrite)
    if n < 1:
        raise ArgumentError(f"-n must be at least 1, got {n}")
    ranker = _loaded(model, max_memory)
    X, asked, names = documents_of(read_documents(new, encoding=encoding))
    ranking = ranker.rank(X, asked, np.arange(len(asked)))
    ranking = ranking.assign(name=names[ranking["document"].to_numpy()])
    place = _place_of(ranking, query, document, new)
    of_query = ranking[ranking["query"] == ranking["query"].iloc[place]].reset_index(drop=True)
    here = ranking.iloc[place]
    table = ranker.explain(X, asked, int(here["document"]))
    other = of_query.iloc[here["rank"] if here["rank"] < len(of_query) else here["rank"] - 2]
    print(
        f"{here['name']} is number {here['rank']} of {len(of_query)} for query {here['query']}, "
        f"compared with {other['name']}, number {other['rank']}; scores {here['score']:.4g} and "
        f"{other['score']:.4g}",
        file=sys.stderr,
    )
    weightiest = np.argsort(-table["lift"].abs().to_numpy(), kind="stable")[:n]
    write(table.iloc[np.sort(weightiest)])


def rank_update(
    model: RankerArgument,
    judged: JudgedArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="File for the updated ranker.")
    ],
    documents: DocumentsOption = None,
    queries: QueriesOption = None,
    scale: GradesOption = None,
    encoding: EncodingOption = None,
    offline: OfflineOption = False,
    max_memory: MemoryOption = None,
    overwrite: OverwriteOption = False,
    quiet: NoBarOption = False,
) -> None:
    """Take further judgements into a ranker.

    The settings that were chosen and what is known about words stay; otherwise the ranker is fitted
    to the old and the new judgements together.
    """
    from ordrec.files import save

    check_output(output, "model", [model, place_of(judged)], overwrite=overwrite)
    ranker = _loaded(model, max_memory)
    found = _judgements(judged, documents, queries, scale, encoding, offline)
    _need_documents(found)
    with progress_bar(quiet, f"updating with {len(found):,} judged documents"):
        updated = ranker.update(found.X, found.grades, found.queries)
    save(updated, output)
    if not quiet:
        print(f"{found!r}, taken in as {updated.kind_}", file=sys.stderr)


def _place_of(ranking: pd.DataFrame, query: str, document: str, new: Path) -> int:
    """The row of a ranking with this query and document, given as texts; empty ones are open."""
    import numpy as np

    from ordrec.errors import ArgumentError

    asked, named = ranking["query"].astype(str), ranking["name"].astype(str)
    if not query and document:
        query = next(iter(asked[named == document]), "")
        if asked[named == document].nunique() > 1:
            raise ArgumentError(f"{new}: {document!r} is there for several queries: add --query")
    elif not query:
        query = str(asked.iloc[0])
        if asked.nunique() > 1:
            raise ArgumentError(
                f"{new}: has {asked.nunique()} queries: name one with --query, such as {query!r}"
            )
    found = (asked == query) & ((named == document) if document else True)
    if not found.any():
        what = "document" if (asked == query).any() or not query else "query"
        told = document if what == "document" else query
        raise ArgumentError(f"{new}: has no {what} {told!r}: write it as it stands there")
    return int(np.flatnonzero(found)[0])


def _judgements(
    judged: str,
    documents: Path | None,
    queries: Path | None,
    scale: str | None,
    encoding: str | None,
    offline: bool,
) -> Judgements:
    """Read judgements by path, or by the name of a data set."""
    from ordrec.datasets import list_datasets, load_dataset
    from ordrec.documents import Judgements, read_judgements
    from ordrec.errors import ArgumentError

    if judged not in list_datasets() or Path(judged).exists():
        return read_judgements(
            judged,
            documents=documents,
            queries=queries,
            scale=None if scale is None else words_of([scale], "--scale"),
            encoding=encoding,
        )
    for option, value in {"--scale": scale, "--encoding": encoding}.items():
        if value is not None:
            raise ArgumentError(f"{option} is for files, not for {judged}: leave it out")
    found = load_dataset(judged, offline=offline)
    try:
        return Judgements.of(found)
    except ArgumentError:
        raise ArgumentError(
            f"{judged} holds {type(found).__name__}, not judged documents: see 'ordrec evaluate'"
        ) from None


def _need_documents(found: Judgements) -> None:
    from ordrec.errors import DataError

    if found.X is None:
        raise DataError(
            f"{found.name}: has grades only: name the texts with --documents and --queries"
        )


def _usual(found: Judgements) -> list[str]:
    """BM25 where there are texts, ridge regression, RankSVM and our own."""
    from ordrec.documents import RelevanceRanker

    if found.X is None:
        _need_documents(found)
    kind = RelevanceRanker().recognised(found)
    if kind == "topics":
        return ["ordinal"]
    return ["ordinal", *(["bm25"] if kind == "texts" else []), "ridge", "ranksvm"]


def _loaded(path: str | Path, max_memory: float | None) -> RelevanceRanker:
    from ordrec.documents import RelevanceRanker
    from ordrec.errors import ArgumentError
    from ordrec.files import load

    found = load(path) if max_memory is None else load(path, max_memory=max_memory)
    if not isinstance(found, RelevanceRanker):
        raise ArgumentError(
            f"{path}: holds a {type(found).__name__}, which ranks no documents: fit one with "
            "'ordrec rank fit'"
        )
    return found


def _write_runs(result: Any, folder: Path) -> None:
    from ordrec.documents import write_qrels, write_run
    from ordrec.runtime.files import make_folder

    make_folder(folder)
    # Names of runs and qrels are single words: texts are numbered in the order of the judgements.
    rankings = result.rankings.copy()
    words = rankings["query"].astype(str)
    if words.str.contains(r"\s").any():
        numbers = {word: f"q{place + 1}" for place, word in enumerate(dict.fromkeys(words))}
        rankings["query"] = words.map(numbers)
        lines = "".join(f"{number}\t{word}\n" for word, number in numbers.items())
        (folder / "queries.tsv").write_text(lines, encoding="utf-8")
    for name, part in rankings.groupby("model", sort=False):
        write_run(part, folder / f"{name}.run", tag=str(name))
    write_qrels(rankings.drop_duplicates(["query", "document"]), folder / "qrels.txt")
