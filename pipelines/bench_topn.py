"""Top-N lists over the whole catalogue, compared with public recommenders: same splits, same run.

    python pipelines/bench_topn.py --data FOLDER [--sets ml-100k eachmovie] [--seeds 11 12 13]
        [--cold] [--speed] [--quick] [--jobs 1]

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
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from implicit.nearest_neighbours import BM25Recommender, CosineRecommender, TFIDFRecommender
from scipy import sparse

from ordrec.datasets import load_dataset, synthetic_ratings
from ordrec.evaluation.significance.bootstrap import bootstrap_interval
from ordrec.evaluation.splits.ratings import StrongGeneralisation, split_from_name
from ordrec.parallel import one_blas_thread, worker_count
from ordrec.ratings import Ratings
from ordrec.recommend import OrdinalFactors, RatingPredictor
from ordrec.recommend.choice.als_ranking import ALSRanking
from ordrec.recommend.choice.ease import EASE
from ordrec.recommend.choice.mixture import ChoiceMixture
from ordrec.recommend.choice.popularity import Popularity
from ordrec.recommend.choice.tuning import best_on_a_grid_of_twos, left_out_quality
from ordrec.recommend.lists import ItemFilter
from ordrec.recommend.recommender.model import Recommender

N = 10
METRICS = ("graded", "liked", "recall", "net")
SETS = {
    "ml-100k": ("ml-100k", "user-holdout:0.2"),
    "latest-small": ("ml-latest-small-2016", "user-holdout:0.2"),
    "ml-100k-time": ("ml-100k", "user-time:0.2"),
    "eachmovie": ("eachmovie-5055users", "user-holdout:0.2"),
    "ml-1m": ("ml-1m", "user-holdout:0.2"),
}
TUNED, MIXTURE = "EASE, lambda left-out", "ordrec choice mixture"
BY_PREDICTOR, BY_FACTORS = "ordrec, fast predictor", "ordrec, factors"
NEIGHBOURS: dict[str, Callable[[], Any]] = {
    "cosine": lambda: CosineRecommender(K=100),
    "tf-idf": lambda: TFIDFRecommender(K=100),
    "bm25": lambda: BM25Recommender(K=100, K1=1.2, B=0.75),
    "bm25, B .2": lambda: BM25Recommender(K=100, K1=1.2, B=0.2),
}
CUTS, CUT_USERS = (0, 1, 2, 5), 300


def main() -> None:
    """Run what was asked for."""
    options = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    options.add_argument("--data", default=os.environ.get("ORDREC_DATA"), help="data folder")
    options.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    options.add_argument("--seeds", nargs="+", type=int, default=[11, 12, 13])
    options.add_argument("--jobs", type=int, default=-1, help="threads of ordrec's models")
    options.add_argument("--cold", action="store_true", help="new users instead of the tables")
    options.add_argument("--speed", action="store_true", help="seconds on ml-1m instead of these")
    options.add_argument("--quick", action="store_true", help="invented ratings, one seed")
    chosen = options.parse_args()
    if chosen.quick:
        chosen.sets, chosen.seeds = ["ml-100k-time"], chosen.seeds[:1]
    warnings.filterwarnings("ignore", message=".*BLAS.*")  # implicit's advice about threads
    warm_up(chosen.jobs)
    if chosen.speed:
        speed(loaded("ml-1m", chosen))
    for name in [] if chosen.speed else chosen.sets:
        (cold if chosen.cold else compare)(name, chosen)
    print(f"largest memory: {peak_memory():.2f} GB")


def loaded(name: str, chosen: argparse.Namespace) -> Ratings:
    """Return the ratings of a data set, or invented ones."""
    if chosen.quick:
        return synthetic_ratings(150, 120, n_ratings=4000, dated=True, seed=1)
    return load_dataset(name, folder=chosen.data, offline=True)


def warm_up(n_jobs: int) -> None:
    """Compile the loops, or load them from disk."""
    few = synthetic_ratings(60, 50, n_ratings=900, seed=0)
    choice = ChoiceMixture(n_jobs=n_jobs).fit(few)
    for rating in (OrdinalFactors(rank=4, n_jobs=n_jobs), RatingPredictor(preset="fast")):
        Recommender.of_fitted(choice, rating.fit(few), choice.calibration_).recommend(0)


# ---- peers ------------------------------------------------------------------------------------


@dataclass(eq=False)
class LeftOutEASE(EASE):
    """EASE as published, with its ridge chosen by leave-one-out; ``ones`` ignores the ratings."""

    user_power: float = 0.0
    item_power: float = 0.0
    ones: bool = False

    def _learn(self, history: sparse.csr_array, ratings: Ratings) -> None:
        if self.ones:
            history.data[:] = 1.0
        inputs = self.inputs(history)
        rows = np.flatnonzero(np.diff(inputs.history.indptr) > 1)
        rows = np.sort(np.random.default_rng(0).permutation(rows)[:1000])
        own = inputs.history[rows]

        def quality(ridge: float) -> float:
            scores = problem.solve(inputs.ridges(ridge)).scores(rows, left_out=True)
            return float(left_out_quality(scores, own, ratings.scale.n_ranks).mean())

        with one_blas_thread():
            problem = inputs.problem(worker_count(self.n_jobs))
            self.regularization, _ = best_on_a_grid_of_twos(quality, 200.0)
            self.set_weights(inputs, problem.solve(inputs.ridges(self.regularization)).weights())


class Neighbours:
    """Item neighbours of implicit on the ratings' ranks, the kind chosen on an inner hold-out."""

    def __init__(self, kind: str):
        self.kind = kind

    def fit(self, ratings: Ratings) -> Neighbours:
        """Learn the similarities."""
        self._rated = sparse.csr_matrix(ratings.matrix("rank").T.astype(np.float64))
        self.model = NEIGHBOURS[self.kind]()
        self.model.fit(self._rated, show_progress=False)
        return self

    def ten(self, users: np.ndarray) -> np.ndarray:
        """Return the ten best items of each user."""
        return np.asarray(self.model.recommend(users, self._rated[users], N=N)[0])


