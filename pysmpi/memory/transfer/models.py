"""The registry of intra-node models.

A model is a function from a node and two cores to a `Channel`, which prices the messages from the
one to the other. A new one is such a function under `@memory_model(name, line)`; one of a user's
own package is found through the entry point group `pysmpi.memory_models`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.metadata import entry_points

from pysmpi.errors import UsageError
from pysmpi.loading import Once
from pysmpi.memory.transfer.channel import Channel
from pysmpi.memory.transfer.library import seconds
from pysmpi.memory.transfer.room import Room
from pysmpi.memory.transfer.single_copy import SingleCopy
from pysmpi.options import Settings

# (room, slot of the sender, slot of the receiver, core of the sender, core of the receiver)
Builder = Callable[[Room, int, int, int, int], Channel]


@dataclass(frozen=True)
class MemoryModel:
    """A name, one line about it, and what makes its builder from the options of a run.

    Without one (`loopback`), messages inside a node are the network model's.
    """

    name: str
    line: str
    prepare: Callable[[Settings], Builder] | None


_models: dict[str, MemoryModel] = {}


def memory_model(
    name: str, line: str
) -> Callable[[Callable[[Settings], Builder]], Callable[[Settings], Builder]]:
    """Register what makes channels under `name`."""

    def register(prepare: Callable[[Settings], Builder]) -> Callable[[Settings], Builder]:
        _models[name] = MemoryModel(name, line, prepare)
        return prepare

    return register


def memory_models() -> dict[str, MemoryModel]:
    """All models, by name."""
    _load()
    return _models


@Once
def _load() -> None:
    for entry in entry_points(group="pysmpi.memory_models"):
        entry.load()


def find_memory_model(name: str) -> MemoryModel:
    """The model called `name`; UsageError if there is none."""
    known = memory_models()
    if name not in known:
        close = get_close_matches(name, known, 1)
        hint = f"did you mean {close[0]}? " if close else ""
        names = ", ".join(known)
        raise UsageError(f"--memory-model {name}: no such model; {hint}there are {names}")
    return known[name]


@memory_model("pipelined", "two copies through shared buffers, in chunks (Open MPI, MPICH)")
def pipelined(settings: Settings) -> Builder:
    """The pipelined transfer."""
    return Channel


def _single_copy(start: str, page: str, lasting: bool) -> Callable[[Settings], Builder]:
    def prepare(settings: Settings) -> Builder:
        first = seconds(settings, "memory/single-copy-start", start)
        each = seconds(settings, "memory/single-copy-page", page)

        def build(
            room: Room, source: int, destination: int, sender: int, receiver: int
        ) -> Channel:
            return SingleCopy(
                room, source, destination, sender, receiver, first, each, lasting
            )

        return build

    return prepare


memory_model("cma", "one copy by the receiver through Linux's Cross Memory Attach")(
    _single_copy("1us", "60ns", False)
)
memory_model("knem", "one copy by the receiver through the KNEM kernel module")(
    _single_copy("1.5us", "40ns", False)
)
memory_model("xpmem", "one copy by the receiver from the sender's pages, mapped through XPMEM")(
    _single_copy("0.3us", "250ns", True)
)
_models["loopback"] = MemoryModel(
    "loopback", "no model of the node: the network model's loopback, as in SMPI", None
)
