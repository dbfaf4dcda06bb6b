"""A bar on a terminal for the steps of an analysis and its page, which take long for big runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MANY = 5_000  # calls of a run: its analysis takes half a second or more


@contextmanager
def steps(count: int, calls: int = MANY) -> Iterator[Callable[[str], object]]:
    """A bar for work of so many steps: to be called with the name of each when it begins.

    It is shown on stderr if that is a terminal, and the run has many calls. No step may print.
    """
    if calls < MANY or not sys.stderr.isatty():
        yield str
        return
    import click  # most runs need no bar

    with click.progressbar(
        length=count, file=sys.stderr, show_eta=False, item_show_func=lambda step: step or ""
    ) as bar:
        begun = 0

        def begin(step: str) -> None:
            nonlocal begun
            bar.update(min(1, begun), step)
            bar.render_progress()
            begun += 1

        yield begin
        bar.update(1, "")
