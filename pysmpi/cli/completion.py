"""What the shell offers for the arguments of commands: files, and names that pysmpi knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

Complete = Callable[[click.Context, click.Parameter, str], list[Any]]


def files(ctx: click.Context, param: click.Parameter | None, incomplete: str) -> list[Any]:
    """The shell's own names of files."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def names(known: Callable[[], Iterable[str]], or_files: bool = False) -> Complete:
    """The names of `known` that begin so; where none does, files, if the argument may be one."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name) for name in known() if name.startswith(incomplete)]
        return found if found or not or_files else files(ctx, param, incomplete)

    return complete


def codes() -> list[str]:
    """The codes of diagnostics, with those of checkers."""
    from pysmpi.checkers import CHECKERS
    from pysmpi.diagnostics import DIAGNOSTICS

    CHECKERS.names()  # they register their diagnostics
    return list(DIAGNOSTICS)


def operations() -> list[str]:
    """The operations of collectives."""
    from pysmpi.collectives.registry import COLLECTIVES

    return COLLECTIVES.names()


def machines() -> list[str]:
    """The machines that come with pysmpi."""
    from pysmpi.platform.loader import shipped

    return shipped()


def algorithms(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """The algorithms of the operation before, and the selectors."""
    from pysmpi.collectives.registry import COLLECTIVES, SELECTORS, algorithms_of

    operation = ctx.params.get("operation")
    own = list(algorithms_of(operation)) if operation in COLLECTIVES.names() else []
    return names(lambda: [*own, *SELECTORS.names()])(ctx, param, incomplete)
