"""The rating predictor compared with Surprise and myFM: same folds, same metrics, same run.

    python pipelines/speed/bench_predictor.py --data FOLDER [--set ml-100k] [--folds u1 u2]
        [--models full fast large factors peers] [--inputs ids side time] [--no-refit] [--jobs N]

FOLDER holds one unpacked folder per data set. ``ml-100k`` has its official folds,
``eachmovie`` its fixed split; ``ml-1m`` is cut 90/10, the others 80/20, at random. ``full`` and
``fast`` pool the process with factors, ``large`` is `RatingPredictor` without the process,
``factors`` is `OrdinalFactors`, ``process-full`` and ``process-fast`` are `ProcessPredictor`. Peers
are measured when installed. Seconds are those of fitting and predicting, after a fit to a few users
that compiles (or loads) the loops and has a line of its own; the last column is CPU seconds, which
are more reliable on a shared machine.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ordrec.data import Ratings
from ordrec.data.formats.eachmovie import load_eachmovie
from ordrec.data.formats.movietweetings import load_movietweetings
from ordrec.datasets import load_movielens
from ordrec.evaluation.metrics.measures import Outcome, measure_from_name
from ordrec.experiments.rating_benchmarks import METRICS, PROCESSES, rating_model, warm_up
from ordrec.experiments.timing import first_run, peak_memory

MODELS = ("full", "fast", "large", "factors")
LOADERS: dict[str, tuple[Callable[..., Ratings], str]] = {
    "ml-100k": (load_movielens, "ml-100k"),
    "ml-1m": (load_movielens, "ml-1m"),
    "latest-small": (load_movielens, "ml-latest-small"),
    "latest-small-2016": (load_movielens, "ml-latest-small-2016"),
    "movietweetings": (load_movietweetings, "movietweetings-100k"),
    "eachmovie": (load_eachmovie, "eachmovie"),
}


def main() -> None:
    """Load the ratings, fit and measure the models, print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--set", choices=LOADERS, default="ml-100k")
    options.add_argument("--folds", nargs="+", default=["u1"])
    options.add_argument("--models", nargs="+", default=[*MODELS, "peers"])
    options.add_argument("--inputs", nargs="+", default=["ids", "side", "time"])
    options.add_argument("--learn", default="auto")
    options.add_argument("--no-refit", dest="refit", action="store_false")
    options.add_argument("--jobs", type=int, help="threads; all cores by default")
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    load, folder = LOADERS[chosen.set]
    ratings = load(chosen.data / folder)
    print(ratings)
    first_run(warm_up, ratings, ("full", "fast"), chosen.jobs)
    print(f"{'model':28s} {'fold':7s} " + " ".join(f"{name:>8s}" for name in METRICS), end="")
    print(f" {'seconds':>8s} {'cpu':>7s}")
    for fold, train, test in parts(ratings, chosen.set, chosen.folds, chosen.seed):
        for name, fit in models(chosen):
            measure(name, fold, fit, train, test)
    print(f"largest memory: {peak_memory():.2f} GB")


def parts(
    ratings: Ratings, name: str, folds: list[str], seed: int
) -> Iterator[tuple[str, Ratings, Ratings]]:
    """Yield the name, the training part and the test part of each fold."""
    if name == "ml-100k":
        for fold in folds:
            yield fold, ratings.select(~ratings.folds[fold]), ratings.select(ratings.folds[fold])
        return
    if "set" in ratings.folds:
        test = ratings.folds["set"]
        yield "fixed", ratings.select(~test), ratings.select(test)
        return
    share = 0.1 if name == "ml-1m" else 0.2
    held_out = (
        np.random.default_rng(seed).permutation(ratings.n_ratings) < share * ratings.n_ratings
    )
    yield f"{1 - share:.0%}", ratings.select(~held_out), ratings.select(held_out)


def models(chosen: argparse.Namespace) -> Iterator[tuple[str, Callable[..., np.ndarray]]]:
    """Yield names, and functions from training and test parts to ratings or distributions."""
    for model in (*MODELS, *PROCESSES):
        if model in chosen.models:
            for inputs in chosen.inputs:
                plain = model == "full" and not chosen.refit
                name = f"{model}, {inputs}{', no refit' if plain else ''}"
                yield name, predictor(model, inputs, chosen)
    if "peers" in chosen.models:
        yield from peers()


