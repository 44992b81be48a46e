"""How long the item kernels of all users take, against one dense Gram of the same matrix.

    python pipelines/bench_features.py [folder of MovieLens 1M] [--dtype float32] [--threads 2]

Prints one line a measurement, in seconds by the clock and (in brackets) of processor time, which
other programs disturb less. The kernels of all users should stay under 3 times one dense Gram;
each user's is that of his own training items, and the larger kernel has all five kinds of
component.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ordrec.datasets import load_movielens
from ordrec.datasets.movielens import genre_flags
from ordrec.features.low_rank import LowRankEM
from ordrec.features.matrix import RatingMatrix
from ordrec.kernels.content import Content
from ordrec.kernels.corating import CoRating
from ordrec.kernels.items import ItemKernel
from ordrec.kernels.low_rank import LowRank
from ordrec.kernels.pearson import Pearson, Residual


def main() -> None:
    """Load, measure, print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", nargs="?", default="data/ml-1m")
    options.add_argument("--dtype", default="float64", choices=["float64", "float32"])
    options.add_argument("--threads", type=int, default=2)
    chosen = options.parse_args()
    ratings = load_movielens(chosen.folder)
    matrix = RatingMatrix.from_ratings(ratings)
    print(f"{ratings!r}\nmemory with the data loaded: {peak_memory():.2f} GB")
    low_rank_steps(matrix)
    with threadpool_limits(chosen.threads, "blas"):
        gram = dense_gram(matrix, chosen.dtype)
    ratings_only = [Pearson().normalised(50), CoRating().normalised(2)]
    everything = [
        *ratings_only,
        Residual().normalised(100),
        Content("genres").normalised(),
        LowRank(8),
    ]
    genres = genre_flags(ratings.item_table).to_numpy()
    compile_loops(everything, matrix, genres, chosen.dtype)
    for label, components in (("Pearson, co-rating", ratings_only), ("all five", everything)):
        kernel = ItemKernel(components, dtype=chosen.dtype, n_jobs=chosen.threads)
        fit = seconds(lambda k=kernel: k.fit(matrix, {"genres": genres}))
        users = seconds(lambda k=kernel: all_users(k, chosen.threads))
        print(
            f"{label}: moments {shown(fit)}, kernels of {matrix.n_users} users {shown(users)}, "
            f"ratio to one dense Gram {users[0] / gram[0]:.2f} ({users[1] / gram[1]:.2f})"
        )
    print(f"peak memory {peak_memory():.2f} GB")


def compile_loops(components: list, matrix: RatingMatrix, genres: np.ndarray, dtype: str) -> None:
    """A small kernel, so that no measurement contains compilation."""
    small = RatingMatrix(matrix.values[:50])
    ItemKernel(components, dtype=dtype).fit(small, {"genres": genres[:50]}).for_user(0, [0])


def low_rank_steps(matrix: RatingMatrix) -> None:
    """Ten EM steps at rank 20, after one to compile."""
    for steps in (1, 10):
        em = LowRankEM(rank=20, anneal=False, max_iter=steps, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            taken = seconds(lambda em=em: em.fit(matrix.values))
    print(f"LowRankEM, rank 20, ten steps: {shown(taken)}, peak memory {peak_memory():.2f} GB")


def dense_gram(matrix: RatingMatrix, dtype: str) -> tuple[float, float]:
    """Seconds of one Gram of the matrix made dense, the better of three."""
    dense = matrix.to_dense(missing=0.0).astype(dtype)
    taken = min(seconds(lambda: dense @ dense.T) for _ in range(3))
    print(f"dense Gram {dense.shape}, {dtype}: {shown(taken)}")
    return taken


def all_users(kernel: ItemKernel, threads: int) -> None:
    """The kernel of each user's own items, dropped at once."""

    def of_some(users: np.ndarray) -> float:
        return sum(float(kernel.for_user(int(u))[0, 0]) for u in users if len(kernel.items_of(u)))

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:
        list(pool.map(of_some, np.array_split(np.arange(kernel.n_users_), 16 * threads)))


def seconds(work) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """How long it takes, by the clock and of processor time."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


def shown(taken: tuple[float, float]) -> str:
    """Both times as text."""
    return f"{taken[0]:.2f} s ({taken[1]:.2f})"


def peak_memory() -> float:
    """Of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


if __name__ == "__main__":
    main()
