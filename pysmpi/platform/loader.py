"""Finding and reading a platform: a file, or a machine that ships with pysmpi."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from pysmpi.errors import UsageError
from pysmpi.io.reading import similar
from pysmpi.platform.construct import construct
from pysmpi.platform.default import DEFAULT, MACHINES, default_machine
from pysmpi.platform.definition import PlatformDef
from pysmpi.platform.model import Platform
from pysmpi.text import did_you_mean

__all__ = ["DEFAULT", "MACHINES", "find", "load", "load_default", "read", "shipped", "systems"]

SYSTEMS = MACHINES.with_name("systems")
# Of files that describe a machine as a graph (`pysmpi.platform.graph_files`).
_GRAPHS = (".graphml", ".gexf", ".json")
_SUFFIXES = (".yaml", ".yml", ".xml", *_GRAPHS)


def shipped() -> list[str]:
    """Names of the machines that ship with pysmpi, sorted."""
    return sorted(path.stem for path in MACHINES.glob("*.yaml"))


def systems() -> list[str]:
    """Names of the systems of the TOP500 whose public figures come with pysmpi, sorted."""
    return sorted(path.stem for path in SYSTEMS.glob("*.yaml"))


def find(path_or_name: str | os.PathLike[str]) -> Path:
    """The file that `path_or_name` means: an existing file, or a shipped machine's.

    Raises UsageError that lists the shipped machines when it is neither.
    """
    text = os.fspath(path_or_name)
    path = Path(text)
    if path.suffix.lower() in _SUFFIXES or os.sep in text or os.path.isfile(path):
        if os.path.isdir(path):
            raise UsageError(f"{text}: expected a platform file, got a directory")
        if not os.path.exists(path):
            hint = similar(text, tuple(_SUFFIXES))
            raise UsageError(f"{text}: expected a platform file, got no such file{hint}")
        if path.suffix.lower() not in _SUFFIXES:
            raise UsageError(
                f"{text}: expected a file called .yaml, .yml (pysmpi), .xml (SimGrid), .graphml, "
                ".gexf or .json (a graph)"
            )
        return path
    names = shipped()
    if text in names:
        return MACHINES / f"{text}.yaml"
    if text in systems():
        return SYSTEMS / f"{text}.yaml"
    files = [text + suffix for suffix in _SUFFIXES if os.path.exists(text + suffix)]
    known = [*names, *systems()]
    hint = f'; did you mean "{files[0]}"?' if files else did_you_mean(text, known, '"{}"')
    raise UsageError(f'platform: expected a file or one of {", ".join(names)}, got "{text}"{hint}')


# A machine: the path of its file, the name of one that ships, or the contents of a file as data.
Described: TypeAlias = "str | os.PathLike[str] | Mapping[str, object]"


def read(described: Described) -> PlatformDef:
    """The definition of a machine. Raises UsageError."""
    if isinstance(described, Mapping):
        from pysmpi.platform.yaml import read_data

        return read_data(described, "platform")
    path = find(described)
    # The XML library takes longer to import than most platforms take to load.
    if path.suffix.lower() == ".xml":
        from pysmpi.platform.xml import read_xml

        return read_xml(path)
    if path.suffix.lower() in _GRAPHS:
        from pysmpi.platform.graph_files import read_machine

        return read_machine(path)
    from pysmpi.platform.yaml import read_yaml

    return read_yaml(path)


def load(described: Described, config: Mapping[str, str] | None = None) -> Platform:
    """The platform in a file, the included machine of that name, or one that data describe.

    `config` holds SimGrid options (``--cfg``). They take precedence over the options of the file
    when the machine is constructed; the platform's own `config` keeps the values of the file.
    Raises UsageError for wrong input; the message is one line with file, line and element.
    """
    return construct(read(described), config or {})


def load_default(config: Mapping[str, str] | None = None) -> Platform:
    """The default machine, with `config` as in `load`."""
    return construct(default_machine(), config or {})
