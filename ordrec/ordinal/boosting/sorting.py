"""A fast sorting order for the line searches of boosting, which sort new numbers each time.

A line search sorts as many breakpoints as there are samples, two hundred times per round.
Distributing the top 33 bits (sign, exponent, 21 bits of the fraction) in three passes leaves
the order right except for neighbours that agree in all of them; insertion sort corrects those.
At a thousand numbers and more this takes a fifth of the time of a comparison sort.
"""

from __future__ import annotations

import numpy as np

from ordrec.runtime.compiling import inner

__all__ = ["ascending", "sorting_workspace"]

ONE, SIGN, DIGIT = np.uint64(1), np.uint64(1 << 63), np.uint64(2047)
LOW, MIDDLE, HIGH = np.uint64(31), np.uint64(42), np.uint64(53)


def sorting_workspace(n: int) -> tuple[np.ndarray, ...]:
    """n numbers to be sorted, and what `ascending` needs: their bits, a workspace, and the order.

    Made here, because views and memory of their own take compiled functions long to compile.
    """
    values, (spare, order) = np.empty(n), np.empty((2, n), dtype=np.int64)
    places = np.empty((3, 2048), dtype=np.int64)
    return values, values.view(np.uint64), np.empty(n, dtype=np.uint64), spare, places, order


@inner
def ascending(
    bits: np.ndarray, keys: np.ndarray, spare: np.ndarray, places: np.ndarray, order: np.ndarray
) -> None:
    """Write the order that sorts the numbers with these bits, see `sorting_workspace`."""
    n = bits.size
    for digit in range(3):
        for j in range(2048):
            places[digit, j] = 0
    for i in range(n):
        # unsigned integers that sort as the numbers do: negative ones count downwards
        key = ~bits[i] if bits[i] & SIGN else bits[i] | SIGN
        keys[i] = key
        places[0, (key >> LOW) & DIGIT] += 1
        places[1, (key >> MIDDLE) & DIGIT] += 1
        places[2, key >> HIGH] += 1
    for digit in range(3):
        start = 0
        for j in range(2048):
            start, places[digit, j] = start + places[digit, j], start
    for i in range(n):
        j = (keys[i] >> LOW) & DIGIT
        order[places[0, j]] = i
        places[0, j] += 1
    for i in range(n):
        j = (keys[order[i]] >> MIDDLE) & DIGIT
        spare[places[1, j]] = order[i]
        places[1, j] += 1
    for i in range(n):
        j = keys[spare[i]] >> HIGH
        order[places[2, j]] = spare[i]
        places[2, j] += 1
    for i in range(1, n):
        item, j = order[i], i
        while j > 0 and keys[order[j - 1]] > keys[item]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = item
