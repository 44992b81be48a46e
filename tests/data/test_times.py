"""Times in milli-, micro- and nanoseconds are converted with a warning; mixed ones are refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ordrec.data import Ratings
from ordrec.data.times import seconds_of
from ordrec.errors import DataError
from ordrec.recommend import RatingPredictor

SECONDS = np.array([978_300_760, 1_480_000_000, 300_000_000, 0, 1_700_000_000, 978_300_761])


def ratings_at(times: np.ndarray) -> Ratings:
    frame = pd.DataFrame({"user": [1, 1, 1, 2, 2, 2], "item": [1, 2, 3] * 2,
                          "rating": [1, 2, 3, 4, 5, 3], "timestamp": times})  # fmt: skip
    return Ratings.from_frame(frame)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize(
    ("unit", "name"),
    [(1000, "milliseconds"), (1000**2, "microseconds"), (1000**3, "nanoseconds")],
)
def test_finer_units_are_converted_with_a_warning(unit: int, name: str, dtype: type) -> None:
    with pytest.warns(UserWarning, match=f"timestamp: read as {name} since 1970, such as 9783007"):
        ratings = ratings_at((SECONDS * unit).astype(dtype))
    np.testing.assert_array_equal(ratings.timestamps, SECONDS)
    with pytest.warns(UserWarning, match=f"read as {name}"):
        assert seconds_of([str(time) for time in SECONDS * unit]).tolist() == SECONDS.tolist()


@pytest.mark.parametrize("times", [SECONDS, SECONDS * 0, SECONDS + 50 * 10**9])
def test_seconds_stay_as_they_are(times: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(ratings_at(times).timestamps, times)
    dates = pd.to_datetime(SECONDS, unit="s")
    np.testing.assert_array_equal(ratings_at(dates).timestamps, SECONDS)


@pytest.mark.parametrize(
    ("row", "value"), [(1, SECONDS[1] * 1000), (2, 10**21), (5, SECONDS[5] * 10**9)]
)
def test_a_time_in_another_unit_is_named(row: int, value: int) -> None:
    times = SECONDS.astype(np.float64)
    times[row] = value
    with pytest.raises(DataError, match=rf"row {row}: timestamp .* is not a time in seconds"):
        ratings_at(times)
    milliseconds = SECONDS * 1000
    milliseconds[4] = SECONDS[4]
    with pytest.raises(DataError, match=r"row 4: timestamp .* is not a time in milliseconds"):
        ratings_at(milliseconds)


def test_predictions_take_the_same_units() -> None:
    model = RatingPredictor(preset="fast").fit(ratings_at(SECONDS))
    for ask in (
        lambda time: model.predict_proba([1, 2], [3, 1], [time, time]),
        lambda time: model.explain(1, 2, time).table["contribution"].to_numpy(),
        lambda time: model.update(1, 3, 5.0, time).predict_proba([1], [2], [1_480_000_001]),
    ):
        expected = ask(1_480_000_000)
        with pytest.warns(UserWarning, match="read as milliseconds"):
            np.testing.assert_array_equal(ask(1_480_000_000_000), expected)


@pytest.mark.parametrize(
    ("texts", "date"),
    [
        (["20201231", "19991231", "0"], "2020-12-31"),
        (["20201231235959", "20010101000000", "0"], "2020-12-31 23:59:59"),
        (["202012312359", "200101010000", "0"], "2020-12-31 23:59"),
    ],
)
@pytest.mark.parametrize("kind", [str, int, float])
def test_dates_in_digits_are_dates(texts: list[str], date: str, kind: type) -> None:
    times = [*texts, *texts] if kind is str else [kind(text) for text in [*texts, *texts]]
    with pytest.warns(UserWarning, match="dates that are written in digits, such as"):
        stamps = ratings_at(np.array(times, dtype=object if kind is str else kind)).timestamps
    assert stamps is not None
    assert stamps[0] == pd.Timestamp(date).timestamp()
    assert stamps[2] == 0


@pytest.mark.parametrize(
    ("times", "says"),
    [([2020, 2019, 0] * 2, "years"), ([44196, 44000.5, 0] * 2, "days of a spreadsheet")],
)
def test_years_and_days_of_spreadsheets_are_refused(times: list[float], says: str) -> None:
    with pytest.raises(DataError, match=rf"row 0: timestamp .*{says}.*2020-12-31.*timestamp=None"):
        ratings_at(np.array(times))


@pytest.mark.parametrize("written", ["number", "date", "text"])
def test_times_before_1970_are_refused(written: str) -> None:
    """Models take them for unknown, as they do 0."""
    times: dict[str, Any] = {
        "number": np.array([5, 6, -86_400, 7, 8, -9]),
        "date": pd.to_datetime(["1970-01-02"] * 2 + ["1969-12-31"] + ["1970-01-03"] * 3),
        "text": np.array(["1970-01-02", "7", "1969-12-31", "0", "", "9"], dtype=object),
    }
    rows = "" if written == "text" else "row 2: "
    with pytest.raises(DataError, match=rf"{rows}.*-86400 is before 1970.*timestamp=None"):
        seconds_of(times[written])
    if written != "text":
        with pytest.raises(DataError, match="is before 1970"):
            ratings_at(times[written])


def test_counters_are_no_dates() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ratings_at(np.array([1, 2, 3, 2000, 45_000, 20_201_231])).timestamps is not None
        impossible = np.array([20_201_399, 20_201_231, 0, 0, 0, 0])
        assert ratings_at(impossible).timestamps is not None
