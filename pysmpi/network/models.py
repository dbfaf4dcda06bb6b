"""The registry of network models.

A model is a function from a machine to a `Transport`: it gets the platform, the host of each
slot and the settings of the run, and returns the object that the kernel asks for plans. The list
of hosts grows when a program spawns processes in new places: look them up when asked. A new
model is one such function in a file of its own, under `@model(name, line)`; one of a user's own
package is found through the entry point group `pysmpi.models`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points

from pysmpi.errors import UsageError
from pysmpi.kernel.plan import Transport
from pysmpi.loading import Once
from pysmpi.options import Settings
from pysmpi.platform.model import Host, Platform

Builder = Callable[[Platform, Sequence[Host], Settings], Transport]


@dataclass(frozen=True)
class Model:
    """One way to price a message: its name, one line about it, and its builder."""

    name: str
    line: str
    build: Builder


_models: dict[str, Model] = {}


def model(name: str, line: str) -> Callable[[Builder], Builder]:
    """Register a builder of transports under `name`."""

    def register(build: Builder) -> Builder:
        _models[name] = Model(name, line, build)
        return build

    return register


def models() -> dict[str, Model]:
    """All models, by name."""
    _load()
    return _models


@Once
def _load() -> None:
    import_module("pysmpi.network.fluid")
    for entry in entry_points(group="pysmpi.models"):
        entry.load()


def find(name: str) -> Model:
    """The model called `name`; UsageError if there is none."""
    known = models()
    if name not in known:
        close = get_close_matches(name, known, 1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UsageError(f"--model {name}: no such model; {hint}there are {', '.join(known)}")
    return known[name]