def chosen_neighbours(inner: InnerPart) -> Neighbours:
    """Return the neighbours that are best on the inner hold-out, not fitted."""
    return Neighbours(max(NEIGHBOURS, key=lambda kind: inner.quality(Neighbours(kind))))


def chosen_als(inner: InnerPart) -> ALSRanking:
    """Climb over confidence, ridge and factors on the inner hold-out, one at a time."""
    steps = {"alpha": 3.0, "regularization": 3.0, "factors": 2}
    now: dict[str, Any] = {"alpha": 3.0, "regularization": 3.0, "factors": 32}
    tried: dict[tuple, float] = {}

    def quality(**changes: Any) -> float:
        key = tuple((now | changes).values())
        if key not in tried:
            tried[key] = inner.quality(ALSRanking(**(now | changes)))
        return tried[key]

    moved = True
    while moved:
        moved = False
        for name, step in steps.items():
            kind = type(now[name])
            near = [kind(now[name] / step) or 1, now[name], kind(now[name] * step)]
            best = max(near, key=lambda value, name=name: quality(**{name: value}))
            if quality(**{name: best}) > quality():
                now[name], moved = best, True
    return ALSRanking(**now)


class InnerPart:
    """A split of the training part, of the same kind as the split outside."""

    def __init__(self, train: Ratings, protocol: str, seed: int):
        self.split = next(iter(split_from_name(protocol, seed=1000 + seed).split(train)))
        self.truth = Truth.of(self.split.test)

    def quality(self, model: Any) -> float:
        """Fit a model to the inner training part and return graded NDCG@10 on the rest."""
        best, _ = ten_best(model.fit(self.split.train), self.truth.users)
        return float(self.truth.measured(best)["graded"].mean())


# ---- lists and measures -----------------------------------------------------------------------


