"""The exchange of state when another rank continues.

The interpreter has one `sys.path`, one `sys.stdout`, one table of modules, one working directory.
Each rank should have its own, as a process has. Modules remain plain modules and lists remain plain
lists. While a rank runs, its values are in place, and those of the other ranks are in their
`State`. So programs cannot see the exchange.

A switch is one call of `Exchange.show(state)`. The `Door` makes it when a fiber of another rank
continues (`enter`), and when code of no rank runs (`leave`). It has two steps:

1. *Capture*: the values that the last rank has changed are stored in its `State`.
2. *Install*: the values of the rank that continues replace them. A rank without a value of its own
   gets the initial one, which is mostly the common value, the one of the caller of the run.

Both steps go through the same list of things that a process has once:

- `names`: values in the dictionaries of modules (`names.py`);
- `modules`: the entries of `sys.modules` (`modules.py`);
- `process_states`: all others, such as the working directory, a class each (`state.py`). One enters
  the list, by `follow`, when a rank changes it for the first time. Until then it costs nothing.

| method of each | |
| --- | --- |
| `initial(state)` | the value of a rank that has none of its own |
| `differs()` | whether the running rank may have changed the value (of `process_states` alone) |
| `capture` | read the value from the process |
| `install` | write a value to the process |

This module is compiled: it runs at every switch of ranks.
"""

from typing import Any, Optional

from pysmpi.isolation.modules import Modules
from pysmpi.isolation.names import Names
from pysmpi.isolation.rank_state import MISSING
from pysmpi.isolation.rank_state import State as State
from pysmpi.isolation.versions import NoVersions


class Exchange:
    """The current state of the interpreter, and the states of the ranks that are not running.

    `table` is `sys.modules`; `outer` are the modules of the caller of the run that ranks should not
    see. `versions` is the class of objects that know which dictionaries have changed.
    """

    def __init__(
        self, table: dict[str, Any], outer: dict[str, object], versions: Any = NoVersions
    ) -> None:
        self.versions: Any = versions
        self.exact: bool = versions is not NoVersions  # else any dictionary may have changed
        self.outside: State = State()  # of the caller of the run
        self.outside.begun = True
        self.shown: State = self.outside
        self.live: dict[State, None] = {}  # of ranks that have begun and not ended
        self.names: Names = Names(self.outside, self.live, versions)
        self.modules: Modules = Modules(table, outer, self.outside, versions, self.exact)
        self.table: dict[str, Any] = table
        self.shared: dict[str, Any] = self.modules.shared
        self.process_states: dict[
            str, Any
        ] = {}  # by name, in the order in which they are installed
        self.polled: list[Any] = []  # those of them that are asked whether they differ

    def show(self, state: State) -> None:
        """Replace the current state by that of the continuing rank."""
        last = self.shown
        if state is last:
            return
        if not state.begun:
            state.begun = True
            self.live[state] = None
            self.names.initial(state)
        self.names.capture(last)
        self.modules.capture(last)
        for polled in self.polled:
            if polled.differs():
                polled.record(last)
        self.names.install(last, state)
        self.modules.install(last, state)
        self.shown = state
        if self.process_states:
            own = state.own
            for name, process_state in self.process_states.items():
                value = own.get(name, MISSING)
                if value is MISSING:
                    value = process_state.initial(state)
                if value is not process_state.shown:
                    process_state.install(value)
                    process_state.shown = value

    def follow(self, process_state: Any) -> None:
        """Exchange a process state from here on, in the place of another one of this name."""
        states = self.process_states
        states[process_state.name] = process_state
        for name in [name for name, other in states.items() if other.after_others]:
            states[name] = states.pop(name)
        self.polled = [other for other in states.values() if other.polled]

    def follows(self, name: str) -> bool:
        """Whether the process state with this name is exchanged."""
        return name in self.process_states

    def end_following(self, name: str) -> None:
        """Exchange a process state no longer."""
        self.process_states.pop(name, None)
        self.polled = [other for other in self.process_states.values() if other.polled]

    def watch(self, space: dict[str, Any], name: str, first: Any = None) -> int:
        """Exchange `space[name]`; see `Names.watch`."""
        return self.names.watch(space, name, first)

    def watch_list(self, space: dict[str, Any], name: str) -> int:
        """Exchange the list `space[name]`; see `Names.watch_list`."""
        return self.names.watch_list(space, name)

    def watch_new(self, space: dict[str, object]) -> None:
        """Exchange the names that ranks add to `space`."""
        self.names.watch_new(space)

    def collect(self) -> None:
        """Record the changes of the current state in the table of modules."""
        self.modules.capture(self.shown)

    def put_own(self, name: str, module: Any) -> None:
        """Put a private module of the current state into the table."""
        self.modules.put_own(name, module)

    def close(self) -> None:
        """Restore the state of the caller of the run."""
        self.show(self.outside)

    def forget(self, state: State) -> None:
        """Release the state of a rank that has ended."""
        if self.shown is state:
            self.show(self.outside)
        self.live.pop(state, None)
        for name in state.own:
            self.process_states[name].forget(state)
        state.clear()


class Door:
    """The points at which a rank continues with its own state, or stops running.

    `current()` is the running greenlet.
    """

    def __init__(self, current: Any) -> None:
        self.current: Any = current
        self.exchange: Optional[Exchange] = None

    def enter(self) -> None:
        """A fiber, or a greenlet of its program, continues: set the state of its rank."""
        exchange = self.exchange
        if exchange is not None:
            state = getattr(self.current(), "state", None)
            # The wait of a program's greenlet has set the state.
            if isinstance(state, State) and state is not exchange.shown:
                exchange.show(state)

    def leave(self) -> None:
        """No rank's code runs: set the state of the caller of the run."""
        exchange = self.exchange
        if exchange is not None and exchange.shown is not exchange.outside:
            exchange.show(exchange.outside)
