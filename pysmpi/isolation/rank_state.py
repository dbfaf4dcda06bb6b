"""The values that one rank has for itself while it does not run. Compiled, as the exchange is."""

from typing import Any, Final, Optional

MISSING: Final[object] = object()
# Shared by states without changes: most ranks of a large job never change any value.
NO_VALUES: Final[dict[int, Any]] = {}
NOTHING_OWN: Final[dict[str, Any]] = {}


class State:
    """The state of one rank. `owner` is the rank's `RankEnvironment`, None for the caller's.

    `first` has the values of names that are separate for each rank from the start, `values` those
    of other names that differ from the common ones, by their numbers. `modules` are the rank's
    modules; `module_names` are their names: the same object in all states with these names, None if
    it is not known, or if a module is being loaded. `own` has the values of process states that
    differ from the common ones, by the name of the process state.
    """

    __slots__ = ("owner", "first", "values", "modules", "module_names", "own", "begun")

    def __init__(self, owner: object = None) -> None:
        self.owner: Any = owner
        self.first: list[Any] = []
        self.values: dict[int, Any] = NO_VALUES
        self.modules: dict[str, Any] = {}
        self.module_names: Optional[frozenset[str]] = None
        self.own: dict[str, Any] = NOTHING_OWN
        self.begun: bool = False

    def differ(self, number: int, value: object) -> None:
        """Let a name have another value than the common one."""
        if self.values is NO_VALUES:
            self.values = {}
        self.values[number] = value

    def keep(self, name: str, value: object) -> None:
        """Let a process state have another value than the common one."""
        if self.own is NOTHING_OWN:
            self.own = {}
        self.own[name] = value

    def clear(self) -> None:
        """Release all values, at the end of the rank."""
        self.first = []
        self.values = NO_VALUES
        self.modules = {}
        self.module_names = None
        self.own = NOTHING_OWN
