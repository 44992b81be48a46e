"""Cost-sensitive one-against-all classification."""

from __future__ import annotations

import numpy as np

from ordrec.ordinal.baselines.machines import TwoFormBaseline
from ordrec.ordinal.baselines.svc import SVC1VA

__all__ = ["CSSVC"]


class CSSVC(TwoFormBaseline, SVC1VA):
    """One rank against all others, where far ranks weigh more than near ones.

    In the machine of rank k, a sample of another rank y weighs ``|y - k|``, scaled so that the
    other ranks weigh as much together as without costs. With ``published=True`` it weighs
    ``|y - k| + 1``, scaled likewise, as in the program of Wang et al. (2017): near ranks then count
    for more.
    See `ordrec.ordinal.baselines.machines.TwoFormBaseline` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> CSSVC(C=10).fit(X, np.repeat([1, 2, 3], 4)).predict([[0.0], [5.5], [11.0]])
    array([1, 2, 3])
    """

    def _costs(self, ranks: np.ndarray, k: int) -> np.ndarray:
        costs = np.abs(ranks - k).astype(np.float64)
        others = costs > 0
        costs += float(self.published)
        costs[others] /= costs[others].mean() if others.any() else 1.0
        return np.where(others, costs, 1.0)
