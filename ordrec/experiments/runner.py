"""Run published experiments by name and write their results.

A pipeline is a file below the folder ``pipelines`` with

* ``NAME``, ``TITLE`` and ``SOURCE``: its name, what it shows, who published it;
* ``TIME``: how long the complete run takes, in words (estimated from one trial where that is
  hours);
* ``run(*, data, trials, jobs, quick, out)``, which returns a `Reproduction`: ``data`` is the folder
  of data sets or None, ``trials`` a number or None for as many as were published, ``jobs`` the
  number of processes, ``quick`` whether to run a part of about a minute, ``out`` the folder
  for results (an experiment keeps its cells in ``out / "cells"``, so that a stopped run continues).
  Further keyword arguments with defaults (a tuple of texts, a text or a number) are options of
  the file run as a script: with ``sets=()`` it takes ``--sets pyrim,machine``. An option named
  ``ratings`` is its argument, as in ``per_user.py ml-1m``: a name, a folder or a file.

The names are read without running the files. In a checkout the folder is beside the
package, in an installed ordrec inside it.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd

from ordrec.errors import ArgumentError, DatasetMissing
from ordrec.evaluation.manifest import circumstances
from ordrec.evaluation.result import EvaluationResult
from ordrec.experiments.published import in_words, published_section
from ordrec.report.html import FigureSection, Report, TableSection, experiment_report
from ordrec.runtime.files import make_folder, write_text
from ordrec.runtime.progress import progress

__all__ = [
    "Pipeline",
    "Reproduction",
    "among",
    "data_folder",
    "list_pipelines",
    "main",
    "published_csv",
    "reproduce",
]

CONTRACT = ("data", "trials", "jobs", "quick", "out")
WRITTEN = (
    "results.csv", "cells.csv", "comparison.csv", "failures.csv", "manifest.json", "report.html",
)  # fmt: skip


@dataclass(frozen=True)
class Pipeline:
    """A published experiment that can be run by name."""

    name: str
    title: str
    source: str
    time: str
    path: Path

    def load(self) -> ModuleType:
        """Import the file as a module."""
        from importlib.util import module_from_spec, spec_from_file_location

        spec = spec_from_file_location(f"ordrec_pipeline_{self.name}", self.path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        _pickle_by_value(module)
        return module

    def options(self) -> dict[str, Any]:
        """Return the options of its ``run`` beyond the contract, with their defaults."""
        parameters = inspect.signature(self.load().run).parameters
        return {name: p.default for name, p in parameters.items() if name not in CONTRACT}


@dataclass
class Reproduction:
    """The results of a pipeline.

    Attributes
    ----------
    result : EvaluationResult or DataFrame
        A frame where the numbers did not come from an `ordrec.evaluation.Experiment`.
    findings : list of str
        One sentence per claim of the paper that was checked.
    comparison : DataFrame, optional
        As made by `ordrec.experiments.published.beside_published`.
    sections : list
        Tables and figures in addition to the usual ones.
    usual : bool
        Whether the report begins with the usual tables and figures of an experiment.
    checksums : dict of str
        Hashes of the data by name, where ``result`` is a frame (an experiment has its own).
    cells : DataFrame, optional
        What `ordrec.experiments.recorded.record` takes in place of ``result``, where that has many
        more rows than are shown, or lacks some that are.
    """

    result: EvaluationResult | pd.DataFrame
    findings: list[str] = field(default_factory=list)
    comparison: pd.DataFrame | None = None
    sections: list[TableSection | FigureSection] = field(default_factory=list)
    usual: bool = True
    checksums: dict[str, str] = field(default_factory=dict)
    cells: pd.DataFrame | None = None

    @property
    def complete(self) -> bool:
        """Whether no cell failed."""
        return not isinstance(self.result, EvaluationResult) or self.result.complete


def pipelines_folder() -> Path:
    """Return the folder of pipelines: inside an installed package, beside it in a checkout."""
    package = Path(__file__).parent.parent
    for folder in (package / "pipelines", package.parent / "pipelines"):
        if folder.is_dir():
            return folder
    raise DatasetMissing(f"no folder 'pipelines' in {package} or beside it: install ordrec again")


def published_csv(name: str) -> Path:
    """Return the path of the file of published numbers of a pipeline."""
    return pipelines_folder() / "published" / f"{name}.csv"


def list_pipelines(folder: str | Path | None = None) -> dict[str, Pipeline]:
    """Return all pipelines by name.

    Examples
    --------
    >>> list_pipelines()["svor-grading"].title
    'Grades of 24 students: thresholds out of order, equal, and in order'
    """
    found = {}
    for path in sorted(Path(folder or pipelines_folder()).rglob("*.py")):
        words = _constants(path)
        if {"NAME", "TITLE", "SOURCE", "TIME"} <= set(words):
            found[words["NAME"]] = Pipeline(
                words["NAME"], words["TITLE"], words["SOURCE"], words["TIME"], path
            )
    return dict(sorted(found.items()))


def reproduce(
    name: str,
    *,
    data: str | Path | None = None,
    trials: int | None = None,
    jobs: int | None = None,
    quick: bool = False,
    out: str | Path | None = None,
    echo: Callable[[str], Any] = print,
    **options: Any,
) -> Reproduction:
    """Run a pipeline, print its findings and write csv, figures and a report.

    Parameters
    ----------
    name : str
        One of `list_pipelines`.
    data : path, optional
        The folder of data sets; by default the one named by ORDREC_DATA.
    trials : int, optional
        Number of trials; by default as many as were published.
    jobs : int, optional
        Number of parts run at a time; -1 for all processors. By default one, unless a
        `ordrec.runtime.parallel.default_engine` is set.
    quick : bool
        Whether to run only a part that takes about a minute.
    out : path, optional
        Folder for the results, by default ``reproduced/NAME`` (``NAME-quick`` for a quick
        run). Finished parts of an earlier run are read from there.
    echo : callable
        The function that prints a line.
    **options
        Options of this pipeline only, such as ``sets`` where it has several: a list, or names
        separated by commas.
    """
    pipelines = list_pipelines()
    if name not in pipelines:
        near = difflib.get_close_matches(name, pipelines, 3, 0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(pipelines)}"
        raise ArgumentError(f"no pipeline is called {name!r}: {hint}")
    if trials is not None and trials < 1:
        raise ArgumentError(f"trials must be at least 1, got {trials}")
    if jobs == 0:
        raise ArgumentError("jobs must not be 0: give 1, more, or -1 for all processors")
    pipeline = pipelines[name]
    options = _checked(options, pipeline) if options else {}
    given = os.environ.get("ORDREC_DATA") if data is None else data
    folder = None if given is None else Path(given).expanduser()
    if folder is not None and not folder.is_dir():
        raise DatasetMissing(f"no such folder: {folder}")
    target = _results_folder(out or Path("reproduced") / (f"{name}-quick" if quick else name))
    echo(f"{pipeline.title} ({pipeline.source})")
    echo("a quick run: under a minute" if quick else f"the whole run takes {pipeline.time}")
    around = circumstances()
    asked = {"name": name, "trials": trials, "quick": quick, "options": options}
    if not _has_manifest(target):  # a run that is killed while it writes is known by it
        write_text(target / "manifest.json", json.dumps({"experiment": asked}) + "\n")
    with progress(name):
        found = pipeline.load().run(
            data=folder, trials=trials, jobs=jobs, quick=quick, out=target, **options
        )
    found.findings += in_words(published_csv("in_words").with_suffix(".toml"), name)
    for line in _printed(found):
        echo(line)
    if isinstance(found.result, EvaluationResult):
        around = found.result.manifest
    else:
        around |= {"data": found.checksums, "commits": [around["commit"]]}
    written = _write(found, pipeline, target, around | {"experiment": asked})
    echo(f"written: {written}")
    return found


def main(name: str) -> None:
    """Run the command line of one pipeline's file; the exit code is 1 if a cell failed."""
    from ordrec.errors import OrdrecError

    pipeline = list_pipelines()[name]
    options = argparse.ArgumentParser(description=f"{pipeline.title} ({pipeline.source})")
    options.add_argument("--data", help="folder of data sets (default: ORDREC_DATA)")
    options.add_argument("--trials", type=int, help="number of trials (default: as published)")
    options.add_argument("--jobs", type=int, default=1, help="number of processes")
    options.add_argument(
        "--quick", action="store_true", help="run a part that takes about a minute"
    )
    options.add_argument("--out", help="folder for the results")
    for option, default in pipeline.options().items():
        if option == "ratings":
            about = f"a data set by name, or a folder or file of ratings (default: {default})"
            options.add_argument(option, nargs="?", default=default, metavar="DATA", help=about)
            continue
        several = isinstance(default, tuple)
        options.add_argument(
            f"--{option}",
            type=_texts if several else type(default),
            default=default,
            help="names separated by commas"
            if several
            else f"default: {default}"
            if default
            else None,
        )
    try:
        found = reproduce(name, **vars(options.parse_args()))
    except OrdrecError as error:
        options.exit(2, f"{name}: {error}\n")
    sys.exit(0 if found.complete else 1)


