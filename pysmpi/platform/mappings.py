"""The names of the orders in which ranks fill a machine, and in which they are numbered."""

from __future__ import annotations

import re
from typing import NamedTuple

MAPPINGS = ("core", "socket", "node")
RANKINGS = ("slot", "core", "socket", "node")
EXPECTED = (*MAPPINGS, "ppr:N:node", "ppr:N:socket")
EXPECTED_RANKINGS = (*RANKINGS, "socket:span")

# Other names of Open MPI: of slots, and of processors.
_SYNONYMS = {"slot": "core", "hwthread": "core", "package": "socket"}
# Modifiers that change nothing here: there is no node of the launcher, no job to inherit from, and
# places without end unless they are counted. Sockets are always those of the whole machine.
_WITHOUT_EFFECT = frozenset(
    "span oversubscribe nolocal hwtcpus corecpus inherit noinherit nodisplay".split()
)
_EACH = r"ppr:([1-9][0-9]{0,8}):([a-z]+)"
_CORES = r"pe=([1-9][0-9]{0,5})"


class Mapping(NamedTuple):
    """The order in which ranks fill a machine, round robin by cores, sockets or nodes.

    With `each`, that many ranks are on each of these units, a node after the other. A rank has
    `cores` cores. `strict` refuses to let ranks share cores.
    """

    by: str
    each: int | None = None
    cores: int = 1
    strict: bool = False


def _unit(name: str) -> str | None:
    found = _SYNONYMS.get(name, name)
    return found if found in MAPPINGS else None


def parse_mapping(text: str) -> Mapping | None:
    """The mapping that a text names, as Open MPI writes it; None for other text.

    `node`, `ppr:4:node`, and modifiers after a colon, separated by commas or colons: `core:pe=2`.
    """
    word = text.strip().lower()
    each = None
    match = re.match(_EACH, word)
    if match is not None:
        each, unit, rest = int(match[1]), _unit(match[2]), word[match.end() :]
        if unit == "core":
            return None
    else:
        name, colon, behind = word.partition(":")
        unit, rest = _unit(name), colon + behind
    if unit is None or (rest and not rest.startswith(":")):
        return None
    cores, strict = 1, False
    for modifier in re.split("[:,]", rest[1:]) if rest else ():
        number = re.fullmatch(_CORES, modifier)
        if number is not None:
            cores = int(number[1])
        elif modifier == "nooversubscribe":
            strict = True
        elif modifier not in _WITHOUT_EFFECT:
            return None
    return Mapping(unit, each, cores, strict)


def is_mapping(text: object) -> bool:
    """Whether a text is the name of an order in which ranks fill a machine."""
    return isinstance(text, str) and parse_mapping(text) is not None


def parse_ranking(text: str) -> str | None:
    """One of `EXPECTED_RANKINGS`, from Open MPI's names; None for other text."""
    word = text.strip().lower().replace("package", "socket").replace("hwthread", "core")
    word = {"fill": "core", "span": "socket:span", "node:span": "node", "slot:span": "slot"}.get(
        word, word
    )
    return word if word in EXPECTED_RANKINGS else None


def is_ranking(text: object) -> bool:
    """Whether a text is the name of an order in which ranks are numbered."""
    return isinstance(text, str) and parse_ranking(text) is not None
