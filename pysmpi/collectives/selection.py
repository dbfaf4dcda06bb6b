"""The algorithm of a call: a library's selector, and the user's overrides."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Protocol

from pysmpi.collectives import registry
from pysmpi.collectives.call import OPERATIONS, Call
from pysmpi.collectives.registry import split
from pysmpi.collectives.selectors.file import load, looks_like_file

if TYPE_CHECKING:
    from pysmpi.memory.lines.machine import HostLines

AUTOMATIC = "automatic"


class Tries(Protocol):
    """Tries algorithms, as `pysmpi.collectives.tuning.Tuner` does."""

    def choose(self, call: Call) -> str:
        """The name of the fastest algorithm for a call."""


class Selection:
    """A selector's name and the names that replace its choice, by operation.

    A name is that of an algorithm, or of a selector, which then chooses. It applies to all forms of
    an operation, unless the non-blocking form has its own name (`ibcast`). Two-level algorithms may
    name the algorithms of their levels: `mvapich2_two_level:rdb,binomial`. As in SMPI, the same
    selection applies to the nested collectives of an algorithm. The selector may be a selection
    file. `tuner` tries algorithms for `automatic`; `lines` has the line costs of the hosts, for
    algorithms that are tuned with them. `step` is the time (s) of a rank for each wait of an
    algorithm, besides its messages. Immutable.
    """

    __slots__ = (
        "_hash", "_held", "_inner", "lines", "meets", "overrides", "selector", "step", "tuner",
    )  # fmt: skip

    def __init__(
        self,
        selector: str = "default",
        overrides: Mapping[str, str] = {},
        tuner: Tries | None = None,
        lines: HostLines | None = None,
        meets: bool = False,
        step: float = 0.0,
    ) -> None:
        """Check the names; UsageError lists the known ones.

        If all ranks `meet`, rooted collectives and scans first wait for all.
        """
        if not registry.is_selector(selector) and looks_like_file(selector):
            self._held = load(selector)
        else:
            self._held = registry.find_selector(selector)
        selector = self._held.name
        for key, name in overrides.items():
            # The non-blocking form has an i before its name.
            blocking = key.removeprefix("i")
            operation = registry.COLLECTIVES.find(blocking if blocking in OPERATIONS else key)
            if name not in registry.SELECTORS:
                operation.algorithms.find(split(name)[0], f"{key}={name}")
        self.selector: str = selector
        self.overrides: dict[str, str] = dict(overrides)
        self.tuner = tuner
        self.lines = lines
        self.meets = meets
        self.step = step
        self._inner: Selection | None = None
        self._hash: int = hash((selector, tuple(sorted(self.overrides.items()))))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Selection)
            and self.selector == other.selector
            and self.overrides == other.overrides
            and self.tuner is other.tuner
            and self.lines is other.lines
            and self.meets == other.meets
            and self.step == other.step
        )

    def __repr__(self) -> str:
        return f"Selection({self.selector!r}, {self.overrides!r})"

    @classmethod
    def from_options(
        cls,
        options: Mapping[str, str],
        selector: str | None = None,
        overrides: Mapping[str, str] = {},
        otherwise: str = "default",
    ) -> Selection:
        """Read SimGrid's option names: `smpi/coll-selector` and `smpi/OPERATION`.

        `selector` and `overrides` take precedence over the options; without either, the selector is
        `otherwise`. Options with other names are ignored.
        """
        names = {}
        for option, value in options.items():
            op = option.removeprefix("smpi/").replace("-", "_")
            if option.startswith("smpi/") and op in OPERATIONS:
                names[op] = value
        chosen = selector or options.get("smpi/coll-selector") or otherwise
        meets = options.get("smpi/barrier-collectives", "no").lower() in ("yes", "on", "true", "1")
        return cls(chosen, {**names, **overrides}, meets=meets)

    @property
    def automatic(self) -> bool:
        """Whether it needs a tuner."""
        return self.selector == AUTOMATIC or AUTOMATIC in self.overrides.values()

    def tried_on(self, tuner: Tries) -> Selection:
        """The same selection with a machine to try algorithms on."""
        return Selection(self.selector, self.overrides, tuner, self.lines, self.meets, self.step)

    def on_lines(self, lines: HostLines) -> Selection:
        """The same selection with the line costs of the hosts."""
        return Selection(self.selector, self.overrides, self.tuner, lines, self.meets, self.step)

    def with_step(self, step: float) -> Selection:
        """The same selection with a time (s) for each wait."""
        return Selection(self.selector, self.overrides, self.tuner, self.lines, self.meets, step)

    def inner(self) -> Selection:
        """The selection for the nested collectives of an automatically chosen algorithm.

        Trying algorithms inside algorithms would never end; Open MPI's choice is used.
        """
        if not self.automatic:
            return self
        if self._inner is None:
            kept = {op: name for op, name in self.overrides.items() if name != AUTOMATIC}
            selector = "ompi5" if self.selector == AUTOMATIC else self.selector
            self._inner = Selection(selector, kept, None, self.lines, self.meets, self.step)
        return self._inner

    def start(self, op: str, nonblocking: bool = False) -> str:
        """The algorithm's or selector's name that decides on `op`, in one of its forms."""
        name = self.overrides.get(f"i{op}") if nonblocking else None
        name = name or self.overrides.get(op)
        if name is None:
            name = self.selector
            if nonblocking and name == "default":
                # `default` would be the blocking algorithm of that name; SMPI's selectors agree
                # on non-blocking forms.
                name = "ompi"
        return name

    def choose(self, call: Call) -> str:
        """The name of the algorithm for this call."""
        return resolve(call, self.start(call.op, call.nonblocking))


@cache
def default() -> Selection:
    """The selection of calls that have none."""
    return Selection()


def resolve(call: Call, name: str) -> str:
    """Follow selectors from `name` to the name of an algorithm."""
    algorithms = registry.algorithms_of(call.op)
    while split(name)[0] not in algorithms:
        name = registry.find_selector(name).choose(call)
    plain = split(name)[0]
    fitting = registry.fitting(call.op, plain, call.size)
    return name if fitting == plain else fitting