def data_folder(data: Path | None, *places: str) -> Path:
    """Return the first of several places in the data folder that exists."""
    for place in places:
        if data is not None and (data / place).exists():
            return data / place
    raise DatasetMissing(
        f"this experiment needs {' or '.join(places)} in the data folder: name that folder with "
        "--data or ORDREC_DATA ('ordrec data describe NAME' says where to get a data set)"
    )


def among(asked: Sequence[str], known: Sequence[str], what: str = "data set") -> list[str]:
    """Return the requested names without repetitions; all must be known.

    Examples
    --------
    >>> among(["housing"], ["pyrim", "housing"])
    ['housing']
    """
    for name in asked:
        if name not in known:
            raise ArgumentError(f"no {what} is called {name!r}: there are {', '.join(known)}")
    return list(dict.fromkeys(asked))


def _results_folder(folder: str | Path) -> Path:
    """Return a folder to write to, made if need be; one whose files are not ours is refused."""
    folder = Path(folder)
    report = folder / "report.html"
    ours = (folder / "cells").is_dir() or _has_manifest(folder)
    ours = ours or (report.is_file() and 'content="ordrec"' in report.read_text(errors="replace"))
    there = [] if ours else [name for name in WRITTEN if (folder / name).exists()]
    if there:
        raise ArgumentError(
            f"{folder}: holds a {there[0]} that no experiment wrote: name another folder"
        )
    return make_folder(folder)


