"""The entries of `sys.modules` that are separate for each rank.

A module is either shared, which means that all ranks have the same object, or private to the rank
that has imported it. The table holds the shared modules, and the private ones of the rank that
runs.

`Modules` has the methods of a `ProcessState`; the exchange calls them directly, because this module
is compiled and runs at every switch of ranks.
"""

from types import ModuleType
from typing import Any

from pysmpi.isolation.rank_state import MISSING, State


class Modules:
    """The table of modules. `outer` are modules of the caller that ranks should not see.

    `exact` is true if `versions` knows which dictionaries have changed, and false if each may have.
    """

    def __init__(
        self,
        table: dict[str, Any],
        outer: dict[str, object],
        outside: State,
        versions: Any,
        exact: bool,
    ) -> None:
        self.table: dict[str, Any] = table
        self.exact: bool = exact
        of_table = versions()
        of_table.add(table)
        # Methods are kept, because each is called at every switch.
        self.next_table: Any = of_table.next_changed
        self.note_table: Any = of_table.note
        self.table_differs: Any = of_table.differs
        outside.modules = outer
        self.outside: State = outside
        self.shown: State = outside
        # Shared modules by name; MISSING for those that are being loaded.
        self.shared: dict[str, Any] = {
            name: module for name, module in table.items() if name not in outer
        }
        self.common: dict[str, Any] = {}  # shared modules that differ in some rank
        # Shared modules that a state is executing: no other state sees them or their submodules.
        self.partial: dict[str, State] = {}
        self.hidden: dict[str, Any] = {}  # by name, while another state is shown
        self.others: int = len(self.shared)  # entries of the table that are not the shown rank's
        self.name_sets: dict[frozenset[str], frozenset[str]] = {}  # of states, each once

    def belongs_to_rank(self, name: str) -> None:
        """Note that `name` will be a private module of the rank that imports it."""
        modules = self.shown.modules
        if name not in modules:
            self.capture(self.shown)
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

    # At a switch

    def differs(self) -> bool:
        """Whether the table may have changed."""
        index: int = self.next_table(0)
        return index >= 0

    def capture(self, last: State) -> None:
        """Record which modules the rank that runs has loaded, replaced or removed."""
        if self.next_table(0) < 0:
            return
        table = self.table
        private = last.modules
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
                    last.module_names = None
        for name in gone:
            del private[name]
            last.module_names = None
        if self.exact or len(table) != self.others + present:
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
            common = shared[name]
            if common is MISSING or common is None:
                shared[name] = module
            elif common is not module:
                self._differ(name, module, common)
        for name, common in list(shared.items()):
            if name not in table and name not in private:
                if name in self.hidden:
                    continue
                if common is MISSING:
                    del shared[name]
                else:
                    self._differ(name, MISSING, common)
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

    def _differ(self, name: str, module: Any, common: Any) -> None:
        """The current state has another module than the shared one, or none."""
        if self.shown is self.outside:
            if module is MISSING:
                del self.shared[name]
            else:
                self.shared[name] = module
            return
        self.common[name] = common
        self.shown.modules[name] = module
        self.shown.module_names = None

    def _is_part_of_shared(self, name: str, module: Any) -> bool:
        root = name.partition(".")[0]
        return root != name and root in self.shared and issubclass(type(module), ModuleType)

    def install(self, last: State, state: State) -> None:
        """Put the modules of the rank that continues in the place of those of the last one."""
        self.shown = state
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
            state.module_names = self.name_sets.setdefault(names, names)
        if self.partial:
            self._conceal(state)
        self.others = len(table) - present
        self.note_table(0)
