"""A coherence protocol: a table of rules for accesses to a line.

Two states select a rule: the state of the line in the accessing cache, and the strongest state of
the line in any other cache. The order of states in the table defines the strongest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pysmpi.errors import PysmpiError

# The state of one line in each cache, one letter a cache.
States = tuple[str, ...]

READ, WRITE, EVICT = "read", "write", "evict"
OPERATIONS = (READ, WRITE, EVICT)

# The source of an access's data; an eviction has none.
OWN, MEMORY, CACHE, NONE = "own", "memory", "cache", "none"

# A run uses few states of few caches repeatedly; this bounds the cache of a long run.
_REMEMBERED = 1 << 16


class ProtocolError(PysmpiError):
    """A table has no rule for an access; this never happens in a safe protocol."""


@dataclass(frozen=True, slots=True)
class LineState:
    """The meaning of a letter.

    invalid: the cache does not have the line. exclusive: no other cache has the line, and this
    cache may write it without a request. owner: the cache answers for the line, other caches may
    share it. dirty: memory may have an older line, and a cache in this state must write it back.
    """

    letter: str
    invalid: bool = False
    exclusive: bool = False
    owner: bool = False
    dirty: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of a table: `operation` on a line in state `own` here and at most `other` in others.

    becomes: the new state here. others: the new state of other caches' copies, by the old one;
    copies in other states do not change. data: own, memory, cache (the first cache in state
    `other`) or none. write_back: memory also gets the line. update: other caches' copies get the
    written value, and so does a line that is written back. lookup: the cache in state `other` was
    asked although memory answers.
    """

    operation: str
    own: str
    other: str
    becomes: str
    others: Mapping[str, str] = field(default_factory=dict)
    data: str = NONE
    write_back: bool = False
    update: bool = False
    lookup: bool = False


@dataclass(frozen=True, slots=True)
class LineTransfer:
    """The data movement of an access. Caches are numbered as in `States`.

    source: "own" (the cache had the line), "memory", "cache", or "none" for an eviction. provider:
    the cache that sent the line, if any. lookup: the cache that was asked in vain. invalidated: the
    caches that lost the line. updated: the caches whose copies were overwritten. write_back: the
    cache that wrote its line to memory, if any.
    """

    source: str
    provider: int | None = None
    lookup: int | None = None
    invalidated: tuple[int, ...] = ()
    updated: tuple[int, ...] = ()
    write_back: int | None = None

    @property
    def hit(self) -> bool:
        """Whether the access stayed within its cache: no data, no message to another cache."""
        return self.source == OWN and not self.invalidated and not self.updated


@dataclass(frozen=True, eq=False)
class Protocol:
    """A named table. `states` are listed strongest first; `rules` by (operation, own, other).

    For protocols with a directory, `directory` maps the strongest state of a line in any cache to
    its state in the directory.
    """

    name: str
    description: str
    states: Mapping[str, LineState]
    rules: Mapping[tuple[str, str, str], Rule]
    directory: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    # The letter of a line that a cache does not have.
    invalid: str = field(init=False, repr=False)
    _rank: dict[str, int] = field(init=False, repr=False)
    _done: dict[tuple[str, States, int], tuple[States, LineTransfer]] = field(
        init=False, repr=False
    )

    def __post_init__(self) -> None:
        ranks = {letter: rank for rank, letter in enumerate(self.states)}
        invalid = next(letter for letter, state in self.states.items() if state.invalid)
        object.__setattr__(self, "_rank", ranks)
        object.__setattr__(self, "invalid", invalid)
        object.__setattr__(self, "_done", {})

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations of the table; a table may have no evictions."""
        present = {operation for operation, _, _ in self.rules}
        return tuple(operation for operation in OPERATIONS if operation in present)

    def initial(self, caches: int) -> States:
        """The states of a line that no cache has."""
        return (self.invalid,) * caches

    def read(self, states: Sequence[str], who: int) -> tuple[States, LineTransfer]:
        """Cache `who` loads a line; `states` are the states of the line in each cache.

        Returns the new states and the transfer. Raises ProtocolError if the table has no rule.
        """
        return self.access(READ, states, who)

    def write(self, states: Sequence[str], who: int) -> tuple[States, LineTransfer]:
        """Cache `who` stores to the line; as `read`. An atomic read-modify-write is a store."""
        return self.access(WRITE, states, who)

    def evict(self, states: Sequence[str], who: int) -> tuple[States, LineTransfer]:
        """Cache `who` evicts its copy of the line; as `read`."""
        return self.access(EVICT, states, who)

    def access(
        self, operation: str, states: Sequence[str], who: int
    ) -> tuple[States, LineTransfer]:
        """One of OPERATIONS, as `read`."""
        key = (operation, tuple(states), who)
        done = self._done.get(key)
        if done is None:
            if len(self._done) >= _REMEMBERED:
                self._done.clear()
            done = self._done[key] = self._apply(*key)
        return done

    def strongest(self, states: Sequence[str]) -> str:
        """The strongest of some states; for no states, the state of an absent line."""
        return min(states, key=self._rank.__getitem__, default=self.invalid)

    def directory_state(self, states: Sequence[str]) -> str | None:
        """The state of the line in the directory, for a protocol with a directory."""
        return self.directory.get(self.strongest(states)) if self.directory else None

    def rule(self, operation: str, states: States, who: int) -> Rule:
        """The row of the table for an access. Raises ProtocolError if there is none."""
        own = states[who]
        other = self.strongest(states[:who] + states[who + 1 :])
        result = self.rules.get((operation, own, other))
        if result is None:
            raise ProtocolError(
                f"{self.name}: expected a rule for {operation} by a cache in {own} while another "
                f"is in {other}, got none (states {' '.join(states)}, cache {who})"
            )
        return result

    def _apply(self, operation: str, states: States, who: int) -> tuple[States, LineTransfer]:
        rule = self.rule(operation, states, who)
        new = tuple(
            rule.becomes if i == who else rule.others.get(state, state)
            for i, state in enumerate(states)
        )
        others = [i for i in range(len(states)) if i != who]
        invalidated = tuple(
            i for i in others if new[i] == self.invalid and states[i] != self.invalid
        )
        asked = None
        if rule.other != self.invalid:
            asked = next(i for i in others if states[i] == rule.other)
        written_back = None
        if rule.write_back:
            written_back = who if rule.operation == EVICT or asked is None else asked
        return new, LineTransfer(
            rule.data,
            asked if rule.data == CACHE else None,
            asked if rule.lookup else None,
            invalidated,
            tuple(i for i in others if new[i] != self.invalid) if rule.update else (),
            written_back,
        )
