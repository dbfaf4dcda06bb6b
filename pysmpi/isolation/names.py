"""Names in the dictionaries of modules: `sys.argv`, `sys.stdout`, `tempfile.tempdir`.

A rank that has not assigned to a name shares the common value, and costs a comparison. `versions`
tells which dictionaries have changed since the last switch, so unchanged ones cost nothing.

`Names` has the methods of a `ProcessState`; the exchange calls them directly, because this module
is compiled and runs at every switch of ranks.
"""

from typing import Any

from pysmpi.isolation.rank_state import MISSING, State


class NameGroup:
    """The names of one dictionary; if it is `growing`, also those that ranks add."""

    def __init__(self, space: dict[str, object], index: int) -> None:
        self.space: dict[str, object] = space
        self.index: int = index  # among all groups
        self.written: bool = False  # whether the exchange has put a value there
        self.numbers: list[int] = []
        self.growing: bool = False
        self.size: int = 0  # number of names at the last exchange
        self.content: dict[str, Any] = {}  # the common entries


class WatchedList:
    """A list that ranks share until one of them changes it in place."""

    def __init__(self, number: int, content: list[Any]) -> None:
        self.number: int = number  # of its name
        self.content: list[Any] = content


class Names:
    """The values of names. Each name has a number, which is its index in the lists here."""

    def __init__(self, outside: State, live: dict[State, None], versions: Any) -> None:
        groups = versions()
        # Methods are kept, because each is called at every switch.
        self.add_group: Any = groups.add
        self.next_group: Any = groups.next_changed
        self.note_group: Any = groups.note
        self.outside: State = outside
        self.shown: State = outside
        self.live: dict[State, None] = live
        self.spaces: list[dict[str, object]] = []
        self.names: list[str] = []
        self.common: list[Any] = []  # the common value of each name
        self.now: list[Any] = []  # the value that was put there, or seen there last
        self.groups: list[NameGroup] = []  # of names, a dictionary each
        self.homes: list[NameGroup] = []  # of each name
        self.makers: list[Any] = []  # of the values that are separate from the start
        self.numbers: list[int] = []  # of the names of these values
        self.first_indices: list[int] = []  # of each name among these, or -1
        self.lists: list[WatchedList] = []

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
        self.common.append(value)
        self.now.append(value)
        self.first_indices.append(-1)
        if first is not None:
            self.first_indices[number] = len(self.makers)
            self.makers.append(first)
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

    def is_watched(self, space: object, name: str) -> bool:
        """Whether `space[name]` is exchanged; `space` may be the dictionary of a class."""
        for i in range(len(self.names)):
            if self.spaces[i] is space and self.names[i] == name:
                return True
        return False

    def _group_of(self, space: dict[str, object]) -> NameGroup:
        for group in self.groups:
            if group.space is space:
                return group
        group = NameGroup(space, self.add_group(space))
        self.groups.append(group)
        return group

    def give(self, state: State, number: int, value: Any) -> None:
        """Give a state its own value of a name."""
        if state is self.outside:
            self.common[number] = value
        elif self.first_indices[number] >= 0:
            state.first[self.first_indices[number]] = value
        else:
            state.differ(number, value)
        if state is self.shown:
            self._put(number, value)

    def _put(self, number: int, value: Any) -> None:
        space = self.spaces[number]
        if value is MISSING:
            space.pop(self.names[number], None)
        else:
            space[self.names[number]] = value
        self.now[number] = value
        self.homes[number].written = True

    # At a switch

    def initial(self, state: State) -> None:
        """Make the values that are separate for a rank from the start."""
        state.first = [
            self.makers[i](state.owner, self.common[self.numbers[i]])
            for i in range(len(self.makers))
        ]

    def capture(self, last: State) -> None:
        """Record to which names the rank that runs has assigned since it continued."""
        index: int = self.next_group(0)
        while index >= 0:
            group = self.groups[index]
            space = group.space
            for number in group.numbers:
                value = space.get(self.names[number], MISSING)
                if value is not self.now[number]:
                    self._changed(last, number, value)
            if group.growing and len(space) != group.size:
                self._grown(last, group)
            index = self.next_group(index + 1)
        for watched in self.lists:
            self._capture_list(last, watched)

    def _changed(self, state: State, number: int, value: Any) -> None:
        if (value is MISSING) != (self.now[number] is MISSING):
            self.homes[number].size += -1 if value is MISSING else 1
        self.now[number] = value
        if state is self.outside:
            self.common[number] = value
        elif self.first_indices[number] >= 0:
            state.first[self.first_indices[number]] = value
        elif value is self.common[number]:
            state.values.pop(number, None)
        else:
            state.differ(number, value)

    def _capture_list(self, state: State, watched: WatchedList) -> None:
        """Record whether the rank that runs has changed a list that others have as well."""
        number = watched.number
        shared = self.common[number]
        content = watched.content
        if shared == content:
            return
        if state is self.outside:
            watched.content = list(shared)
        else:
            self.common[number] = content
            watched.content = list(content)
            if self.now[number] is shared:
                state.differ(number, shared)

    def _grown(self, state: State, group: NameGroup) -> None:
        """Record the names that were added to a dictionary, or taken from it."""
        space = group.space
        common = group.content
        if state is self.outside:
            group.content = dict(space)
            return
        for name, value in list(space.items()):
            if name not in common:
                number = self.watch(space, name)
                self.common[number] = common[name] = MISSING
                self._changed(state, number, value)
        for name, value in list(common.items()):
            if name not in space and value is not MISSING:
                number = self.watch(space, name)
                self.common[number] = value
                self._changed(state, number, MISSING)

    def install(self, last: State, state: State) -> None:
        """Put the values of the rank that continues in the place of those of the last one."""
        incoming = state.values
        now = self.now
        if last.values:
            for number in last.values:
                if number not in incoming:
                    self._put(number, self.common[number])
        if incoming:
            for number, value in incoming.items():
                if now[number] is not value:
                    self._put(number, value)
        if state is self.outside:
            for number in self.numbers:
                self._put(number, self.common[number])
        else:
            for number, value in zip(self.numbers, state.first):
                if now[number] is not value:
                    self._put(number, value)
        for group in self.groups:
            if group.growing:
                group.size = len(group.space)
            if group.written:
                group.written = False
                self.note_group(group.index)
        self.shown = state