def _has_manifest(folder: Path) -> bool:
    """Whether there is a manifest of an experiment, which is written before any result."""
    try:
        found = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and not {"experiment", "versions"}.isdisjoint(found)


def _checked(options: Mapping[str, Any], pipeline: Pipeline) -> dict[str, Any]:
    """Return options checked by the types of their defaults; texts are split at commas."""
    checked, defaults = {}, pipeline.options()
    for name, value in options.items():
        if name not in defaults:
            known = f"it has {', '.join(defaults)}" if defaults else "it has none"
            raise ArgumentError(f"{pipeline.name} has no option {name}: {known}")
        several = isinstance(defaults[name], tuple)
        if several and isinstance(value, str | int | float):
            value = _texts(str(value))  # the command line reads a single number as such
        if not isinstance(value, (tuple, list) if several else type(defaults[name])):
            wanted = "names separated by commas" if several else type(defaults[name]).__name__
            raise ArgumentError(f"{pipeline.name}: the option {name} takes {wanted}, not {value!r}")
        checked[name] = value
    return checked


def _texts(argument: str) -> tuple[str, ...]:
    """Split a text at commas."""
    return tuple(part.strip() for part in argument.split(",") if part.strip())


def _pickle_by_value(module: ModuleType) -> None:
    """Send the functions of a module to other processes, which cannot import it by name."""
    import cloudpickle  # type: ignore[import-untyped]

    cloudpickle.register_pickle_by_value(module)


def _constants(path: Path) -> dict[str, str]:
    """Return the texts assigned to names at the top level of a file."""
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                value = ast.literal_eval(node.value)
            except ValueError:
                continue
            if isinstance(value, str):
                found[node.targets[0].id] = value
    return found


def _printed(found: Reproduction) -> list[str]:
    lines = []
    if found.comparison is not None and not found.comparison.empty:
        lines += found.comparison.round(4).to_string(na_rep="").splitlines()
    elif isinstance(found.result, EvaluationResult) and not found.result.frame.empty:
        lines += _means(found.result.frame).round(4).to_string(na_rep="").splitlines()
    if isinstance(found.result, EvaluationResult) and not found.complete:
        failures = found.result.failures
        lines.append(f"{len(failures)} cells failed; the first: {failures['error'].iloc[0]}")
    return lines + found.findings


def _means(frame: pd.DataFrame) -> pd.DataFrame:
    """Return means by data set, split and size of the training part if they vary, and model."""
    keys = [] if frame["data"].nunique() == 1 else ["data"]
    if "split" in frame and frame.groupby("data")["split"].nunique().max() > 1:
        keys.append("split")
    if "n_train" in frame and frame.groupby("data")["n_train"].nunique().max() > 1:
        keys.append("n_train")
        frame = frame.sort_values("n_train", kind="stable")
    first = {name: place for place, name in enumerate(frame["data"].unique())}
    frame = frame.sort_values("data", key=lambda names: names.map(first), kind="stable")
    grouped = frame.groupby([*keys, "model", "metric"], sort=False)["value"]
    return grouped.mean().unstack(sort=False)[list(frame["metric"].unique())]


def _write(found: Reproduction, pipeline: Pipeline, folder: Path, manifest: dict[str, Any]) -> Path:
    """Write results, comparison, figures and report; return the path of the report."""
    if isinstance(found.result, EvaluationResult):
        found.result.write(folder)
        failures = found.result.failures
        usual = experiment_report(found.result, pipeline.title).sections if found.usual else []
    else:
        write_text(folder / "results.csv", found.result.to_csv(index=False))
        failures, usual = None, []
    write_text(folder / "manifest.json", json.dumps(manifest, indent=1) + "\n")
    if found.cells is None:
        (folder / "cells.csv").unlink(missing_ok=True)  # of an earlier run
    else:
        write_text(folder / "cells.csv", found.cells.to_csv(index=False))
    sections: list[TableSection | FigureSection] = []
    if found.comparison is not None:
        write_text(folder / "comparison.csv", found.comparison.to_csv())
        sections.append(published_section(found.comparison, pipeline.source))
    lead = [f"Reproduces: {pipeline.source}.", *found.findings]
    report = Report(pipeline.title, lead, [*found.sections, *sections, *usual], manifest, failures)
    return report.write(folder)
