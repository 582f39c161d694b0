"""A progress line on standard error, for runs that take longer than a second on a terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType

#: seconds before the line appears, and between two updates
DELAY = 1.0
INTERVAL = 0.1


class Progress:
    """Callable as the runner's progress callback; the line is wiped at the end."""

    def __init__(self) -> None:
        self._active = sys.stderr.isatty()
        self._next = time.monotonic() + DELAY
        self._width = 0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show `what` and how far it is, at most ten times a second."""
        if not self._active or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + INTERVAL
        text = f"graphlint: {what}" + (f" ({done}/{total})" if total else "")
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Wipe the line."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
