"""The registry of network models.

A model is a function from a machine to a `Transport`. It gets the platform, the host of each slot
and the settings of the run, and returns the object that makes plans for the kernel. The list of
hosts grows when a program spawns processes on new slots, so read it at each request. To add a
model, write such a function under `@model(name, line)` in a file in `kinds/`, or in your own
package, which is found through the entry point group `pysmpi.models`. A plan is a `delay`, or, for
messages that share links, that of a `pysmpi.network.flows.FlowTransport`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pysmpi.kernel.plan import Plan, Transport
from pysmpi.platform.config import Settings
from pysmpi.platform.model import Host, Platform
from pysmpi.plugins import Registry
from pysmpi.python.records import record

Builder = Callable[[Platform, Sequence[Host], Settings], Transport]


@record(frozen=True)
class Explanation:
    """The explanation of a model for `pysmpi models --explain`.

    `parameters` are pairs: an option or a symbol of the formula, and its meaning with its unit.
    """

    formula: str
    parameters: tuple[tuple[str, str], ...] = ()
    source: str = ""
    valid: str = ""


@record(frozen=True)
class Model:
    """One way to price a message: its name, one line about it, its builder, and its explanation."""

    name: str
    line: str
    build: Builder
    explanation: Explanation | None = None


def delay(seconds: float, send: float = 0.0, receive: float = 0.0) -> Plan:
    """The plan of a message that arrives after some seconds and shares nothing with others.

    `send` and `receive` are seconds of the processors at both ends, before and after these.
    """
    return Plan(seconds, send_cost=send, isend_cost=send, recv_cost=receive, eager=True)


_PUNCTUATION = str.maketrans("", "", "{},")

MODELS: Registry[Model] = Registry("model", "pysmpi.models", "pysmpi.network.kinds", apart=True)


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
    """The model called `name`; if there is none, raise UsageError with the name of the `option`."""
    # Braces are the shell's, so 2log_{2,3}P is registered without.
    plain = name.translate(_PUNCTUATION)
    return MODELS.find(plain, f"{option} {name}")