def ten_best(model: Any, users: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the ten best items of users by code, and p_pick if the model has it."""
    if isinstance(model, Neighbours):
        return model.ten(users), None
    choice = model.choice_ if isinstance(model, Recommender) else model
    everything = ItemFilter(choice.item_counts_ > 0)
    found, picks = [], []
    width = choice.block_size()
    for first in range(0, users.size, width):
        block = users[first : first + width]
        best, columns = model.lists(block, N, everything)
        found.append(best)
        if not isinstance(model, Recommender):
            columns = choice._list_columns(block, columns)
        if "p_pick" in columns:
            picks.append(columns["p_pick"])
    return np.concatenate(found), np.concatenate(picks) if picks else None


@dataclass(frozen=True)
class Truth:
    """The test part, ready for looking up listed items."""

    users: np.ndarray
    ranks: sparse.csr_array
    n_ranks: int

    @classmethod
    def of(cls, test: Ratings, users: np.ndarray | None = None) -> Truth:
        """Of all test users, or of these."""
        users = np.unique(test.users) if users is None else users
        ranks = sparse.csr_array(test.matrix("rank").T)[users].astype(np.float64)
        return cls(users, ranks, test.scale.n_ranks)

    def measured(self, best: np.ndarray) -> dict[str, np.ndarray]:
        """Return the metrics, one value per user: NaN where a user has nothing to find."""
        listed = ranks_at(self.ranks, best)
        hit, liked_from = listed > 0, np.ceil(0.8 * self.n_ranks)
        middle = (self.n_ranks + 1) / 2
        liked, disliked = listed >= liked_from, hit & (listed < middle)
        n_liked = row_sums(self.ranks, self.ranks.data >= liked_from)
        tops = best_ranks(self.ranks)
        present = tops > 0
        gains = [np.where(hit, 2.0**listed - 1, 0), np.where(present, 2.0**tops - 1, 0)]
        nets = [np.where(hit, listed - middle, 0), np.where(present, tops - middle, 0)]
        return {
            "graded": ratio(discounted(gains[0]), discounted(gains[1])),
            "liked": ratio(discounted(liked), discounted(tops >= liked_from)),
            "recall": ratio(liked.sum(axis=1), np.minimum(n_liked, N)),
            "net": ratio(discounted(nets[0]), discounted(np.maximum(nets[1], 0))),
            "hits": hit.sum(axis=1).astype(np.float64),
            "disliked": disliked.sum(axis=1).astype(np.float64),
        }


def ranks_at(ranks: sparse.csr_array, best: np.ndarray) -> np.ndarray:
    """Return the test ranks of listed items, 0 where there is none."""
    rows = np.repeat(np.arange(best.shape[0]), best.shape[1])
    found = np.asarray(ranks[rows, np.maximum(best, 0).ravel()]).reshape(best.shape)
    return np.where(best >= 0, found, 0.0)


def best_ranks(ranks: sparse.csr_array) -> np.ndarray:
    """Return the highest test ranks of each row in falling order, 0 beyond the last."""
    sizes = np.diff(ranks.indptr)
    rows = np.repeat(np.arange(sizes.size), sizes)
    order = np.lexsort((-ranks.data, rows))
    place = np.arange(ranks.nnz) - ranks.indptr[rows]
    table, shown = np.zeros((sizes.size, N)), place < N
    table[rows[shown], place[shown]] = ranks.data[order][shown]
    return table


def row_sums(ranks: sparse.csr_array, values: np.ndarray) -> np.ndarray:
    """Return sums of one value per entry, by row."""
    rows = np.repeat(np.arange(ranks.shape[0]), np.diff(ranks.indptr))
    return np.bincount(rows, values, minlength=ranks.shape[0])


def discounted(gains: np.ndarray) -> np.ndarray:
    """Return the discounted sums of rows of gains."""
    return gains @ (1.0 / np.log2(np.arange(2, gains.shape[1] + 2)))


def ratio(reached: np.ndarray, possible: np.ndarray) -> np.ndarray:
    """Return quotients, NaN where nothing is possible."""
    return np.where(possible > 0, reached / np.where(possible > 0, possible, 1.0), np.nan)


# ---- the tables -------------------------------------------------------------------------------


@dataclass
class Row:
    """What was measured of one model, over all seeds."""

    users: list[np.ndarray] = field(default_factory=list)
    values: dict[str, list[np.ndarray]] = field(default_factory=dict)
    seconds: list[tuple[float, float]] = field(default_factory=list)
    expected_picks: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, truth: Truth, fitted: Fitted) -> None:
        """Take in the lists of one seed."""
        started = time.perf_counter()
        best, p_pick = ten_best(fitted.model, truth.users)
        self.seconds.append((fitted.seconds, time.perf_counter() - started))
        self.users.append(truth.users)
        for name, values in truth.measured(best).items():
            self.values.setdefault(name, []).append(values)
        self.notes.append(fitted.note)
        if p_pick is not None:
            self.expected_picks.append(float(np.nansum(p_pick)))

    def all(self, name: str) -> np.ndarray:
        """Return one value per user and seed."""
        return np.concatenate(self.values[name])

    def means(self, name: str) -> list[float]:
        """Return one mean per seed."""
        return [float(np.nanmean(values)) for values in self.values[name]]

    @property
    def disliked(self) -> float:
        """Share of the listed test items that are disliked."""
        return float(self.all("disliked").sum() / max(self.all("hits").sum(), 1))

    def line(self, name: str) -> str:
        """Return the row of the table."""
        numbers = " ".join(f"{np.mean(self.means(metric)):7.4f}" for metric in METRICS)
        fit, lists = np.mean(self.seconds, axis=0)
        observed = [float(hits.sum()) for hits in self.values["hits"]]
        picks = " ".join(
            f"{e / max(o, 1):.2f}" for e, o in zip(self.expected_picks, observed, strict=False)
        )
        notes = "; ".join(dict.fromkeys(note for note in self.notes if note))
        return f"{name:22s} {numbers} {self.disliked:8.4f} {fit:7.1f} {lists:6.1f}  {picks} {notes}"


class Fitted(NamedTuple):
    """A fitted model, the seconds it took, and what was chosen."""

    model: Any
    seconds: float
    note: str = ""


def fitted_models(
    train: Ratings, protocol: str, seed: int, n_jobs: int
) -> Iterator[tuple[str, Fitted]]:
    """Yield the rows of the table, one after the other."""

    def fit(model: Any) -> Fitted:
        started = time.perf_counter()
        return Fitted(model.fit(train), time.perf_counter() - started)

    yield "popularity", fit(Popularity())
    inner = InnerPart(train, protocol, seed)
    near = fit(chosen_neighbours(inner))
    yield "implicit item-kNN", near._replace(note=near.model.kind)
    als = fit(chosen_als(inner))
    about = als.model
    yield (
        "implicit ALS",
        als._replace(note=f"{about.factors}/{about.regularization:.2g}/{about.alpha:.2g}"),
    )
    yield (
        "EASE, lambda 300",
        fit(EASE(regularization=300.0, user_power=0.0, item_power=0.0, n_jobs=n_jobs)),
    )
    for name, ones in ((TUNED, False), ("EASE of ones, left-out", True)):
        ease = fit(LeftOutEASE(n_jobs=n_jobs, ones=ones))
        yield name, ease._replace(note=f"{ease.model.regularization:g}")
    del ease, als, near, about
    future: Literal["latest", "random"] = "latest" if "time" in protocol else "random"
    choice = fit(ChoiceMixture(future=future, n_jobs=n_jobs, random_state=0))
    yield MIXTURE, choice._replace(note=f"{choice.model.ease_.regularization:g}")
    for name, rating in rating_models(n_jobs).items():
        own = fit(rating)
        model = Recommender.of_fitted(choice.model, own.model, choice.model.calibration_)
        yield name, Fitted(model, choice.seconds + own.seconds)


def rating_models(n_jobs: int) -> dict[str, Any]:
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
        split = next(iter(split_from_name(protocol, seed=seed).split(ratings)))
        truth = Truth.of(split.test)
        for model, fitted in fitted_models(split.train, protocol, seed, chosen.jobs):
            table.setdefault(model, Row()).add(truth, fitted)
    print(f"\n{ratings.name}, {protocol}, seeds {chosen.seeds}, {truth.users.size} users")
    heads = " ".join(f"{metric:>7s}" for metric in METRICS)
    print(f"{'':22s} {heads} disliked {'fit':>7s} {'list':>6s}  p_pick")
    for model, row in table.items():
        print(row.line(model))
    for model in (BY_PREDICTOR, BY_FACTORS):
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


def print_differences(title: str, row: Row, other: Row) -> None:
    """Print mean differences over users and seeds, whole users resampled."""
    parts = []
    for metric in METRICS:
        difference, users = row.all(metric) - other.all(metric), np.concatenate(row.users)
        there = np.isfinite(difference)
        low, mean, high = bootstrap_interval(difference[there], users[there], n_resamples=2000)
        sign = "ABOVE" if low > 0 else "BELOW" if high < 0 else "even"
        parts.append(f"{metric} {mean:+.4f} [{low:+.4f} {high:+.4f}] {sign}")
    print(f"{title}: " + ", ".join(parts))


# ---- new users --------------------------------------------------------------------------------


def cold(name: str, chosen: argparse.Namespace) -> None:
    """Compare lists of new users with popularity, by the number of ratings they come with."""
    dataset, protocol = SETS[name]
    if "time" in protocol and not chosen.quick:
        return
    ratings = loaded(dataset, chosen).without_timestamps()
    rows: dict[tuple[str, str], Row] = {}
    for seed in chosen.seeds:
        split = next(iter(StrongGeneralisation(0.2, seed=seed).split(ratings)))
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


def speed(ratings: Ratings) -> None:
    """Print seconds of a fit, of lists for everybody and of one new user; one thread."""
    print(f"\nspeed: {ratings}")
    before = time.perf_counter(), time.process_time()
    choice = ChoiceMixture(n_jobs=1).fit(ratings)
    print(
        f"fit of the choice model: {time.perf_counter() - before[0]:.1f} s, "
        f"{time.process_time() - before[1]:.1f} s of processor; peak {peak_memory():.2f} GB"
    )
    rating = OrdinalFactors(n_jobs=1).fit(ratings)
    model = Recommender.of_fitted(choice, rating, choice.calibration_)
    users = np.arange(ratings.n_users)
    for name, lister in (("choice model", choice), ("recommender", model)):
        before = time.perf_counter(), time.process_time()
        ten_best(lister, users)
        print(
            f"lists for {users.size} users, {name}: {time.perf_counter() - before[0]:.1f} s, "
            f"{time.process_time() - before[1]:.1f} s of processor"
        )
    print(f"peak {peak_memory():.2f} GB")
    spent = []
    for user in users[:: max(1, users.size // 50)].tolist():
        of_user = np.zeros(ratings.n_ratings, dtype=np.bool_)
        of_user[ratings.rows_of_user(user)] = True
        frame = ratings.select(of_user).to_frame()[["user", "item", "rating"]]
        one = Ratings.from_frame(frame.assign(user=f"new {user}"), scale=ratings.scale)
        started = time.perf_counter()
        model.fold_in(one).recommend(f"new {user}", n=N)
        spent.append(1e3 * (time.perf_counter() - started))
    print(
        f"fold-in of a user and a list: median {np.median(spent):.1f} ms, "
        f"90 % within {np.quantile(spent, 0.9):.1f} ms"
    )


def peak_memory() -> float:
    """Return the largest memory of this process so far, in gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


if __name__ == "__main__":
    main()
