"""Time of the item kernels of all users, compared with one dense Gram of the same matrix.

    python pipelines/speed/bench_features.py [folder of MovieLens 1M] [--dtype float32]
                                              [--threads N]

Prints one line per measurement, with wall-clock seconds and (in brackets) CPU seconds, which
depend less on other programs. The kernels of all users should take less than 3 times one dense
Gram; each user's kernel is that of their own training items, and the larger kernel has all five
kinds of component.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ordrec.data.formats.movielens import genre_flags
from ordrec.datasets import load_movielens
from ordrec.experiments.timing import first_run, peak_memory
from ordrec.features.low_rank.model import LowRankEM
from ordrec.features.matrix import RatingMatrix
from ordrec.kernels.items.content import Content
from ordrec.kernels.items.corating import CoRating
from ordrec.kernels.items.kernel import ItemKernel
from ordrec.kernels.items.low_rank import LowRank
from ordrec.kernels.items.pearson import Pearson, Residual
from ordrec.runtime.parallel import run_all, worker_count


def main() -> None:
    """Load the ratings, measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", nargs="?", default="data/ml-1m")
    options.add_argument("--dtype", default="float64", choices=["float64", "float32"])
    options.add_argument("--threads", type=int, help="of the kernels; all cores by default")
    chosen = options.parse_args()
    ratings = load_movielens(chosen.folder)
    matrix = RatingMatrix.from_ratings(ratings)
    print(f"{ratings!r}\nmemory with the data loaded: {peak_memory():.2f} GB")
    low_rank_steps(matrix)
    gram = dense_gram(matrix, chosen.dtype)
    ratings_only = [Pearson().normalised(50), CoRating().normalised(2)]
    everything = [
        *ratings_only,
        Residual().normalised(100),
        Content("genres").normalised(),
        LowRank(8),
    ]
    genres = genre_flags(ratings.item_table).to_numpy()
    first_run(compile_loops, everything, matrix, genres, chosen.dtype)
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
    """Compute a small kernel, so that no measurement includes compilation."""
    small = RatingMatrix(matrix.values[:50])
    ItemKernel(components, dtype=dtype).fit(small, {"genres": genres[:50]}).for_user(0, [0])


def low_rank_steps(matrix: RatingMatrix) -> None:
    """Time one EM step at rank 20, which compiles or loads the loops, then ten."""
    for steps in (1, 10):
        em = LowRankEM(n_factors=20, anneal=False, max_iter=steps, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            taken = seconds(lambda em=em: em.fit(matrix.values))
        print(f"LowRankEM, rank 20, {steps} steps: {shown(taken)}")
    print(f"peak memory {peak_memory():.2f} GB")


def dense_gram(matrix: RatingMatrix, dtype: str) -> tuple[float, float]:
    """Return the seconds of one Gram of the dense matrix, the best of three."""
    dense = matrix.to_dense(missing=0.0).astype(dtype)
    taken = min(seconds(lambda: dense @ dense.T) for _ in range(3))
    print(f"dense Gram {dense.shape}, {dtype}: {shown(taken)}")
    return taken


def all_users(kernel: ItemKernel, threads: int | None) -> None:
    """Compute and discard the kernel of each user's own items."""

    def of_block(users: np.ndarray) -> float:
        return sum(float(kernel.for_user(int(u))[0, 0]) for u in users if len(kernel.items_of(u)))

    blocks = np.array_split(np.arange(kernel.n_users_), 16 * worker_count(threads))
    run_all(of_block, blocks, engine="threads", n_jobs=threads)


def seconds(work) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """Return the wall-clock and CPU seconds of a call."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor


def shown(taken: tuple[float, float]) -> str:
    """Return both times as text."""
    return f"{taken[0]:.2f} s ({taken[1]:.2f})"


if __name__ == "__main__":
    main()
