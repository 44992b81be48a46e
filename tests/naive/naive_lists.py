"""Slow, obvious twins of lists and of their metrics: one user after another, in Python."""

from __future__ import annotations

from math import ceil, log2, nan

import numpy as np
import pandas as pd
from naive.naive_metrics import mean


def dcg(ranked, k):
    return sum(gain / log2(place + 1) for place, gain in enumerate(ranked[:k], start=1))


def ndcg_of_gains(listed, gains, k):
    """``listed``: items best first; ``gains``: of the user's test items, others have none."""
    best = dcg(sorted((g for g in gains.values() if g > 0), reverse=True), k)
    return nan if best == 0 else dcg([gains.get(item, 0.0) for item in listed], k) / best


def graded_ndcg(listed, ranks, n_ranks, k):
    assert n_ranks <= 10
    return ndcg_of_gains(listed, {i: 2.0**rank - 1 for i, rank in ranks.items()}, k)


def pick_ndcg(listed, ranks, n_ranks, k):
    return ndcg_of_gains(listed, dict.fromkeys(ranks, 1.0), k)


def liked(ranks, n_ranks):
    return {i for i, rank in ranks.items() if rank >= ceil(0.8 * n_ranks)}


def liked_ndcg(listed, ranks, n_ranks, k):
    return ndcg_of_gains(listed, dict.fromkeys(liked(ranks, n_ranks), 1.0), k)


def liked_recall(listed, ranks, n_ranks, k):
    wanted = liked(ranks, n_ranks)
    return len(wanted & set(listed[:k])) / min(k, len(wanted)) if wanted else nan


def hit_rate(listed, ranks, n_ranks, k):
    return float(any(item in ranks for item in listed[:k]))


def net_ndcg(listed, ranks, n_ranks, k):
    return ndcg_of_gains(listed, {i: rank - (n_ranks + 1) / 2 for i, rank in ranks.items()}, k)


def over_users(metric, lists, ranks, n_ranks, k):
    values = [metric(lists[user], ranks[user], n_ranks, k) for user in lists]
    return mean(v for v in values if v == v)


def disliked(lists, ranks, n_ranks, k):
    hits = [ranks[u][i] for u in lists for i in lists[u][:k] if i in ranks[u]]
    return mean(float(rank < (n_ranks + 1) / 2) for rank in hits)


def coverage(lists, n_items, k):
    return len({item for listed in lists.values() for item in listed[:k]}) / n_items


def gini(lists, n_items, k):
    """Mean absolute difference of all pairs over twice the mean."""
    counts = [sum(i in listed[:k] for listed in lists.values()) for i in range(n_items)]
    if not any(counts):
        return nan
    pairs = sum(abs(a - b) for a in counts for b in counts)
    return pairs / (2 * n_items * sum(counts))


def novelty(lists, item_counts, n_users, k):
    return mean(
        -log2(max(item_counts[i], 1) / n_users) for listed in lists.values() for i in listed[:k]
    )


# ---- lists ---------------------------------------------------------------------------------


def list_by_rating(model, ratings, user, n, by, *, candidates, exclude, only, include_rated):
    """All items that may be listed, sorted by score, expected rating and place among the items."""
    rated = ratings.to_frame()
    own = set(rated.loc[rated["user"] == user, "item"])
    items = list(ratings.item_ids) if candidates is None else candidates
    table = pd.DataFrame({"item": [item for item in ratings.item_ids if item in set(items)]})
    if candidates is None:
        table = table[table["item"].isin(rated["item"])]
    if only is not None:
        table = table[table["item"].isin(only)]
    table = table[~table["item"].isin(exclude or [])]
    if not include_rated:
        table = table[~table["item"].isin(own)]
    values = ratings.scale.values
    p = model.predict_proba([user] * len(table), table["item"]) if len(table) else np.zeros((0, 5))
    score = {
        "expected": lambda row: row @ values,
        "p_at_least": lambda row: row[values >= values[ceil(0.8 * values.size) - 1]].sum(),
        "lower_quantile": lambda row: values[np.argmax(np.cumsum(row) >= 0.25 - 1e-12)],
    }[by]
    table = table.assign(score=[score(row) for row in p], expected=p @ values)
    table = table.sort_values(["score", "expected"], ascending=False, kind="stable")
    return table.head(n).reset_index(drop=True)
