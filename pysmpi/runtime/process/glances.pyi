"""Quick exchanges of the state of ranks; `glances.c` says why they are in C."""

class Glance:
    """Tells whether dictionaries or lists have changed, and exchanges the rest of a state.

    `table` is the first dictionary. The lists are those of an `Exchange`: `now[i]` is the value of
    `names[i]` in `homes[i]`, and `numbers` are those of the names that are always separate.
    """

    def __init__(
        self,
        table: dict[str, object],
        homes: list[dict[str, object]],
        names: list[str],
        now: list[object],
        numbers: list[int],
        missing: object,
        /,
    ) -> None: ...
    def watch(self, space: dict[str, object], /) -> int:
        """Watch a dictionary; return its number."""

    def changed(self, number: int, /) -> bool:
        """Whether a dictionary has changed since `note`."""

    def watch_lists(self, lists: list[list[object]], /) -> None:
        """Watch these lists, with their present contents, and no others."""

    def same(self) -> bool:
        """Whether no dictionary has changed since `note`, and no list since `watch_lists`."""

    def note(self) -> int:
        """Note the dictionaries as they are; return the version number of the table."""

    def switch(
        self, last: dict[str, object], incoming: dict[str, object], values: list[object], /
    ) -> int:
        """Put a state in place of another if nothing has changed.

        `last` and `incoming` are their modules, `values` those of the names that are always
        separate. Returns the version number of the table; -1, without an effect, if a dictionary or
        list has changed, if names of modules differ, or if a name would be added or removed.
        """
