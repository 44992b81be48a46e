"""Time of GPOR's evidence, in units of a Cholesky factorisation of the same size.

    python pipelines/speed/bench_gpor.py [--ml-100k FOLDER] [--rounds 9] [--threads N] [--large]

Three claims, each a ratio of medians measured in one run:

* n = 1000, two parameters, warm start: one Laplace evidence with gradient takes at most 15
  times a `scipy.linalg.cholesky` of the same matrix, one EP evidence with gradient 60 times;
* 943 problems of the sizes of the users of MovieLens 100K: one pass of pooled Laplace
  evidence with gradient takes at most 20 times the 943 factorisations.

The users' own ratings are read from ``--ml-100k``; without it similar sizes are
drawn. ``--large`` also trains on 20,000 rows with inducing inputs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg import cholesky

from ordrec.datasets import load_movielens
from ordrec.experiments.timing import first_run
from ordrec.kernels import Gaussian
from ordrec.ordinal.gpor import GPOR
from ordrec.ordinal.gpor.evidence import Evidence
from ordrec.ordinal.gpor.parameters import paper_start
from ordrec.ordinal.gpor.pooled import PooledEvidence

Problem = tuple[np.ndarray, np.ndarray]
STEP = 0.05  # how far the parameters move between two evaluations of a line search


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--ml-100k", help="folder or zip of MovieLens 100K")
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--threads", type=int, help="of the pooled evidence; all cores by default")
    options.add_argument("--large", action="store_true", help="train on 20,000 rows as well")
    chosen = options.parse_args()
    single(chosen.rounds)
    pooled(chosen.ml_100k, max(3, chosen.rounds // 3), chosen.threads)
    if chosen.large:
        large()


def single(rounds: int, n: int = 1000) -> None:
    """Compare one evidence with gradient to one Cholesky factorisation, n = 1000."""
    X, y = smooth_ranks(n, 8, np.random.default_rng(0))
    kernel = Gaussian(1 / 16)
    pairs = kernel.pairs(X)
    K = kernel.from_pairs(pairs) + np.eye(n)
    unit = median_seconds(lambda: cholesky(K, lower=True), 3 * rounds)
    print(f"n = {n}: Cholesky {1e3 * unit:.1f} ms")
    for inference, limit in (("laplace", 15), ("ep", 60)):
        rho = paper_start(5)
        noise_only = np.arange(rho.size) == 0
        evidence = Evidence(kernel, pairs, y, rho, noise_only, inference)
        first_run(evidence, evidence.theta)
        moves = near(evidence.theta)
        ratio = median_seconds(lambda e=evidence, m=moves: e(next(m)), rounds) / unit
        print(f"n = {n}: {inference} evidence and gradient {ratio:.1f} Choleskys (limit {limit})")


def pooled(folder: str | None, rounds: int, threads: int | None) -> None:
    """Compare one pass over 943 users to the factorisations of their matrices."""
    problems = real_users(folder) if folder else invented_users()
    sizes = [y.size for _, y in problems]
    evidence = PooledEvidence(problems, 5, threads)
    theta = np.concatenate([[0.0], paper_start(5)])
    first_run(evidence, theta)
    moves = near(theta)
    matrices = [K + np.eye(y.size) for K, y in problems]

    def factorise() -> None:
        for K in matrices:
            cholesky(K, lower=True)

    unit = median_seconds(factorise, rounds)
    ratio = median_seconds(lambda: evidence(next(moves)), rounds) / unit
    print(
        f"{len(sizes)} problems of {min(sizes)} to {max(sizes)} rows, "
        f"{evidence.n_threads} threads: pooled evidence and gradient {ratio:.1f} times their "
        f"Choleskys of {unit:.2f} s (limit 20)"
    )


def large(n: int = 20_000, m: int = 200) -> None:
    """Train on many rows, and compare with the exact model on fewer rows."""
    X, y = smooth_ranks(n + 2000, 8, np.random.default_rng(1))
    train, test = slice(0, n), slice(n, None)
    for inference in ("laplace", "ep"):
        model = GPOR(n_landmarks=m, inference=inference, random_state=0)
        started = time.perf_counter()
        model.fit(X[train], y[train])
        seconds = time.perf_counter() - started
        wrong = float((model.predict(X[test]) != y[test]).mean())
        print(
            f"{n} rows, {m} inducing, {inference}: {seconds:.0f} s for {model.n_iter_} iterations, "
            f"MZE {wrong:.4f}"
        )
    few = slice(0, 2000)
    exact = GPOR().fit(X[few], y[few])
    for m_few in (50, 100, 200, 400):
        sparse = GPOR(n_landmarks=m_few, random_state=0).fit(X[few], y[few])
        apart = np.abs(sparse.predict_proba(X[test]) - exact.predict_proba(X[test]))
        print(
            f"2000 rows, {m_few} inducing against exact: evidence {sparse.log_evidence_:.1f} "
            f"against {exact.log_evidence_:.1f}, probabilities off by {apart.mean():.4f} on "
            f"average, {apart.max():.4f} at most"
        )


def smooth_ranks(n: int, d: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return five ranks of equal size of a smooth function with noise."""
    X = rng.normal(size=(n, d))
    score = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    return X, np.digitize(score, np.quantile(score, [0.2, 0.4, 0.6, 0.8]))


def real_users(folder: str) -> list[Problem]:
    """Return every user's ranks with an item kernel; its values do not matter for the time."""
    ratings = load_movielens(folder)
    items = np.random.default_rng(0).normal(size=(ratings.n_items, 20))
    rows = [ratings.rows_of_user(user) for user in range(ratings.n_users)]
    return [(item_kernel(items[ratings.items[part]]), ratings.levels[part]) for part in rows]


def invented_users() -> list[Problem]:
    """Return 943 synthetic users with 20 to 737 ratings, 106 on average."""
    rng = np.random.default_rng(0)
    sizes = np.clip(20 + rng.gamma(0.75, 115.0, size=943), 20, 737).astype(int)
    return [(item_kernel(rng.normal(size=(n, 20))), rng.integers(0, 5, n)) for n in sizes]


def item_kernel(items: np.ndarray) -> np.ndarray:
    """Return a Gaussian kernel of item features."""
    return Gaussian(1 / 40)(items)


def near(theta: np.ndarray) -> Iterator[np.ndarray]:
    """Yield points around theta, as a line search would."""
    rng = np.random.default_rng(0)
    while True:
        yield theta + STEP * rng.normal(size=theta.size)


def median_seconds(call: Callable[[], object], rounds: int) -> float:
    """Return the median seconds of several runs."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


if __name__ == "__main__":
    main()
