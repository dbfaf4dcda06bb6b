"""Exchange of the state of a process whenever another rank continues.

The interpreter has one `sys.path`, one `sys.stdout`, one table of modules, one working directory.
When a rank continues, its own values replace those of the rank that ran before. Modules remain
plain modules and lists remain plain lists, so programs cannot see the exchange.

Three kinds of state are exchanged:

- *names*: values in the dictionary of a module. A rank that has not assigned to a name shares the
  common value and pays a comparison for it;
- *modules*: the entries of `sys.modules` that are separate for each rank;
- *facets*: state in the operating system or C code, such as the working directory. A facet is
  exchanged after the first time that a rank changes it.

This module is compiled: it runs at every switch of ranks.
"""

from types import ModuleType
from typing import Any, Final, Optional

from pysmpi.isolation.versions import NoVersions

MISSING: Final[object] = object()
# Shared by states without changes: most ranks of a large job never change any value.
NO_VALUES: Final[dict[int, Any]] = {}
NO_FACETS: Final[dict[str, Any]] = {}


class State:
    """The state of one rank. `owner` is the rank's `RankEnvironment`, None for the caller's.

    `first` holds the values of names that are separate for each rank from the start. `values` holds
    the values of other names that differ from the common ones, by their numbers; `facets` holds
    those of its facets. `module_names` are the names of its modules, the same object in all states
    with these names; None if it is not known, or if a module is being loaded.
    """

    __slots__ = ("owner", "first", "values", "modules", "module_names", "facets", "begun")

    def __init__(self, owner: object = None) -> None:
        self.owner: Any = owner
        self.first: list[Any] = []
        self.values: dict[int, Any] = NO_VALUES
        self.modules: dict[str, Any] = {}
        self.module_names: Optional[frozenset[str]] = None
        self.facets: dict[str, Any] = NO_FACETS
        self.begun: bool = False

    def differ(self, number: int, value: object) -> None:
        """Let a name have another value than the common one."""
        if self.values is NO_VALUES:
            self.values = {}
        self.values[number] = value

    def keep(self, facet: str, value: object) -> None:
        """Let a facet have another value than the common one."""
        if self.facets is NO_FACETS:
            self.facets = {}
        self.facets[facet] = value


class NameGroup:
    """The names of one dictionary; if it is `growing`, also those that ranks add."""

    def __init__(self, space: dict[str, object], index: int) -> None:
        self.space: dict[str, object] = space
        self.index: int = index  # among all groups
        self.put: bool = False  # whether a value was put there since
        self.numbers: list[int] = []
        self.growing: bool = False
        self.size: int = 0  # number of names at the last exchange
        self.content: dict[str, Any] = {}  # known entries


class WatchedList:
    """A list that ranks share until one of them changes it in place."""

    def __init__(self, number: int, content: list[Any]) -> None:
        self.number: int = number  # of its name
        self.content: list[Any] = content


