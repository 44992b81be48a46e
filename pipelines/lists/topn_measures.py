"""Lists of ten out of the whole catalogue, and how good they are, for the top-N benchmarks."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ordrec.data import Ratings
from ordrec.evaluation.significance.bootstrap import bootstrap_interval
from ordrec.lists.filters import ItemFilter
from ordrec.recommend.recommender import Recommender

N = 10
METRICS = ("graded", "liked", "recall", "net")


def ten_best(model: Any, users: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the ten best items of users by code, and p_pick if the model has it."""
    if hasattr(model, "ten"):
        return model.ten(users), None
    choice = model.choice_ if isinstance(model, Recommender) else model
    everything = ItemFilter(choice.item_counts_ > 0)
    found, picks = [], []
    width = choice.block_size()
    for first in range(0, users.size, width):
        block = users[first : first + width]
        best, columns = model.lists(block, N, everything)
        found.append(best)
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
