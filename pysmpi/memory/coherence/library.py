"""Finding and reading tables: included ones, those of other distributions, a user's own file.

A table of another distribution is found through the entry point group `pysmpi.protocols`: the entry
names a module that calls `add_table` with the path of the table when it is imported.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pysmpi.errors import UsageError
from pysmpi.memory.coherence.protocol import (
    CACHE,
    EVICT,
    MEMORY,
    NONE,
    OPERATIONS,
    OWN,
    LineState,
    Protocol,
    Rule,
)
from pysmpi.platform.nodes import Node, compose
from pysmpi.plugins import Registry
from pysmpi.text import closest

TABLES = Path(__file__).parent / "tables"

_SUFFIXES = (".yaml", ".yml")
_TRAITS = ("invalid", "exclusive", "owner", "dirty")
_RULE_OPTIONAL = ("becomes", "others", "data", "write_back", "update", "lookup")


@dataclass(frozen=True)
class NamedProtocol:
    """A protocol that has a name: the file with its table, and one line about it."""

    name: str
    path: Path

    @property
    def line(self) -> str:
        """The first line of its description."""
        return next(iter(_shipped(self.path).description.splitlines()), "")


PROTOCOLS: Registry[NamedProtocol] = Registry("protocol", "pysmpi.protocols")


def add_table(path: str | os.PathLike[str]) -> None:
    """Register the table in a file under the name of the file, without its suffix."""
    file = Path(path)
    PROTOCOLS.add(NamedProtocol(file.stem, file))


for _path in sorted(TABLES.glob("*.yaml")):
    add_table(_path)


def shipped() -> list[str]:
    """Names of the tables that ship with pysmpi, sorted."""
    return sorted(path.stem for path in TABLES.glob("*.yaml"))


def names() -> list[str]:
    """Names of all tables that can be named, sorted."""
    return sorted(PROTOCOLS.names())


def protocol(name: str | os.PathLike[str]) -> Protocol:
    """The protocol of that name, or the one in a table file (.yaml, .yml).

    Raises UsageError, one line that names the file, the line and the key, if it cannot be read.
    """
    text = os.fspath(name)
    if Path(text).suffix.lower() in _SUFFIXES or os.sep in text:
        try:
            return read_table(Path(text))
        except OSError as error:
            raise UsageError(f"{text}: cannot be read: {error.strerror}") from None
    by_lower = {known.name.lower(): known for known in PROTOCOLS}
    known = by_lower.get(text.lower())
    if known is None:
        close = closest(text.lower(), by_lower)
        hint = f'; did you mean "{by_lower[close].name}"?' if close else ""
        raise UsageError(
            f'protocol: expected a table file or one of {", ".join(names())}, got "{text}"{hint}'
        )
    return _shipped(known.path)


@cache
def _shipped(path: Path) -> Protocol:
    return read_table(path)


def read_table(path: Path) -> Protocol:
    """The protocol in the file `path`. Raises UsageError."""
    top = compose(path)
    keys = top.fields(
        ("name", "states", "read", "write"),
        ("description", "sources", "assumptions", "directory", "evict"),
    )
    states = _read_states(keys["states"])
    rules: dict[tuple[str, str, str], Rule] = {}
    for operation in OPERATIONS:
        for node in keys[operation].items() if operation in keys else ():
            for rule in _read_rule(node, operation, states):
                key = (operation, rule.own, rule.other)
                if key in rules:
                    raise node.error(
                        f"expected one rule for {operation} in {rule.own} while another cache is "
                        f"in {rule.other}, got a second"
                    )
                rules[key] = rule
    directory = {}
    if "directory" in keys:
        directory = {
            letter: node.text() for letter, node in keys["directory"].fields((), states).items()
        }
    return Protocol(
        keys["name"].text(),
        keys["description"].text().strip() if "description" in keys else "",
        states,
        rules,
        directory,
        _texts(keys.get("sources")),
        _texts(keys.get("assumptions")),
    )


def _texts(node: Node | None) -> tuple[str, ...]:
    return () if node is None else tuple(item.text() for item in node.items())


def _read_states(node: Node) -> dict[str, LineState]:
    states = {}
    for letter, traits in node.entries().items():
        known = {item.choice(_TRAITS): True for item in traits.items()}
        states[letter] = LineState(letter, **known)
    invalid = [letter for letter, state in states.items() if state.invalid]
    if len(invalid) != 1:
        raise node.error(f"expected one state that is [invalid], got {len(invalid)}")
    if next(reversed(states)) != invalid[0]:
        raise node.error(f"expected the states strongest first, {invalid[0]} (invalid) last")
    return states


def _letters(node: Node, states: dict[str, LineState]) -> list[str]:
    """A state, a list of states, or any."""
    if node.is_list():
        return [item.choice(states) for item in node.items()]
    text = node.choice((*states, "any"))
    return list(states) if text == "any" else [text]


def _read_rule(node: Node, operation: str, states: dict[str, LineState]) -> list[Rule]:
    """A row of the file: a rule for each pair of states that it names."""
    keys = node.fields(("own", "other"), _RULE_OPTIONAL)
    data = NONE if operation == EVICT else MEMORY
    if "data" in keys:
        data = keys["data"].choice((OWN, MEMORY, CACHE))
    elif operation != EVICT:
        raise node.error('expected the key "data", got none')
    flags = {
        name: name in keys and keys[name].switch() for name in ("write_back", "update", "lookup")
    }
    rules = []
    for own in _letters(keys["own"], states):
        for other in _letters(keys["other"], states):
            becomes = next(reversed(states)) if operation == EVICT else own
            if "becomes" in keys:
                becomes = keys["becomes"].choice(states)
            if (data == CACHE or flags["lookup"]) and states[other].invalid:
                raise node.error(f"expected another cache with the line, got one in {other}")
            if data == OWN and states[own].invalid:
                raise node.error(f"expected data from memory or a cache, as this one is in {own}")
            others = _read_others(keys["others"], states) if "others" in keys else {}
            rules.append(Rule(operation, own, other, becomes, others, data, **flags))
    return rules


def _read_others(node: Node, states: dict[str, LineState]) -> dict[str, str]:
    """The new state of other caches' copies: one state for all, or one for each old state."""
    if node.is_mapping():
        return {old: new.choice(states) for old, new in node.fields((), states).items()}
    new = node.choice(states)
    return {old: new for old, state in states.items() if not state.invalid}