def predictor(name: str, inputs: str, chosen: argparse.Namespace) -> Callable[..., np.ndarray]:
    """Return the model with ids only, with side data, or with side data and times."""

    def run(train: Ratings, test: Ratings) -> np.ndarray:
        options = {} if name == "factors" else {"learn": chosen.learn, "refit": chosen.refit}
        model = rating_model(name, inputs, n_jobs=chosen.jobs, random_state=chosen.seed, **options)
        model.fit(train)
        users, items = test.user_ids.take(test.users), test.item_ids.take(test.items)
        return model.predict_proba(users, items, test.timestamps if inputs == "time" else None)

    return run


def peers() -> Iterator[tuple[str, Callable[..., np.ndarray]]]:
    """Yield Surprise and myFM, if they are installed."""
    try:
        import surprise
    except ImportError:
        print("scikit-surprise is not installed")
    else:
        yield "Surprise kNN-Baseline", lambda a, b: surprise_knn(surprise, a, b)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import myfm
    except ImportError:
        print("myfm is not installed")
    else:
        yield "myFM probit, ids", lambda a, b: my_fm(myfm, a, b, implicit=False)
        yield "myFM probit, implicit", lambda a, b: my_fm(myfm, a, b, implicit=True)


def surprise_knn(surprise: Any, train: Ratings, test: Ratings) -> np.ndarray:
    """Predict by item neighbours around baselines, Pearson-baseline similarity."""
    low, high = float(train.scale.values[0]), float(train.scale.values[-1])
    reader = surprise.Reader(rating_scale=(low, high))
    table = train.to_frame()[["user", "item", "rating"]]
    trainset = surprise.Dataset.load_from_df(table, reader).build_full_trainset()
    similarity = {"name": "pearson_baseline", "user_based": False}
    model = surprise.KNNBaseline(sim_options=similarity, verbose=False).fit(trainset)
    pairs = zip(test.user_ids.take(test.users), test.item_ids.take(test.items), strict=True)
    return np.array([model.predict(user, item).est for user, item in pairs])


def my_fm(myfm: Any, train: Ratings, test: Ratings, *, implicit: bool) -> np.ndarray:
    """Predict by a Bayesian factorisation machine with ordered probit, rank 10, 512 sweeps."""
    shape = (train.n_users, train.n_items)
    seen = sparse.csr_matrix((np.ones(len(train)), (train.users, train.items)), shape=shape)
    blocks = [sparse.identity(n, format="csr") for n in shape]
    groups = [*shape]
    if implicit:
        for k, side in enumerate((seen, seen.T.tocsr())):
            counts = np.asarray(side.sum(axis=1)).ravel()
            scaled = sparse.diags(1.0 / np.sqrt(np.maximum(counts, 1.0))) @ side
            blocks[k] = sparse.hstack([blocks[k], scaled]).tocsr()
        groups = [shape[0], shape[1], shape[1], shape[0]]

    def relations(part: Ratings) -> list[Any]:
        return [
            myfm.RelationBlock(codes.astype(np.int64).tolist(), block)
            for codes, block in ((part.users, blocks[0]), (part.items, blocks[1]))
        ]

    def no_features(part: Ratings) -> Any:
        return sparse.csr_matrix((len(part), 0))

    model = myfm.MyFMOrderedProbit(rank=10, random_seed=42)
    with contextlib.redirect_stderr(io.StringIO()):  # a progress bar
        model.fit(
            no_features(train), train.levels.astype(np.int64), X_rel=relations(train), n_iter=512,
            n_kept_samples=512, group_shapes=groups,
        )  # fmt: skip
    return model.predict_proba(no_features(test), relations(test))


def measure(
    name: str, fold: str, fit: Callable[..., np.ndarray], train: Ratings, test: Ratings
) -> None:
    """Fit and measure a model and print one row of the table."""
    wall, cpu = time.perf_counter(), time.process_time()
    predicted = fit(train, test)
    seconds, cpu_seconds = time.perf_counter() - wall, time.process_time() - cpu
    is_distribution = predicted.ndim == 2
    outcome = (
        Outcome(test, probabilities=predicted) if is_distribution else Outcome(test, predicted)
    )
    values: dict[str, float] = {}
    for metric in METRICS:
        wanted = measure_from_name(metric)
        if wanted.applies_to(outcome):
            values[metric] = wanted.value(outcome, "micro", wanted.decision)[0]
    line = " ".join(f"{values[m]:8.4f}" if m in values else f"{'-':>8s}" for m in METRICS)
    print(f"{name:28s} {fold:7s} {line} {seconds:8.1f} {cpu_seconds:7.1f}", flush=True)


if __name__ == "__main__":
    main()
