"""A YAML document as a tree with line numbers, for readers that check every key themselves.

`Node` wraps the nodes that PyYAML composes. Its methods return the expected kind of value (a
mapping with these keys, a list, a text, a quantity), or raise a UsageError with the file, the line,
the path and the value that was found instead. Scalars are used as written: YAML's rules for types
(``on``, 012, ``1e3``) do not apply, except that a switch takes true and false.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

import yaml  # type: ignore[import-untyped]

from pysmpi.errors import UsageError
from pysmpi.io.reading import read_bytes
from pysmpi.text import did_you_mean

_T = TypeVar("_T")

# libyaml's loader is about ten times as fast; PyYAML may have been built without it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_NULL = "tag:yaml.org,2002:null"
_BOOL = "tag:yaml.org,2002:bool"
_MERGE = "tag:yaml.org,2002:merge"

# Anchors may refer to a node that contains them; no useful document is deeper than this.
_DEEPEST = 50
# The limit of libyaml, and more than a useful document has.
_NESTED = 500
_FEW = 8  # aliases that cannot make a text large
_LARGEST = 20_000_000  # values, with those that aliases repeat


def compose(path: Path) -> Node:
    """The document in the file `path`. Raises UsageError."""
    data = read_bytes(path)
    try:
        if _suspicious(data):
            _check_size(path, data)
        root = yaml.compose(data, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        problem = error.problem or error.context or "something else"
        if "nesting depth" in problem:  # libyaml has a limit of its own for what it reads ahead
            problem = "text nested too deeply"
        begin = data.split(b"\n", line)[line - 1 : line]
        if begin and b"\t" in begin[0][: len(begin[0]) - len(begin[0].lstrip())]:
            problem = "a tab at the begin of the line; YAML is indented with spaces"
        raise UsageError(f"{path}:{line}: expected well-formed YAML, got: {problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise UsageError(f"{path}: expected a YAML text, got other data") from None
    except RecursionError:
        raise UsageError(f"{path}: expected a YAML text, got one nested too deeply") from None
    if root is None:
        raise UsageError(f"{path}: expected a mapping of keys to values, got nothing")
    return Node(str(path), root, "", 0)


def from_data(data: object, name: str) -> Node:
    """Dictionaries and lists as a document called `name`. Raises UsageError.

    Its numbers and switches are written as in YAML.
    """
    representer = yaml.representer.SafeRepresenter(sort_keys=False)
    try:
        return Node(name, representer.represent_data(data), "", 0)
    except yaml.representer.RepresenterError as error:
        raise UsageError(
            f"{name}: expected dictionaries, lists, texts and numbers, got {error.args[1]!r}"
        ) from None
    except RecursionError:
        raise UsageError(f"{name}: expected data, got some nested too deeply") from None


def _suspicious(data: bytes) -> bool:
    """Whether a text may be nested deeply, or grow by its aliases."""
    if data.count(b"[") + data.count(b"{") > _NESTED or data.count(b"*") > _FEW:
        return True
    return any(len(line) - len(line.lstrip(b" -?:")) > _NESTED for line in data.splitlines())


def _check_size(path: Path, data: bytes) -> None:
    """Refuse a text that is nested too deeply to compose, or that aliases make too large.

    The events of a text are read without recursion, and aliases are not followed.
    """
    sizes: dict[str, int] = {}  # by anchor: the number of nodes
    open_nodes: list[tuple[str | None, int]] = []
    for event in yaml.parse(data, Loader=_LOADER):
        size = 0
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, 1))
            if len(open_nodes) > _NESTED:
                line = event.start_mark.line + 1
                raise UsageError(f"{path}:{line}: expected a YAML text, got one nested too deeply")
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, size = open_nodes.pop()
        elif isinstance(event, yaml.AliasEvent):
            anchor, size = None, sizes.get(event.anchor, 1)
        elif isinstance(event, yaml.ScalarEvent):
            anchor, size = event.anchor, 1
        else:
            continue
        if anchor is not None:
            sizes[anchor] = size
        if size > _LARGEST:
            line = event.start_mark.line + 1
            raise UsageError(
                f"{path}:{line}: expected at most {_LARGEST:,} values, got aliases that stand "
                "for more"
            )
        if open_nodes:
            outer, before = open_nodes[-1]
            open_nodes[-1] = outer, before + size


class Node:
    """One place in a document; `path` is its path, such as ``links[3].bandwidth``."""

    __slots__ = ("file", "path", "_node", "_depth")

    def __init__(self, file: str, node: yaml.Node, path: str, depth: int) -> None:
        self.file = file
        self.path = path
        self._node = node
        self._depth = depth
        if depth > _DEEPEST:
            raise self.error("expected a finite document, got an anchor that contains itself")

    @property
    def where(self) -> str:
        """File, line and path: the begin of a message. Data in Python have no lines."""
        mark = self._node.start_mark
        place = self.file if mark is None else f"{self.file}:{mark.line + 1}"
        return f"{place}: {self.path}" if self.path else place

    def error(self, message: str) -> UsageError:
        """An error with `message` about this place."""
        return UsageError(f"{self.where}: {message}")

    def is_mapping(self) -> bool:
        """Whether this is a mapping."""
        return isinstance(self._node, yaml.MappingNode)

    def is_list(self) -> bool:
        """Whether this is a list."""
        return isinstance(self._node, yaml.SequenceNode)

    def entries(self) -> dict[str, Node]:
        """Keys and values in the order of the file; ``<<`` brings in another mapping's."""
        if not isinstance(self._node, yaml.MappingNode):
            raise self.error(f"expected a mapping of keys to values, got {self._shown()}")
        found: dict[str, Node] = {}
        merged: list[Node] = []
        for key_node, value_node in self._node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self.error("expected a text as key, got a structure")
            key = key_node.value
            value = Node(
                self.file, value_node, f"{self.path}.{key}" if self.path else key, self._depth + 1
            )
            if key_node.tag == _MERGE:
                merged.extend(value.items() if value.is_list() else [value])
            elif key in found:
                line = key_node.start_mark.line + 1
                raise UsageError(f"{self.file}:{line}: {value.path}: expected once, got it twice")
            else:
                found[key] = value
        for other in merged:
            for key, value in other.entries().items():
                found.setdefault(key, value)
        return found

    def fields(self, required: Collection[str], optional: Collection[str] = ()) -> dict[str, Node]:
        """The keys and values; each key must be allowed, and all required keys present."""
        found = self.entries()
        known = [*required, *optional]
        for key, value in found.items():
            if key not in known:
                hint = did_you_mean(key, known, '"{}"')
                raise value.error(f'expected a key among {", ".join(known)}, got "{key}"{hint}')
        for key in required:
            if key not in found:
                raise self.error(f'expected the key "{key}", got none')
        return found

    def items(self) -> list[Node]:
        """The entries of a list."""
        if not isinstance(self._node, yaml.SequenceNode):
            raise self.error(f"expected a list, got {self._shown()}")
        return [
            Node(self.file, node, f"{self.path}[{i}]", self._depth + 1)
            for i, node in enumerate(self._node.value)
        ]

    def text(self, empty: bool = False) -> str:
        """A text as written; it may be empty only if `empty`."""
        if not isinstance(self._node, yaml.ScalarNode) or self._node.tag == _NULL:
            raise self.error(f"expected a text, got {self._shown()}")
        if not self._node.value and not empty:
            raise self.error("expected a text, got an empty one")
        return str(self._node.value)

    def switch(self) -> bool:
        """True or false."""
        text = self.text()
        if self._node.tag != _BOOL:
            raise self.error(f'expected true or false, got "{text}"')
        return text.lower() in ("true", "yes", "on")

    def choice(self, known: Collection[str]) -> str:
        """One of some words."""
        text = self.text()
        if text not in known:
            hint = did_you_mean(text.lower(), known, '"{}"')
            raise self.error(f'expected one of {", ".join(known)}, got "{text}"{hint}')
        return text

    def parse(self, reader: Callable[[str], _T]) -> _T:
        """The value that `reader` returns for the text; its UsageError begins with this place."""
        text = self.text()
        try:
            return reader(text)
        except UsageError as error:
            raise self.error(str(error)) from None

    def _shown(self) -> str:
        if isinstance(self._node, yaml.MappingNode):
            return "a mapping"
        if isinstance(self._node, yaml.SequenceNode):
            return "a list"
        return "nothing" if self._node.tag == _NULL else f'"{self._node.value}"'
