"""The texts of `--fault`: `rank=7@2.5s`, `host=node-3@1s:slow=4`, `random:rate=0.1` and others.

A failure without an effect such as `slow=F` is that of a part that dies. `detours`, `jitter` and
`drop` are noise of the whole machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pysmpi.errors import UsageError
from pysmpi.platform.units import parse_time
from pysmpi.text import real, whole

KINDS = ("rank", "host", "link")
EFFECTS = {"rank": (), "host": ("slow",), "link": ("slow", "latency")}
_FORMS = (
    "rank=N@TIME, host=NAME@TIME[:slow=FACTOR[:for=TIME]], "
    "link=NAME@TIME[:slow=FACTOR][:latency=FACTOR][:for=TIME], random:rate=RATE, "
    "detours:rate=RATE:time=TIME, jitter:time=TIME[:rate=P] or drop:rate=P[:queue=N][:timeout=TIME]"
)
# The kinds of noise: their forms, and the keys that they need.
NOISES = {
    "detours": ("detours:rate=RATE:time=TIME", ("rate", "time")),
    "jitter": ("jitter:time=TIME[:rate=P]", ("time",)),
    "drop": ("drop:rate=P[:queue=N][:timeout=TIME]", ("rate",)),
}


@dataclass(frozen=True)
class Fault:
    """A part of the machine fails, or is changed, at a date (simulated s).

    It becomes `slow` times slower, or gets `latency` times its latency, until the date `end`;
    without either it is dead. `text` is the value of --fault; `origin` the place in a platform file
    instead.
    """

    kind: str
    name: str
    date: float
    slow: float | None = None
    text: str = ""
    origin: str = ""
    latency: float | None = None
    end: float = math.inf

    @property
    def dead(self) -> bool:
        """Whether the part does nothing any more."""
        return self.slow is None and self.latency is None

    @property
    def where(self) -> str:
        """The option, or the place in a file, that asks for it."""
        return self.origin or f"--fault {self.text}"


@dataclass(frozen=True)
class RandomFaults:
    """Ranks fail independently; `rate` is the mean number of failures of a rank in a second."""

    rate: float
    text: str = ""


@dataclass(frozen=True)
class Detours:
    """Each core leaves its work `rate` times a second of the work, for `seconds` on average.

    The times are exponentially distributed, or all the same.
    """

    rate: float
    seconds: float
    constant: bool = False


@dataclass(frozen=True)
class Jitter:
    """The part `rate` of the messages between hosts is late, by `seconds` on average."""

    seconds: float
    rate: float = 1.0


@dataclass(frozen=True)
class Drops:
    """A message between hosts is lost with the probability `rate`, and sent again.

    This is so if at least `queue` messages are on their way to its host when it begins. The first
    repetition is after `timeout` (s), each further one after twice the time.
    """

    rate: float
    queue: int = 0
    timeout: float = 0.2


Noise = Detours | Jitter | Drops


def parse_fault(text: str) -> Fault | RandomFaults | Noise:
    """The fault or the noise that a text describes; raises UsageError."""
    if text.startswith("random"):
        return _random(text)
    if text.partition(":")[0] in NOISES:
        return _noise(text)
    head, *effects = text.split(":")
    kind, equals, rest = head.partition("=")
    name, at, when = rest.rpartition("@")
    if kind not in KINDS or not equals or not at or not name:
        raise UsageError(f"--fault {text}: expected {_FORMS}")
    try:
        time = parse_time(when, bare=True)
    except UsageError as error:
        raise UsageError(f"--fault {text}: {error}") from None
    if kind == "rank" and whole(name) is None:
        raise UsageError(f"--fault {text}: expected the number of a rank, got {name!r}")
    found = _effects(text, kind, effects)
    end = time + found.pop("for", math.inf)
    if end <= time:
        raise UsageError(f"--fault {text}: the time of for= is too short at this date")
    return Fault(kind, name, time, found.get("slow"), text, latency=found.get("latency"), end=end)


def _effects(text: str, kind: str, effects: list[str]) -> dict[str, float]:
    """The factors and the time of a fault."""
    result: dict[str, float] = {}
    dead = False
    for effect in effects:
        word, _, value = effect.partition("=")
        if word in result or (dead and effect == "dead"):
            raise UsageError(f"--fault {text}: expected {word} once")
        if effect == "dead":
            dead = True
        elif word == "for":
            result[word] = _lasting(text, value)
        elif word in EFFECTS[kind]:
            factor = _number(value)
            if factor is None or factor < 1.0:
                raise UsageError(
                    f"--fault {text}: expected {word}=FACTOR, with a factor of at least 1, got "
                    f"{effect!r}"
                )
            result[word] = factor
        elif kind == "rank":
            reason = ": a rank cannot be slow, expected its host" if word == "slow" else ""
            raise UsageError(
                f"--fault {text}{reason or f': expected no effect of a rank, got {effect!r}'}"
            )
        else:
            names = [f"{one}=FACTOR" for one in EFFECTS[kind]]
            raise UsageError(
                f"--fault {text}: expected dead, {', '.join(names)} or for=TIME, got {effect!r}"
            )
    changed = result.keys() & {"slow", "latency"}
    if dead and changed:
        raise UsageError(f"--fault {text}: a part is dead or changed, not both")
    if "for" in result and not changed and kind != "link":
        raise UsageError(
            f"--fault {text}: ranks that die do not come back; for=TIME is for slow hosts and for "
            "links"
        )
    return result


def _lasting(text: str, value: str) -> float:
    try:
        result = parse_time(value, bare=True)
    except UsageError as error:
        raise UsageError(f"--fault {text}: for: {error}") from None
    if result == 0.0:
        raise UsageError(f"--fault {text}: for: expected a time above 0, got {value!r}")
    return result


def _random(text: str) -> RandomFaults:
    word, _, value = text.partition(":")[2].partition("=")
    rate = _number(value)
    if not text.startswith("random:") or word != "rate" or rate is None or rate <= 0.0:
        raise UsageError(
            f"--fault {text}: expected random:rate=RATE, the failures of a rank in a second"
        )
    return RandomFaults(rate, text)


def _noise(text: str) -> Noise:
    kind, *parts = text.split(":")
    form, required = NOISES[kind]
    values: dict[str, str] = dict.fromkeys(required, "")
    for part in parts:
        key, _, value = part.partition("=")
        if f"{key}=" not in form or values.get(key):
            raise UsageError(f"--fault {text}: expected {form}, got {part!r}")
        values[key] = value

    def seconds(key: str) -> float:
        try:
            found = parse_time(values[key], bare=True)
        except UsageError as error:
            raise UsageError(f"--fault {text}: {key}: {error}") from None
        if found == 0.0:
            raise UsageError(f"--fault {text}: {key}: expected a time above 0, got {values[key]!r}")
        return found

    missing = [key for key in required if not values[key]]
    if missing:
        raise UsageError(f"--fault {text}: expected {form}, got no {missing[0]}")
    if kind == "jitter" and "rate" not in values:
        return Jitter(seconds("time"))
    rate = _number(values["rate"])
    if rate is None or rate <= 0.0 or (kind != "detours" and rate >= 1.0):
        expected = "above 0" if kind == "detours" else "between 0 and 1"
        raise UsageError(
            f"--fault {text}: rate: expected a number {expected}, got {values['rate']!r}"
        )
    if kind == "detours":
        return Detours(rate, seconds("time"))
    if kind == "jitter":
        return Jitter(seconds("time"), rate)
    queue = whole(values.get("queue", "0"), 9)
    if queue is None:
        raise UsageError(
            f"--fault {text}: queue: expected a number of messages, got {values['queue']!r}"
        )
    return Drops(rate, queue, seconds("timeout") if "timeout" in values else 0.2)


def _number(text: str) -> float | None:
    return real(text)
