"""The state of one rank, besides its MPI state.

Everything except its place in the world is made at its first use. A rank that never reads its
environment or draws a random number pays nothing for them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pysmpi.isolation.exchange import State
from pysmpi.mpi.base import ranks

# Above the numbers of an operating system (Linux: 4194304), so that no real process has them.
FIRST_PID = 5_000_000

AtExit = tuple[Callable[..., object], tuple[object, ...], dict[str, object]]


class Invocation(NamedTuple):
    """The part of the environment that all ranks of a program have in common.

    `size` is the number of ranks in the world, `seed` that of the run.
    """

    size: int = 1
    seed: int = 0
    arguments: list[str] | None = None  # sys.argv to begin with; None is the interpreter's own
    path_entry: str | None = None  # the first entry of sys.path
    variables: Mapping[str, str] | None = None  # environment variables that only these ranks have


_ALONE = Invocation()


class _Names:
    """The dictionaries of its instances have one table of names: each takes less memory."""


class RankEnvironment:
    """The private environment of one rank; `Rank.program` holds them.

    `rank` is the place in the world; `local_rank` of `local_size` that among the ranks of the same
    host. `number` distinguishes all ranks of a run, spawned ones included.
    """

    __slots__ = (
        "number",
        "rank",
        "local_rank",
        "local_size",
        "host",
        "invocation",
        "state",
        "environ",
        "random",
        "numpy_random",
        "generators",
        "at_exit",
        "finalizes",
        "logging",
        "main_thread",
        "threaded",
        "importing",
    )

    def __init__(
        self,
        rank: int = 0,
        invocation: Invocation = _ALONE,
        *,
        number: int | None = None,
        local_rank: int | None = None,
        local_size: int | None = None,
        host: str = "localhost",
    ) -> None:
        self.number = rank if number is None else number
        self.rank = rank
        self.local_rank = rank if local_rank is None else local_rank
        self.local_size = invocation.size if local_size is None else local_size
        self.host = host
        self.invocation = invocation
        self.state = State(self)  # exchanged when it continues
        self.state.modules = vars(_Names())  # most ranks have modules of the same names
        self.environ: dict[Any, Any] | None = None
        self.random: object = None
        self.numpy_random: object = None
        self.generators = 0  # unseeded numpy generators made so far
        self.at_exit: list[AtExit] | None = None
        self.finalizes = False  # whether its exit functions call its finalizers (weakref)
        self.logging: dict[Any, dict[str, Any]] | None = None
        self.main_thread: threading.Thread | None = None
        self.threaded = False  # whether it has started threads
        self.importing = 0  # shared modules that it is in the middle of importing

    @property
    def distinct_seed(self) -> int:
        """A seed for this rank's random numbers, from the seed of the run and its number."""
        # An odd multiplier keeps the seeds of different ranks of one run different.
        return (self.invocation.seed * 0x9E3779B1 + self.number * 0x85EBCA6B + 0x5851F42D) % 2**32


def here() -> RankEnvironment | None:
    """The environment of the rank that is running; None outside a run."""
    return ranks.current().program  # type: ignore[no-any-return]
