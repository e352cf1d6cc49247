"""Ctrl-C and SIGTERM: the first stops a run at the next safe moment, the second at once."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Whether this process was asked to stop, and by which signal."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.notice = ""
        """What the first request prints at once."""

    def __bool__(self) -> bool:
        return self.signal is not None

    def take(self, number: int, frame: FrameType | None) -> None:
        """Store the first request; raise KeyboardInterrupt at the second."""
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
        if self.notice:
            # A write that this one interrupts cannot be entered again; the request counts without the notice too.
            with suppress(RuntimeError):
                print(f"\n{self.notice}", file=sys.stderr, flush=True)

    @contextmanager
    def announce(self, notice: str) -> Iterator[None]:
        """Print a notice at once if the first request comes in this block."""
        self.notice = notice
        try:
            yield
        finally:
            self.notice = ""

    def check(self) -> None:
        """Raise KeyboardInterrupt if a stop was requested."""
        if self:
            raise KeyboardInterrupt


@contextmanager
def stop_request() -> Iterator[StopRequest]:
    """Catch the signals; only the main thread of a process receives them."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, request.take) for number in SIGNALS}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
