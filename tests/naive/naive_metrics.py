"""Slow reference implementations of the metrics: plain loops over rows and pairs."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from math import log, log2, nan, sqrt


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else nan


def macro(metric, y, p, groups, **options):
    """Mean over the groups where the metric is defined."""
    values = []
    for group in sorted(set(groups)):
        rows = [i for i, g in enumerate(groups) if g == group]
        values.append(metric([y[i] for i in rows], [p[i] for i in rows], **options))
    return mean(v for v in values if v == v)


def mae(y, p):
    return mean(abs(a - b) for a, b in zip(y, p, strict=True))


def mze(y, p):
    return mean(float(a != b) for a, b in zip(y, p, strict=True))


def rmse(y, p):
    return sqrt(mean((a - b) ** 2 for a, b in zip(y, p, strict=True)))


def off_by_one(y, p):
    return mean(float(abs(a - b) <= 1) for a, b in zip(y, p, strict=True))


def macro_mae(y, p):
    return mean(
        mean(abs(a - b) for a, b in zip(y, p, strict=True) if a == c) for c in sorted(set(y))
    )


def quadratic_kappa(y, p):
    """One minus the ratio of observed to expected squared differences."""
    observed = sum((a - b) ** 2 for a, b in zip(y, p, strict=True)) / len(y)
    expected = sum((a - b) ** 2 for a in y for b in p) / len(y) ** 2
    return nan if expected == 0 else 1 - observed / expected


def kendall_tau(y, p):
    c = d = only_y = only_p = 0
    for i, j in combinations(range(len(y)), 2):
        a, b = y[i] - y[j], p[i] - p[j]
        if a == 0 and b == 0:
            continue
        if a == 0:
            only_y += 1
        elif b == 0:
            only_p += 1
        elif a * b > 0:
            c += 1
        else:
            d += 1
    below = (c + d + only_y) * (c + d + only_p)
    return nan if below == 0 else (c - d) / sqrt(below)


def log_loss(y, p):
    return mean(-log(max(row[a], 1e-15)) for a, row in zip(y, p, strict=True))


def ranked_probability_score(y, p):
    total = []
    for a, row in zip(y, p, strict=True):
        r = len(row)
        total.append(sum((sum(row[: k + 1]) - (a <= k)) ** 2 for k in range(r - 1)) / (r - 1))
    return mean(total)


def brier_score(y, p):
    return mean(
        sum((q - (a == k)) ** 2 for k, q in enumerate(row)) for a, row in zip(y, p, strict=True)
    )


def expected_calibration_error(y, p, event="top", n_bins=15):
    pairs = []
    for a, row in zip(y, p, strict=True):
        if event == "top":
            top = list(row).index(max(row))
            pairs.append((row[top], top == a))
        else:
            pairs += [(min(sum(row[: k + 1]), 1.0), a <= k) for k in range(len(row) - 1)]
    error = 0.0
    for b in range(n_bins):
        inside = [(q, e) for q, e in pairs if b < q * n_bins <= b + 1 or (b == 0 and q == 0)]
        if inside:
            gap = mean(q for q, _ in inside) - mean(float(e) for _, e in inside)
            error += len(inside) / len(pairs) * abs(gap)
    return error


def _ranked(relevance, scores):
    """Relevance by falling score; for distinct scores only."""
    return [r for _, r in sorted(zip(scores, relevance, strict=True), key=lambda pair: -pair[0])]


def ndcg(relevance, scores, k=10, gain="exponential", discount="log2"):
    def dcg(ranked):
        total = 0.0
        for t, rel in enumerate(ranked[:k], start=1):
            worth = 2**rel - 1 if gain == "exponential" else rel
            if discount == "log2":
                total += worth / log2(t + 1)
            else:
                total += worth if t <= 2 else worth / log2(t)
        return total

    best = dcg(sorted(relevance, reverse=True))
    return nan if best == 0 else dcg(_ranked(relevance, scores)) / best


def mean_average_precision(relevance, scores):
    ranked = _ranked(relevance, scores)
    hits = [t for t, rel in enumerate(ranked, start=1) if rel >= 1]
    return mean((n + 1) / t for n, t in enumerate(hits))


def precision_at(relevance, scores, k=10):
    ranked = _ranked(relevance, scores)
    if not any(rel >= 1 for rel in ranked):
        return nan
    return sum(rel >= 1 for rel in ranked[:k]) / k


def recall_at(relevance, scores, k=10):
    ranked = _ranked(relevance, scores)
    relevant = sum(rel >= 1 for rel in ranked)
    return nan if relevant == 0 else sum(rel >= 1 for rel in ranked[:k]) / relevant


def mean_reciprocal_rank(relevance, scores):
    hits = [t for t, rel in enumerate(_ranked(relevance, scores), start=1) if rel >= 1]
    return 1 / hits[0] if hits else nan


def pair_counts(relevance, scores):
    right = pairs = 0.0
    for i, j in combinations(range(len(scores)), 2):
        a, b = relevance[i] - relevance[j], scores[i] - scores[j]
        if a != 0:
            pairs += 1
            right += 0.5 if b == 0 else float(a * b > 0)
    return right, pairs


def fcp(relevance, scores):
    right, pairs = pair_counts(relevance, scores)
    return nan if pairs == 0 else right / pairs


def by_ir_measures(measure, relevant, scores, groups):
    """Mean of a measure of ir-measures over the groups with a relevant row, such as "AP".

    Scores must differ within a group: trec_eval orders ties by name.
    """
    import ir_measures

    wanted, found = defaultdict(dict), defaultdict(dict)
    for row, (flag, score, group) in enumerate(zip(relevant, scores, groups, strict=True)):
        wanted[str(group)][str(row)] = int(flag)
        found[str(group)][str(row)] = float(score)
    wanted = {group: rows for group, rows in wanted.items() if any(rows.values())}
    evaluator = ir_measures.evaluator([ir_measures.parse_measure(measure)], wanted)
    return mean(result.value for result in evaluator.iter_calc(found) if result.query_id in wanted)
