"""Slow, obvious twins of the metrics of lists: one user after another, whole lists in Python."""

from __future__ import annotations

from math import ceil, log2, nan

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
