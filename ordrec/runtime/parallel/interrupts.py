"""Ctrl-C as a KeyboardInterrupt, wherever it arrives."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["interruptible"]


@contextmanager
def interruptible() -> Iterator[None]:
    """Make Ctrl-C within the block end it with a KeyboardInterrupt.

    While the compiler works, the interrupt may arrive in a callback from compiled code, where it
    would become a SystemError, or another error of the compiler, or be lost.
    """
    pressed: list[int] = []
    usual = signal.getsignal(signal.SIGINT)
    watching = (
        usual is signal.default_int_handler
        and threading.current_thread() is threading.main_thread()
    )

    def press(number: int, frame: object) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    if watching:
        signal.signal(signal.SIGINT, press)
    try:
        yield
        if pressed:
            raise KeyboardInterrupt
    except Exception as error:
        if pressed or _comes_from_interrupt(error):
            raise KeyboardInterrupt from error
        raise
    finally:
        if watching:
            signal.signal(signal.SIGINT, usual)


def _comes_from_interrupt(error: BaseException | None) -> bool:
    """Whether an error was raised because of, or while handling, a KeyboardInterrupt."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
