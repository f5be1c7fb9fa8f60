"""Lines of a terminal or a pipe, read beside a node's callbacks."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

_LONGEST = 10_000  # characters


class LineReader:
    """Reads standard input in a thread, one line at a time.

    Args:
        prompt: For a terminal.
        words: That a terminal completes.
        take: Called in the thread with each line, and with None at the end; the next line is read
            after next().

    Attributes:
        terminal: Whether somebody types.
    """

    def __init__(
        self, prompt: str, words: Sequence[str], take: Callable[[str | None], None]
    ) -> None:
        self.terminal = sys.stdin.isatty()
        self._prompt, self._words, self._take = prompt, list(words), take
        self._next = threading.Event()
        self._thread = threading.Thread(target=self._read, name="lines", daemon=True)

    def start(self) -> None:
        """Begins to read."""
        self._thread.start()

    def next(self) -> None:
        """Allows the next line to be read."""
        self._next.set()

    def _read(self) -> None:
        if self.terminal:
            _complete(self._words)
        for line in self._lines():
            self._take(line)
            self._next.wait()
            self._next.clear()
        self._take(None)

    def _lines(self) -> Iterator[str]:
        try:
            if self.terminal:
                while True:
                    yield input(self._prompt)
            sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
            while line := sys.stdin.readline(_LONGEST):
                yield line
        except EOFError:  # Ctrl-D
            print()


def _complete(words: list[str]) -> None:
    """History and completion, where Python has readline."""
    try:
        import readline
    except ImportError:
        return

    def complete(text: str, state: int) -> str | None:
        found = [word for word in words if word.lower().startswith(text.lower())]
        return found[state] if state < len(found) else None

    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")


@contextmanager
def kept_terminal() -> Iterator[None]:
    """Leaves the terminal as it was, though a thread may be waiting in the middle of a line."""
    if not sys.stdin.isatty():
        yield
        return
    import termios

    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
