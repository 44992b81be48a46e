"""Section 4.4 of Chu and Keerthi (2007): documents of a query by relevance.

Three grades of relevance, linear kernel, 20 to 60 training documents, 100 draws of each size, SVR
against SVOREX and SVORIM, box plots. With the OHSUMED documents in the data folder (``ohsumed``:
the records and the original judgements), query 1 as in the paper: TF-IDF of titles and abstracts,
at least three documents per word, unit length, without the words of SMART's stop list
(``stopwords/smart-571.txt``; the paper's had 524 words) or else of scikit-learn's. With the
features of LETOR only (``ohsumed-letor``): every query that has enough documents of all three
grades, fewer draws of each.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ordrec.data.formats.tables import OrdinalTable
from ordrec.datasets import load_letor, load_ohsumed
from ordrec.errors import DataError, DatasetMissing
from ordrec.evaluation import Experiment, TableProblem
from ordrec.experiments.cross_validated import CrossValidated
from ordrec.experiments.runner import Reproduction, data_folder, main
from ordrec.features.text import DocumentTfidf
from ordrec.ordinal import SVOREX, SVORIM
from ordrec.ordinal.baselines import SVRanks
from ordrec.report.figures import box_plots
from ordrec.report.html import FigureSection

NAME = "svor-ohsumed"
TITLE = "Relevance of documents to a query from few judged ones"
SOURCE = "Chu and Keerthi 2007, section 4.4 and figure 5"
TIME = "about an hour with documents, ten minutes with LETOR's features"

SIZES = [20, 30, 40, 50, 60]
GRID = {"C": 10.0 ** np.arange(-3, 4)}
SMART = "stopwords/smart-571.txt"
LEAST = 10  # documents of each grade that a query must have


def run(*, data, trials, jobs, quick, out: Path) -> Reproduction:
    """Run a hundred draws of query 1, or five of every query; quick: two draws of two queries."""
    try:
        tables = [from_documents(data)]
        features = f"{tables[0].X.shape[1]} words of titles and abstracts (published: 462), query 1"
    except (DatasetMissing, DataError):
        tables, features = from_letor(data), "LETOR's features"
    if quick:
        tables = tables[:2]
    draws = trials or (2 if quick else 100 if len(tables) == 1 else 5)
    sizes = SIZES[::4] if quick else SIZES
    models = {
        name: CrossValidated(model(kernel="linear"), GRID, "mae", standardise=False)
        for name, model in {"SVR": SVRanks, "EXC": SVOREX, "IMC": SVORIM}.items()
    }
    problems = [TableProblem.drawn(table, sizes, draws) for table in tables]
    result = Experiment(models, problems, store=out / "cells").run(n_jobs=jobs)
    means = result.frame.groupby(["metric", "n_train", "model"], sort=False)["value"].mean()
    findings = [f"{len(tables)} queries by {features}, {draws} draws of each size"]
    for (metric, size), row in means.unstack().iterrows():
        findings.append(
            f"{metric}, {size} documents: " + ", ".join(f"{m} {row[m]:.4f}" for m in models)
        )
    sections = [
        FigureSection(
            f"{metric} against training documents",
            box_plots(result.frame, metric, by="n_train", label="training documents"),
            f"box-{metric}",
        )
        for metric in ("mze", "mae")
    ]
    # many rows of many queries: what the table needs of them
    cells = result.frame[["data", "model", "fold", "n_train", "metric", "value"]]
    return Reproduction(result, findings, sections=sections, usual=False, cells=cells)


def from_documents(data: Path | None) -> OrdinalTable:
    """Return query 1 of the OHSUMED collection as a table."""
    found = load_ohsumed(data_folder(data, "ohsumed"))
    judged = found.judgements[found.judgements["topic"].isin(["1", "OHSU1"])]
    documents = found.documents.reset_index().set_index("ui")
    judged = judged[judged["ui"].isin(documents.index)]
    if judged.empty or judged["grade"].nunique() < 3:
        raise DataError("query 1 does not have judged documents of all three grades")
    records: pd.DataFrame = documents.loc[judged["ui"]]
    smart = data / SMART if data is not None else None
    tfidf = DocumentTfidf("smart", stop_file=smart) if smart and smart.exists() else DocumentTfidf()
    X = tfidf.fit_transform(records).toarray()
    names = [f"word {number}" for number in range(X.shape[1])]
    return OrdinalTable(X, judged["grade"].to_numpy() + 1, names, 3, name="query 1")


def from_letor(data: Path | None) -> list[OrdinalTable]:
    """Return one table for each query that has enough documents of each grade."""
    letor = load_letor(data_folder(data, "ohsumed-letor", "OHSUMED"))
    tables = []
    for query in np.unique(letor.queries):
        rows = letor.queries == query
        X, y = letor.X[rows], letor.y[rows] + 1
        if y.size > max(SIZES) and np.bincount(y, minlength=4)[1:].min() >= LEAST:
            X = X - X.mean(axis=0)
            names = [f"feature {number}" for number in range(X.shape[1])]
            tables.append(OrdinalTable(X, y, names, 3, name=f"query {query}"))
    return tables


if __name__ == "__main__":
    main(NAME)
