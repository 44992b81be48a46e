from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import naive_metrics as naive

from ordrec import evaluation as ev
from ordrec.errors import ArgumentError, DataError

NAMES = ["mae", "mze", "rmse", "off_by_one", "macro_mae", "quadratic_kappa", "kendall_tau"]
ranks = st.integers(1, 5)
rows = st.lists(st.tuples(ranks, ranks, st.integers(0, 3)), min_size=1, max_size=40)


@pytest.mark.parametrize("name", NAMES)
@given(table=rows)
def test_pooled_and_per_user_forms_equal_plain_loops(name, table):
    y, p, users = (list(column) for column in zip(*table, strict=True))
    metric, twin = getattr(ev, name), getattr(naive, name)
    assert metric(y, p) == pytest.approx(twin(y, p), nan_ok=True, abs=1e-12)
    expected = naive.macro(twin, y, p, users)
    assert metric(y, p, groups=users) == pytest.approx(expected, nan_ok=True, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
@given(table=rows, seed=st.integers(0, 99))
def test_order_of_rows_does_not_matter(name, table, seed):
    y, p, users = (np.array(column) for column in zip(*table, strict=True))
    shuffled = np.random.default_rng(seed).permutation(len(y))
    metric = getattr(ev, name)
    again = metric(y[shuffled], p[shuffled], groups=users[shuffled])
    assert metric(y, p, groups=users) == pytest.approx(again, nan_ok=True, abs=1e-12)


@given(table=rows)
def test_kappa_agrees_with_scikit_learn_when_all_ranks_are_declared(table):
    from sklearn.metrics import cohen_kappa_score

    y, p, _ = zip(*table, strict=True)
    ours = ev.quadratic_kappa(y, p)
    if not np.isnan(ours):
        theirs = cohen_kappa_score(y, p, labels=[1, 2, 3, 4, 5], weights="quadratic")
        assert ours == pytest.approx(theirs, abs=1e-12)


def test_known_answers():
    y, p = [1, 2, 3, 5], [1, 3, 3, 2]
    assert ev.mae(y, p) == 1.0
    assert ev.mze(y, p) == 0.5
    assert ev.rmse(y, p) == pytest.approx(np.sqrt(10 / 4))
    assert ev.off_by_one(y, p) == 0.75
    assert ev.macro_mae([1, 1, 1, 5], [1, 1, 1, 1]) == 2.0
    assert ev.quadratic_kappa([1, 2, 3], [3, 2, 1]) == -1.0


def test_per_group_shows_undefined_users_that_the_mean_leaves_out():
    y, p, users = [1, 2, 3, 3], [1, 2, 5, 4], ["b", "b", "a", "a"]
    values = ev.kendall_tau.per_group(y, p, users)
    assert np.isnan(values[0])
    assert values[1] == pytest.approx(1.0)
    assert ev.kendall_tau(y, p, groups=users) == pytest.approx(1.0)
    assert ev.kendall_tau(y, p, groups=users, undefined=0.0) == pytest.approx(0.5)
    assert np.isnan(ev.kendall_tau([3, 3], [1, 2], groups=[0, 1]))


@pytest.mark.parametrize("name", NAMES)
def test_bad_input_is_named(name):
    metric = getattr(ev, name)
    with pytest.raises(DataError, match=f"{name}: nothing to measure"):
        metric([], [])
    with pytest.raises(ArgumentError, match="3 true values but 2 predictions"):
        metric([1, 2, 3], [1, 2])
    with pytest.raises(DataError, match=r"the prediction of row 1 is nan \(1 in all\)"):
        metric([1, 2], [1, float("nan")])
    with pytest.raises(DataError, match="the true value of row 0 is inf"):
        metric([float("inf"), 2], [1, 2])
    with pytest.raises(ArgumentError, match="groups must name one group per row"):
        metric([1, 2], [1, 2], groups=[1])
    with pytest.raises(ArgumentError, match="need one true value and one number"):
        metric([1, 2], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(ArgumentError, match="values must be numbers"):
        metric([1, 2], ["good", "bad"])


def test_the_signature_shows_groups_and_the_docstring_the_formula():
    import inspect

    assert list(inspect.signature(ev.mae).parameters) == ["y_true", "y_pred", "groups", "undefined"]
    assert "mean |p - y|" in ev.mae.__doc__
