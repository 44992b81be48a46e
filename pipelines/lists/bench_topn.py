"""Top-N lists over the whole catalogue, compared with public recommenders: same splits, same run.

    python pipelines/lists/bench_topn.py --data FOLDER [--sets ml-100k eachmovie] [--seeds 11 12 13]
        [--cold] [--speed] [--quick] [--without implicit ones predictor factors] [--jobs 1]

Each model is fitted to the training part and lists ten items per test user, out of all items that
the user has not rated in training. Rows: popularity, item neighbours and ALS of the package
implicit (kind, factors, ridge and confidence chosen on an inner hold-out of the training part),
EASE as published (with ranks or with ones; lambda 300, or chosen by leave-one-out), the choice
model of ordrec alone, and ordrec's recommender with two rating models. Columns, means over users
and seeds, with ``r`` the rank of a listed item that is in the test part:

* graded: NDCG@10 with gains ``2^r - 1``; liked: binary NDCG@10 of items that are liked (from four
  fifths of the scale on); recall: liked items listed, out of the liked ones but at most ten;
* net: as NDCG@10, with gains ``r`` minus the middle of the scale, so that a disliked item costs;
* disliked: share of the listed test items that are rated below the middle;
* fit, list: seconds per seed, of all models that take part; p_pick: expected over observed picks.

Below the table are paired differences over users, with 95 % bootstrap intervals.

``--cold``: users who were not there in training, folded in with 0, 1, 2, 5 or all of their given
ratings, compared with popularity. ``--speed``: seconds and memory on ml-1m. ``--quick``: invented
ratings and one seed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from topn_measures import METRICS, Fitted, N, Row, Truth, print_differences, ten_best
from topn_peers import InnerPart, LeftOutEASE, chosen_als, chosen_neighbours

from ordrec.choice.ease import EASE
from ordrec.choice.mixture import ChoiceMixture
from ordrec.choice.ordered import OrderedChoice
from ordrec.choice.popularity import Popularity
from ordrec.data import Ratings
from ordrec.datasets import load_dataset, synthetic_ratings
from ordrec.evaluation.splits.ratings import StrongGeneralisation, split_from_name
from ordrec.experiments.timing import first_run, peak_memory
from ordrec.recommend import OrdinalFactors, RatingPredictor
from ordrec.recommend.recommender import Recommender

SETS = {
    "ml-100k": ("ml-100k", "user-holdout:0.2"),
    "latest-small": ("ml-latest-small-2016", "user-holdout:0.2"),
    "ml-100k-time": ("ml-100k", "user-time:0.2"),
    "eachmovie": ("eachmovie-5055users", "user-holdout:0.2"),
    "ml-1m": ("ml-1m", "user-holdout:0.2"),
}
TUNED, MIXTURE = "EASE, lambda left-out", "ordrec choice mixture"
BY_PREDICTOR, BY_FACTORS = "ordrec, fast predictor", "ordrec, factors"
SLOW = ("implicit", "ones", "predictor", "factors")
CUTS, CUT_USERS = (0, 1, 2, 5), 300


def main() -> None:
    """Run what was asked for."""
    options = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    options.add_argument("--data", default=os.environ.get("ORDREC_DATA"), help="data folder")
    options.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    options.add_argument("--seeds", nargs="+", type=int, default=[11, 12, 13])
    options.add_argument(
        "--without", nargs="+", choices=SLOW, default=[], help="rows to leave out, for time"
    )
    options.add_argument(
        "--jobs", type=int, help="threads of ordrec's models; all cores by default"
    )
    options.add_argument("--cold", action="store_true", help="new users instead of the tables")
    options.add_argument("--speed", action="store_true", help="seconds on ml-1m instead of these")
    options.add_argument("--quick", action="store_true", help="invented ratings, one seed")
    chosen = options.parse_args()
    if chosen.quick:
        chosen.sets, chosen.seeds = ["ml-100k-time"], chosen.seeds[:1]
    warnings.filterwarnings("ignore", message=".*BLAS.*")  # implicit's advice about threads
    first_run(warm_up, chosen.jobs)
    if chosen.speed:
        speed(loaded("ml-1m", chosen), chosen.without)
    for name in [] if chosen.speed else chosen.sets:
        (cold if chosen.cold else compare)(name, chosen)
    print(f"largest memory: {peak_memory():.2f} GB")


def loaded(name: str, chosen: argparse.Namespace) -> Ratings:
    """Return the ratings of a data set, or invented ones."""
    if chosen.quick:
        return synthetic_ratings(150, 120, n_ratings=4000, dated=True, seed=1)
    return load_dataset(name, folder=chosen.data, offline=True)


def warm_up(n_jobs: int | None) -> None:
    """Compile the loops, or load them from disk."""
    few = synthetic_ratings(60, 50, n_ratings=900, seed=0)
    choice = ChoiceMixture(n_jobs=n_jobs).fit(few)
    for rating in (OrdinalFactors(n_factors=4, n_jobs=n_jobs), RatingPredictor(preset="fast")):
        Recommender.of_fitted(choice, rating.fit(few), choice.calibration_).recommend(0)


# ---- the tables -------------------------------------------------------------------------------


def fitted_models(
    train: Ratings, protocol: str, seed: int, chosen: argparse.Namespace
) -> Iterator[tuple[str, Fitted]]:
    """Yield the rows of the table, one after the other."""

    def fit(model: Any) -> Fitted:
        started = time.perf_counter()
        return Fitted(model.fit(train), time.perf_counter() - started)

    n_jobs = chosen.jobs
    yield "popularity", fit(Popularity())
    if "implicit" not in chosen.without:
        inner = InnerPart(train, protocol, seed)
        near = fit(chosen_neighbours(inner))
        yield "implicit item-kNN", near._replace(note=near.model.kind)
        als = fit(chosen_als(inner))
        fitted = als.model.model
        about = f"{fitted.factors}/{fitted.regularization:.2g}/{fitted.alpha:.2g}"
        yield "implicit ALS", als._replace(note=about)
    plain = EASE(regularization=300.0, user_power=0.0, item_power=0.0, n_jobs=n_jobs)
    yield "EASE, lambda 300", fit(plain)
    for name, ones in ((TUNED, False), ("EASE of ones, left-out", True)):
        if not (ones and "ones" in chosen.without):
            ease = fit(LeftOutEASE(n_jobs=n_jobs, ones=ones))
            yield name, ease._replace(note=f"{ease.model.regularization_:g}")
    future: Literal["latest", "random"] = "latest" if "time" in protocol else "random"
    choice = fit(ChoiceMixture(future=future, n_jobs=n_jobs, random_state=0))
    yield MIXTURE, choice._replace(note=f"{choice.model.ease_.regularization_:g}")
    for name, rating in rating_models(n_jobs).items():
        left_out = {BY_PREDICTOR: "predictor", BY_FACTORS: "factors"}[name]
        if left_out not in chosen.without:
            own = fit(rating)
            model = Recommender.of_fitted(choice.model, own.model, choice.model.calibration_)
            yield name, Fitted(model, choice.seconds + own.seconds)


def rating_models(n_jobs: int | None) -> dict[str, Any]:
    """Return the rating models of the recommenders."""
    return {
        BY_PREDICTOR: RatingPredictor(preset="fast", use_time=False, n_jobs=n_jobs),
        BY_FACTORS: OrdinalFactors(n_jobs=n_jobs),
    }


def compare(name: str, chosen: argparse.Namespace) -> None:
    """Print the table of one data set, and the paired differences."""
    dataset, protocol = SETS[name]
    ratings = loaded(dataset, chosen)
    table: dict[str, Row] = {}
    for seed in chosen.seeds:
        split = next(iter(split_from_name(protocol, random_state=seed).split(ratings)))
        truth = Truth.of(split.test)
        for model, fitted in fitted_models(split.train, protocol, seed, chosen):
            table.setdefault(model, Row()).add(truth, fitted)
            print(f"{name} {seed} {table[model].line(model)}", file=sys.stderr, flush=True)
    print(f"\n{ratings.name}, {protocol}, seeds {chosen.seeds}, {truth.users.size} users")
    heads = " ".join(f"{metric:>7s}" for metric in METRICS)
    print(f"{'':22s} {heads} disliked {'fit':>7s} {'list':>6s}  p_pick")
    for model, row in table.items():
        print(row.line(model))
    for model in [name for name in (BY_PREDICTOR, BY_FACTORS) if name in table]:
        graded = " ".join(f"{value:.4f}" for value in table[model].means("graded"))
        print(f"{model}: graded per seed {graded}")
        for other in (TUNED, MIXTURE):
            print_differences(f"  minus {other}", table[model], table[other])
        peers = [row.disliked for peer, row in table.items() if not peer.startswith("ordrec")]
        print(
            f"  disliked {table[model].disliked:.4f}, lowest of the peers {min(peers):.4f}, of the "
            f"mixture {table[MIXTURE].disliked:.4f}: "
            f"{'lowest' if table[model].disliked < min(peers) else 'NOT the lowest'}",
            flush=True,
        )


# ---- new users --------------------------------------------------------------------------------


def cold(name: str, chosen: argparse.Namespace) -> None:
    """Compare lists of new users with popularity, by the number of ratings they come with."""
    dataset, protocol = SETS[name]
    if "time" in protocol and not chosen.quick:
        return
    ratings = loaded(dataset, chosen).without_timestamps()
    rows: dict[tuple[str, str], Row] = {}
    for seed in chosen.seeds:
        split = next(iter(StrongGeneralisation(0.2, random_state=seed).split(ratings)))
        popularity = Popularity().fit(split.train)
        choice = ChoiceMixture(n_jobs=chosen.jobs).fit(split.train)
        rating = OrdinalFactors(n_jobs=chosen.jobs).fit(split.train)
        models = {
            "popularity": popularity,
            MIXTURE: choice,
            BY_FACTORS: Recommender.of_fitted(choice, rating, choice.calibration_),
        }
        users = np.unique(split.test.users)
        some = np.sort(np.random.default_rng(seed).permutation(users)[:CUT_USERS])
        for cut in (*CUTS, None):
            truth = Truth.of(split.test, users if cut is None else some)
            given = first_of_each(split.given, truth.users, cut, seed)
            for model, fitted in models.items():
                folded = fitted.fold_in(given) if given.n_ratings else fitted
                key = "all" if cut is None else str(cut), model
                rows.setdefault(key, Row()).add(truth, Fitted(folded, 0.0))
    print(f"\n{ratings.name}, strong:0.2, seeds {chosen.seeds}, by ratings given")
    for (cut, model), row in rows.items():
        graded = float(np.mean(row.means("graded")))
        if model == "popularity":
            print(f"given {cut}: popularity graded {graded:.4f}")
        else:
            print_differences(f"  {model} {graded:.4f}, minus it", row, rows[cut, "popularity"])


def first_of_each(given: Ratings, users: np.ndarray, cut: int | None, seed: int) -> Ratings:
    """Return so many of the given ratings of each of these users, drawn at random."""
    rows = np.random.default_rng(seed).permutation(given.n_ratings)
    rows = rows[np.argsort(given.users[rows], kind="stable")]
    start = np.searchsorted(given.users[rows], given.users[rows])
    wanted = np.isin(given.users[rows], users)
    if cut is not None:
        wanted &= np.arange(rows.size) - start < cut
    mask = np.zeros(given.n_ratings, dtype=np.bool_)
    mask[rows[wanted]] = True
    return given.select(mask)


# ---- seconds ----------------------------------------------------------------------------------


def speed(ratings: Ratings, without: Sequence[str]) -> None:
    """Print seconds of a fit, of lists for everybody and of one new user; one thread."""
    print(f"\nspeed: {ratings}")
    mixture = timed_fit("ChoiceMixture", ChoiceMixture(n_jobs=1), ratings)
    ordered = timed_fit("OrderedChoice", OrderedChoice(n_jobs=1), ratings)
    listers: dict[str, Any] = {"ChoiceMixture": mixture, "OrderedChoice": ordered}
    if "factors" not in without:
        rating = OrdinalFactors(n_jobs=1).fit(ratings)
        by = Recommender.of_fitted(ordered, rating, ordered.calibration_)
        listers["Recommender, OrderedChoice"] = by
    users = np.arange(ratings.n_users)
    for name, lister in listers.items():
        before = time.perf_counter(), time.process_time()
        ten_best(lister, users)
        print(
            f"lists for {users.size} users, {name}: {time.perf_counter() - before[0]:.1f} s, "
            f"{time.process_time() - before[1]:.1f} s of processor"
        )
        spent = np.array(list(new_user_seconds(lister, ratings)))
        wall, cpu = 1e3 * np.median(spent, axis=0)
        print(f"fold-in of a user and a list: median {wall:.1f} ms, {cpu:.1f} ms of processor")
    print(f"peak {peak_memory():.2f} GB")


def timed_fit(name: str, model: Any, ratings: Ratings) -> Any:
    """Return the fitted model after printing what it took."""
    before = time.perf_counter(), time.process_time()
    model.fit(ratings)
    print(
        f"fit of {name}: {time.perf_counter() - before[0]:.1f} s, "
        f"{time.process_time() - before[1]:.1f} s of processor; {model.chosen_}; "
        f"peak {peak_memory():.2f} GB",
        flush=True,
    )
    return model


def new_user_seconds(model: Any, ratings: Ratings) -> Iterator[tuple[float, float]]:
    """Yield wall and processor seconds of a fold-in and a list, for copies of fifty users."""
    for user in range(0, ratings.n_users, max(1, ratings.n_users // 50)):
        of_user = np.zeros(ratings.n_ratings, dtype=np.bool_)
        of_user[ratings.rows_of_user(user)] = True
        frame = ratings.select(of_user).to_frame()
        columns = [c for c in ("user", "item", "rating", "timestamp") if c in frame]
        own = frame[columns].assign(user=f"new {user}")
        one = Ratings.from_frame(own, scale=ratings.scale)
        wall, cpu = time.perf_counter(), time.process_time()
        model.fold_in(one).recommend(f"new {user}", n=N)
        yield time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    main()
