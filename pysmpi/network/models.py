"""The registry of network models.

A model is a function from a machine to a `Transport`: it gets the platform, the host of each
slot and the settings of the run, and returns the object that the kernel asks for plans. The list
of hosts grows when a program spawns processes in new places: look them up when asked. A new
model is one such function in a file of its own in `kinds/`, under `@model(name, line)`; one of a
user's own package is found through the entry point group `pysmpi.models`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pysmpi.kernel.plan import Transport
from pysmpi.options import Settings
from pysmpi.platform.model import Host, Platform
from pysmpi.plugins import Registry

Builder = Callable[[Platform, Sequence[Host], Settings], Transport]


@dataclass(frozen=True)
class Explanation:
    """What `pysmpi models --explain` says of a model.

    `parameters` are pairs of an option, or a symbol of the formula, and its meaning with its unit.
    """

    formula: str
    parameters: tuple[tuple[str, str], ...] = ()
    source: str = ""
    valid: str = ""


@dataclass(frozen=True)
class Model:
    """One way to price a message: its name, one line about it, its builder, and its explanation."""

    name: str
    line: str
    build: Builder
    explanation: Explanation | None = None


_PUNCTUATION = str.maketrans("", "", "{},")

MODELS: Registry[Model] = Registry("model", "pysmpi.models", "pysmpi.network.kinds")


def model(
    name: str, line: str, explanation: Explanation | None = None
) -> Callable[[Builder], Builder]:
    """Register a builder of transports under `name`."""

    def register(build: Builder) -> Builder:
        MODELS.add(Model(name, line, build, explanation))
        return build

    return register


def models() -> dict[str, Model]:
    """All models, by name."""
    return MODELS.known()


def find(name: str, option: str = "--model") -> Model:
    """The model called `name`; UsageError, which names the `option`, if there is none."""
    # Braces are the shell's, so 2log_{2,3}P is registered without.
    plain = name.translate(_PUNCTUATION)
    return MODELS.find(plain, f"{option} {name}")
