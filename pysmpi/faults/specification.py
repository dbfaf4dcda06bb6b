"""The texts of `--fault`: `rank=7@2.5s`, `host=node-3@1s:slow=4`, `random:rate=0.1` and others.

A failure without `:slow=F` is final.
"""

from __future__ import annotations

from dataclasses import dataclass

from pysmpi.errors import UsageError
from pysmpi.platform.units import parse_time
from pysmpi.text import real, whole

KINDS = ("rank", "host", "link")
_FORMS = (
    "rank=N@TIME, host=NAME@TIME[:slow=FACTOR], link=NAME@TIME[:slow=FACTOR] or random:rate=RATE"
)


@dataclass(frozen=True)
class Fault:
    """A part of the machine fails, or becomes `slow` times slower, at a date (simulated s).

    `text` is the value of --fault; `origin` the place in a platform file instead.
    """

    kind: str
    name: str
    date: float
    slow: float | None = None
    text: str = ""
    origin: str = ""


@dataclass(frozen=True)
class RandomFaults:
    """Ranks fail independently; `rate` is the mean number of failures of a rank in a second."""

    rate: float
    text: str = ""


def parse_fault(text: str) -> Fault | RandomFaults:
    """The fault that a text describes; raises UsageError."""
    if text.startswith("random"):
        return _random(text)
    head, sign, effect = text.partition(":")
    kind, equals, rest = head.partition("=")
    name, at, when = rest.rpartition("@")
    if kind not in KINDS or not equals or not at or not name:
        raise UsageError(f"--fault {text}: expected {_FORMS}")
    try:
        date = parse_time(when, bare=True)
    except UsageError as error:
        raise UsageError(f"--fault {text}: {error}") from None
    if kind == "rank" and whole(name) is None:
        raise UsageError(f"--fault {text}: expected the number of a rank, got {name!r}")
    if not sign or effect == "dead":
        return Fault(kind, name, date, None, text)
    word, _, value = effect.partition("=")
    factor = _number(value)
    if word != "slow" or factor is None or factor < 1.0:
        raise UsageError(
            f"--fault {text}: expected dead or slow=FACTOR, with a factor of at least 1, got "
            f"{effect!r}"
        )
    if kind == "rank":
        raise UsageError(f"--fault {text}: a rank cannot be slow, expected its host")
    return Fault(kind, name, date, factor, text)


def _random(text: str) -> RandomFaults:
    word, _, value = text.partition(":")[2].partition("=")
    rate = _number(value)
    if word != "rate" or rate is None or rate <= 0.0:
        raise UsageError(
            f"--fault {text}: expected random:rate=RATE, the failures of a rank in a second"
        )
    return RandomFaults(rate, text)


def _number(text: str) -> float | None:
    return real(text)
