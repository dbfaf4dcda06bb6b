"""The targets of `--sample` and `--once`: `MODULE:FUNCTION[:OPTION=VALUE,...]`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.python.records import record
from pysmpi.shadow.estimate import FEWEST, StoppingRule
from pysmpi.text import real, whole

_NAME = r"[^\W\d]\w*(\.[^\W\d]\w*)*\Z"

SCOPES = ("local", "global", "collective")
BY = ("shape", "type", "none")
CHARGES = ("mean", "median", "draw")
OUTPUTS = ("keep", "scale", "leave")


@record(frozen=True)
class Target:
    """A sampled function.

    `path` is its qualified name in `module`. `scope` defines the sharing of measures: each rank has
    its own (`local`), all ranks share them (`global`), or all ranks pass together and may
    communicate (`collective`). `by` is the rule for calls that are alike (see `keys.py`). A skipped
    call takes the mean or median of the measures or a random one of them (`charge`). Its outputs
    are those of the last executed call (`outputs="keep"`), those in proportion to the arrays that
    it reads ("scale"), or none ("leave").
    """

    module: str
    path: str
    rule: StoppingRule = field(default_factory=StoppingRule)
    scope: str = "local"
    by: str = "shape"
    charge: str = "mean"
    outputs: str = "keep"

    @property
    def name(self) -> str:
        return f"{self.module}:{self.path}"


@record(frozen=True)
class OnceTarget:
    """A function with the same result on every rank.

    The first `iters` ranks that call it run it, and the others are charged the mean of their times.
    They share its arrays read-only, or have their own copies if `writable`.
    """

    module: str
    path: str
    iters: int = 1
    writable: bool = False

    @property
    def name(self) -> str:
        return f"{self.module}:{self.path}"


def parse_sample(text: str) -> Target:
    """Read the argument of `--sample`; raises `UsageError`."""
    module, path, options = _split(text, "--sample")
    readers: dict[str, Callable[[str], Any]] = {
        "iters": _count(1),
        "precision": _precision,
        "warmup": _count(0),
        "every": _count(2),
        "scope": _one_of(SCOPES),
        "by": _one_of(BY),
        "charge": _one_of(CHARGES),
        "outputs": _one_of(OUTPUTS),
    }
    said = _read(options, readers, f"--sample {text}")
    scope = said.get("scope", "local")
    if scope == "collective":
        if "precision" in said or "by" in said:
            wrong = "precision" if "precision" in said else "by"
            raise UsageError(
                f"--sample {text}: expected iters, got {wrong} with scope=collective: all ranks "
                "have to stop at the same pass"
            )
        rule = StoppingRule(
            said.pop("iters", FEWEST), None, said.pop("warmup", 1), said.pop("every", None)
        )
        said["by"] = "none"
    else:
        # If only one limit is given, the other is not used.
        one = "iters" in said or "precision" in said
        rule = StoppingRule(
            said.pop("iters", None if one else StoppingRule.iters),
            said.pop("precision", None if one else StoppingRule.precision),
            said.pop("warmup", 1),
            said.pop("every", None),
        )
    return Target(module, path, rule, **said)


def parse_once(text: str) -> OnceTarget:
    """Read the argument of `--once`; raises `UsageError`."""
    module, path, options = _split(text, "--once")
    readers = {"iters": _count(1), "writable": _yes_or_no}
    return OnceTarget(module, path, **_read(options, readers, f"--once {text}"))


def _split(text: str, option: str) -> tuple[str, str, str]:
    module, colon, rest = text.partition(":")
    path, _, options = rest.partition(":")
    if not (colon and re.match(_NAME, module) and re.match(_NAME, path)):
        raise UsageError(
            f"{option} {text}: expected MODULE:FUNCTION[:OPTION=VALUE,...], "
            "such as __main__:step or numpy.fft:fftn"
        )
    return module, path, options


def _read(options: str, readers: dict[str, Callable[[str], Any]], where: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in filter(None, options.split(",")):
        name, equals, value = word.partition("=")
        if name not in readers or not equals:
            known = ", ".join(f"{known}=" for known in readers)
            raise UsageError(f"{where}: expected one of {known}, got {word!r}")
        try:
            found[name] = readers[name](value)
        except ValueError as error:
            raise UsageError(f"{where}: {name}: {error}") from None
    return found


def _count(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        found = whole(text)
        if found is None or found < least:
            raise ValueError(f"expected a number from {least} on, got {text!r}")
        return found

    return read


def _precision(text: str) -> float:
    percent = text.endswith("%")
    value = (real(text.removesuffix("%")) or 0.0) / (100.0 if percent else 1.0)
    if not 0.0 < value < 1.0:
        raise ValueError(f"expected a relative error such as 0.01 or 1%, got {text!r}")
    return value


def _one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"expected {', '.join(choices[:-1])} or {choices[-1]}, got {text!r}")
        return text

    return read


def _yes_or_no(text: str) -> bool:
    return _one_of(("yes", "no"))(text) == "yes"