class Exchange:
    """The current state of the interpreter, and the states of the ranks that are not running.

    `table` is `sys.modules`; `outer` are the modules of the caller of the run that ranks should not
    see. `versions` is the class of objects that know which dictionaries have changed.
    """

    def __init__(
        self, table: dict[str, Any], outer: dict[str, object], versions: Any = NoVersions
    ) -> None:
        self.table: dict[str, Any] = table
        self.versions: Any = versions
        self.known: bool = versions is not NoVersions  # else any dictionary may have changed
        of_table = versions()
        of_table.add(table)
        # Methods are kept, because each is called at every switch.
        self.next_table: Any = of_table.next_changed
        self.note_table: Any = of_table.note
        self.table_differs: Any = of_table.differs
        of_groups = versions()
        self.add_group: Any = of_groups.add
        self.next_group: Any = of_groups.next_changed
        self.note_group: Any = of_groups.note
        self.outside: State = State()
        self.outside.modules = outer
        self.outside.begun = True
        self.shown: State = self.outside
        # Shared modules by name; MISSING for those that are being loaded.
        self.shared: dict[str, Any] = {
            name: module for name, module in table.items() if name not in outer
        }
        self.common: dict[str, Any] = {}  # those that differ in some rank
        # Shared modules that a state is executing: no other state sees them or their submodules.
        self.partial: dict[str, State] = {}
        self.hidden: dict[str, Any] = {}  # by name, while another state is shown
        self.others: int = len(self.shared)  # entries of the table that are not the shown rank's
        self.spaces: list[dict[str, object]] = []
        self.names: list[str] = []
        self.base: list[Any] = []  # the common value of each name
        self.now: list[Any] = []  # the value that was put there, or seen there last
        self.groups: list[NameGroup] = []  # of names, a dictionary each
        self.homes: list[NameGroup] = []  # of each name
        self.first: list[Any] = []  # makes the values that are separate from the start
        self.numbers: list[int] = []  # and the numbers of their names
        self.places: list[int] = []  # of each name, its place among these, or -1
        self.lists: list[WatchedList] = []
        self.module_names: dict[frozenset[str], frozenset[str]] = {}  # of states, each once
        self.facets: dict[str, Any] = {}
        self.live: dict[State, None] = {}  # of ranks that have begun and not ended

    # Names

    def watch(self, space: dict[str, Any], name: str, first: Any = None) -> int:
        """Exchange `space[name]`; returns the number of the name.

        `first(owner, common)` makes the initial value of a rank for a name that is separate from
        the start.
        """
        for i in range(len(self.names)):
            if self.spaces[i] is space and self.names[i] == name:
                return i
        value = space.get(name, MISSING)
        number = len(self.names)
        group = self._group_of(space)
        group.numbers.append(number)
        self.homes.append(group)
        self.spaces.append(space)
        self.names.append(name)
        self.base.append(value)
        self.now.append(value)
        self.places.append(-1)
        if first is not None:
            self.places[number] = len(self.first)
            self.first.append(first)
            self.numbers.append(number)
            for state in self.live:
                state.first.append(value)
                self.give(state, number, first(state.owner, value))
        return number

    def watch_list(self, space: dict[str, Any], name: str) -> int:
        """Exchange `space[name]`, a list that ranks share until one of them changes it in place.

        This rank keeps the list, and the others get a copy of its old contents.
        """
        number = self.watch(space, name)
        self.lists.append(WatchedList(number, list(space[name])))
        return number

    def watch_new(self, space: dict[str, object]) -> None:
        """Exchange the names that ranks add to `space`."""
        group = self._group_of(space)
        group.growing = True
        group.size = len(space)
        group.content = dict(space)

    def _group_of(self, space: dict[str, object]) -> NameGroup:
        """The names of a dictionary."""
        for group in self.groups:
            if group.space is space:
                return group
        group = NameGroup(space, self.add_group(space))
        self.groups.append(group)
        return group

    def _put(self, number: int, value: Any) -> None:
        space = self.spaces[number]
        if value is MISSING:
            space.pop(self.names[number], None)
        else:
            space[self.names[number]] = value
        self.now[number] = value
        self.homes[number].put = True

    def _note(self, state: State) -> None:
        """See which names the state that is shown has assigned to since it is shown."""
        index: int = self.next_group(0)
        while index >= 0:
            group = self.groups[index]
            space = group.space
            for number in group.numbers:
                value = space.get(self.names[number], MISSING)
                if value is not self.now[number]:
                    self._changed(state, number, value)
            if group.growing and len(space) != group.size:
                self._grown(state, group)
            index = self.next_group(index + 1)

    def _changed(self, state: State, number: int, value: Any) -> None:
        if (value is MISSING) != (self.now[number] is MISSING):
            self.homes[number].size += -1 if value is MISSING else 1
        self.now[number] = value
        if state is self.outside:
            self.base[number] = value
        elif self.places[number] >= 0:
            state.first[self.places[number]] = value
        elif value is self.base[number]:
            state.values.pop(number, None)
        else:
            state.differ(number, value)

    def _note_lists(self, state: State) -> None:
        """See whether the state that is shown has changed a list that others have as well."""
        for watched in self.lists:
            number = watched.number
            shared = self.base[number]
            content = watched.content
            if shared == content:
                continue
            if state is self.outside:
                watched.content = list(shared)
            else:
                self.base[number] = content
                watched.content = list(content)
                if self.now[number] is shared:
                    state.differ(number, shared)

    def _grown(self, state: State, group: NameGroup) -> None:
        """Find the names that were added to a dictionary, or taken from it."""
        space = group.space
        known = group.content
        if state is self.outside:
            group.content = dict(space)
            return
        for name, value in list(space.items()):
            if name not in known:
                number = self.watch(space, name)
                self.base[number] = known[name] = MISSING
                self._changed(state, number, value)
        for name, value in list(known.items()):
            if name not in space and value is not MISSING:
                number = self.watch(space, name)
                self.base[number] = value
                self._changed(state, number, MISSING)

    def give(self, state: State, number: int, value: Any) -> None:
        """Give a state its own value of a name."""
        if state is self.outside:
            self.base[number] = value
        elif self.places[number] >= 0:
            state.first[self.places[number]] = value
        else:
            state.differ(number, value)
        if state is self.shown:
            self._put(number, value)

    # Modules

    def collect(self) -> None:
        """Record the changes of the current state in the table of modules."""
        if self.next_table(0) < 0:
            return
        table = self.table
        private = self.shown.modules
        present = 0
        gone: list[str] = []
        for name, module in private.items():
            value = table.get(name, MISSING)
            if value is not MISSING:
                present += 1
            elif name not in self.common:
                gone.append(name)
                continue
            if value is not module:
                private[name] = value
                if value is MISSING:
                    self.shown.module_names = None
        for name in gone:
            del private[name]
            self.shown.module_names = None
        if self.known or len(table) != self.others + present:
            self._sort_out_strangers()

    def _sort_out_strangers(self) -> None:
        """Handle entries that were added to the table, or removed from it, without an import. New
        entries belong to a shared package (`six.moves`), or the program made them, such as
        `sys.modules["cupy"] = None`. The deletion or replacement of a shared module applies to this
        rank only.
        """
        table = self.table
        shared = self.shared
        private = self.shown.modules
        outside = self.shown is self.outside
        if not self._has_strangers():
            return
        for name, module in list(table.items()):
            if name in private:
                continue
            if name not in shared:
                if outside or self._is_part_of_shared(name, module):
                    shared[name] = module
                else:
                    private[name] = module
                    self.shown.module_names = None
                continue
            known = shared[name]
            if known is MISSING or known is None:
                shared[name] = module
            elif known is not module:
                self._differ(name, module, known)
        for name, known in list(shared.items()):
            if name not in table and name not in private:
                if name in self.hidden:
                    continue
                if known is MISSING:
                    del shared[name]
                else:
                    self._differ(name, MISSING, known)
        present = 0
        for name in private:
            if name in table:
                present += 1
        self.others = len(table) - present

    def _has_strangers(self) -> bool:
        """Whether the table differs from the shared modules and those of the current state."""
        table = self.table
        shared = self.shared
        private = self.shown.modules
        expected = 0
        for name, module in shared.items():
            # One look for most modules: there are many, and each rank comes here.
            if table.get(name, MISSING) is module:
                if module is MISSING:
                    return True
                expected += 1
            elif name not in private:
                return True
        present = 0
        for name in private:
            if name in table:
                present += 1
                if table[name] is shared.get(name, MISSING):
                    expected -= 1  # it is one of the state's, too
        self.others = len(table) - present
        return len(table) != expected + present

    def _differ(self, name: str, module: Any, known: Any) -> None:
        """The current state has another module than the shared one, or none."""
        if self.shown is self.outside:
            if module is MISSING:
                del self.shared[name]
            else:
                self.shared[name] = module
            return
        self.common[name] = known
        self.shown.modules[name] = module
        self.shown.module_names = None

    def _is_part_of_shared(self, name: str, module: Any) -> bool:
        root = name.partition(".")[0]
        return root != name and root in self.shared and issubclass(type(module), ModuleType)

    def belongs_to_rank(self, name: str) -> None:
        """Note that `name` will be a private module of the rank that imports it."""
        modules = self.shown.modules
        if name not in modules:
            self.collect()
            modules[name] = MISSING
            self.shown.module_names = None
            if name in self.shared:
                self.common.setdefault(name, self.shared[name])

    def put_own(self, name: str, module: Any) -> None:
        """Put a private module of the current state into the table.

        A name that is new there does not make the table look changed.
        """
        new = name not in self.table and name not in self.shared
        same = not self.table_differs(0)
        self.table[name] = module
        if new:
            self.shown.modules[name] = module
            self.shown.module_names = None
            if same:
                self.note_table(0)

    def belongs_to_all(self, name: str) -> None:
        """Note that `name` will be a shared module."""
        if name not in self.shared and name not in self.shown.modules:
            self.shared[name] = MISSING

    def begin_partial(self, name: str) -> None:
        """The current state begins to execute a shared module: hide it from the others."""
        self.partial[name] = self.shown

    def end_partial(self, name: str) -> None:
        """A shared module is complete, or is needed as it is: show it to all."""
        if self.partial.pop(name, None) is not None:
            self._conceal(self.shown)

    def _conceal(self, state: State) -> None:
        """Hide the modules that other states are executing; show those of this state."""
        table = self.table
        inner: dict[str, State] = {f"{name}.": self.partial[name] for name in self.partial}
        for name, module in list(self.hidden.items()):
            if not self._is_hidden(name, state, inner):
                del self.hidden[name]
                table[name] = module
        for name in list(table):
            if name not in state.modules and self._is_hidden(name, state, inner):
                self.hidden[name] = table.pop(name)

    def _is_hidden(self, name: str, state: State, inner: dict[str, State]) -> bool:
        if state is self.outside:
            return False
        importer = self.partial.get(name)
        if importer is not None:
            return importer is not state
        for prefix, importer in inner.items():
            if importer is not state and name.startswith(prefix):
                return True
        return False

    def _show_modules(self, last: State, state: State) -> None:
        table = self.table
        incoming = state.modules
        if last.module_names is not None and last.module_names is state.module_names:
            # Most ranks have modules of the same names, which replace each other.
            table.update(incoming)
            if self.partial:
                self._conceal(state)
            self.others = len(table) - len(incoming)
            self.note_table(0)
            return
        for name in last.modules:
            if name not in incoming:
                module = self.common.get(name, MISSING)
                if module is MISSING:
                    table.pop(name, None)
                else:
                    table[name] = module
        present = 0
        for name, module in incoming.items():
            if module is MISSING:
                table.pop(name, None)
            else:
                table[name] = module
                present += 1
        if state.module_names is None and present == len(incoming):
            names = frozenset(incoming)
            state.module_names = self.module_names.setdefault(names, names)
        if self.partial:
            self._conceal(state)
        self.others = len(table) - present
        self.note_table(0)

    # Switching

    def begin(self, state: State) -> None:
        """Make the values that are separate for a rank from the start."""
        state.begun = True
        self.live[state] = None
        state.first = [
            self.first[i](state.owner, self.base[self.numbers[i]]) for i in range(len(self.first))
        ]

    def show(self, state: State) -> None:
        """Replace the current state by that of the continuing rank."""
        last = self.shown
        if state is last:
            return
        if not state.begun:
            self.begin(state)
        self._note(last)
        self.collect()
        self._note_lists(last)
        incoming = state.values
        if last.values:
            for number in last.values:
                if number not in incoming:
                    self._put(number, self.base[number])
        if incoming:
            for number, value in incoming.items():
                if self.now[number] is not value:
                    self._put(number, value)
        if state is self.outside:
            for number in self.numbers:
                self._put(number, self.base[number])
        else:
            now = self.now
            for number, value in zip(self.numbers, state.first):
                if now[number] is not value:
                    self._put(number, value)
        self._show_modules(last, state)
        for group in self.groups:
            if group.growing:
                group.size = len(group.space)
            if group.put:
                group.put = False
                self.note_group(group.index)
        self.shown = state
        if self.facets:
            for facet in self.facets.values():
                facet.show(last, state)

    def close(self) -> None:
        """Restore the state of the caller of the run."""
        self.show(self.outside)

    def forget(self, state: State) -> None:
        """Release the state of a rank that has ended."""
        if self.shown is state:
            self.show(self.outside)
        self.live.pop(state, None)
        for name in state.facets:
            self.facets[name].forget(state)
        state.first = []
        state.values = NO_VALUES
        state.modules = {}
        state.module_names = None
        state.facets = NO_FACETS


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
