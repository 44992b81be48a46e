"""CPU seconds of CumulativeLink and of statsmodels' OrderedModel on the same rows.

    python pipelines/speed/bench_cumulative.py [--rows 20000] [--features 10]

Both maximise the same likelihood, which is printed to show it; the ratio is what counts. Numbers
are CPU seconds of one thread, after a first fit to few rows.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from statsmodels.miscmodels.ordinal_model import OrderedModel
from threadpoolctl import threadpool_limits

from ordrec.ordinal import CumulativeLink


def main() -> None:
    """Print seconds, their ratio and the difference of the log-likelihoods, for two links."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=20_000)
    options.add_argument("--features", type=int, default=10)
    chosen = options.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(chosen.rows, chosen.features))
    latent = X @ rng.normal(size=chosen.features) + rng.logistic(size=chosen.rows)
    y = np.digitize(latent, np.quantile(latent, [0.1, 0.3, 0.6, 0.8]))
    with threadpool_limits(1):
        CumulativeLink(alpha=0.0).fit(X[:200], y[:200])
        for link in ("logit", "probit"):
            started = time.process_time()
            mine = CumulativeLink(link, alpha=0.0).fit(X, y)
            own = time.process_time() - started
            started = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                other = OrderedModel(y, X, distr=link).fit(method="bfgs", disp=0, maxiter=1000)
            theirs = time.process_time() - started
            print(
                f"{link}: CumulativeLink {own:.2f} s, OrderedModel {theirs:.2f} s, ratio "
                f"{own / theirs:.3f}; log-likelihood {mine.log_likelihood_:.6f}, higher by "
                f"{mine.log_likelihood_ - other.llf:.1e}"
            )


if __name__ == "__main__":
    main()
