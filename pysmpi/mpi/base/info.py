"""Info objects (MPI 4.1, chapter 10): ordered pairs of strings, with the manners of a dict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from pysmpi.mpi.base.constants import (
    ERR_ARG,
    ERR_INFO,
    ERR_INFO_KEY,
    ERR_INFO_NOKEY,
    ERR_INFO_VALUE,
    MAX_INFO_KEY,
    MAX_INFO_VAL,
)
from pysmpi.mpi.base.exceptions import cint, cstring, fail, listed, sequence
from pysmpi.mpi.base.handles import Handle, wrong_type
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.internal_errors import touches_program

__all__ = ["Info", "INFO_NULL", "INFO_ENV"]


class InfoEnvironment:
    """The object of INFO_ENV: its pairs are those of the calling rank."""

    __slots__ = ()


ENVIRONMENT = InfoEnvironment()


STARTED_BY: StateSlot[Rank, dict[str, str]] = StateSlot(Rank, dict)


def environment() -> dict[str, str]:
    """The pairs of INFO_ENV in the calling rank: the known facts about its start."""
    return STARTED_BY.of(current())


class Info(Handle, kind=7, null=0x1C000000, error=ERR_INFO):
    """Info object."""

    __slots__ = ()

    _impl: dict[str, str] | InfoEnvironment | None
    _outlives_mpi = True

    def __new__(cls, info: Info | None = None) -> Self:
        self = object.__new__(cls)
        Handle._copy(self, info, "info")
        return self

    def __reduce__(self) -> str | tuple[object, ...]:
        """Reduce to a name, or to the pairs."""
        if self._is_predefined():
            return super().__reduce__()
        return (type(self).Create, (self.items(),))

    def _pairs(self) -> dict[str, str]:
        impl: Any = self._live()
        own: dict[str, str] = environment() if impl is ENVIRONMENT else impl
        return own

    def _writable(self) -> dict[str, str]:
        impl = self._live()
        if impl is ENVIRONMENT:
            fail(ERR_INFO, "INFO_ENV is read-only")
        own: dict[str, str] = impl
        return own

    @classmethod
    @mpi.local("10")
    def Create(
        cls,
        items: Info | Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    ) -> Self:
        """Create a new info object."""
        info = cls._of({})
        if items is not None:
            for key, value in _pairs_of(items):
                info.Set(key, value)
        return info

    @classmethod
    @mpi.local("10")
    def Create_env(cls, args: Sequence[str] | None = None) -> Self:
        """Create a new environment info object."""
        pairs = dict(environment())
        if args is not None:
            words = [cstring(word) for word in ([args] if isinstance(args, str) else listed(args))]
            if words:
                pairs["command"] = words[0]
                pairs.pop("argv", None)
            if words[1:]:
                pairs["argv"] = " ".join(words[1:])
        return cls._of(pairs)

    @mpi.local("10")
    def Free(self) -> None:
        """Free an info object."""
        self._writable()
        self._retire()

    @mpi.local("10")
    def Dup(self) -> Self:
        """Duplicate an existing info object."""
        return type(self)._of(dict(self._pairs()))

    @mpi.local("10")
    def Get(self, key: str) -> str | None:
        """Retrieve the value associated with a key."""
        name = _key(key)
        return self._pairs().get(name)

    @mpi.local("10")
    def Set(self, key: str, value: str) -> None:
        """Store a value associated with a key."""
        key, value = cstring(key), cstring(value)
        pairs = self._writable()
        name = _key(key)
        if len(value.encode()) > MAX_INFO_VAL:
            fail(ERR_INFO_VALUE, f"value of {name!r} is longer than {MAX_INFO_VAL} bytes")
        pairs[name] = value

    @mpi.local("10")
    def Delete(self, key: str) -> None:
        """Remove a (key, value) pair from info."""
        key = cstring(key)
        pairs = self._writable()
        name = _key(key)
        if name not in pairs:
            fail(ERR_INFO_NOKEY, f"key {name!r}")
        del pairs[name]

    @mpi.local("10")
    def Get_nkeys(self) -> int:
        """Return the number of currently defined keys in info."""
        return len(self._pairs())

    @mpi.local("10")
    def Get_nthkey(self, n: int) -> str:
        """Return the *n*-th defined key in info."""
        number = cint(n)
        keys = list(self._pairs())
        if not 0 <= number < len(keys):
            fail(ERR_ARG, f"n is {number}, there are {len(keys)} keys")
        return keys[number]

    # As a mapping: a null object is an empty one that cannot be written.

    def __len__(self) -> int:
        """Return len(self)."""
        return self.Get_nkeys() if self else 0

    def __contains__(self, key: str) -> bool:
        """Return bool(key in self)."""
        return bool(self) and self.Get(key) is not None

    def __iter__(self) -> Iterator[str]:
        """Implement iter(self)."""
        return iter(self.keys())

    def __getitem__(self, key: str) -> str:
        """Return self[key]."""
        value = self.Get(key) if self else None
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: str) -> None:
        """Set self[key] to value."""
        if not self:
            raise KeyError(key)
        self.Set(key, value)

    def __delitem__(self, key: str) -> None:
        """Delete self[key]."""
        if key not in self:
            raise KeyError(key)
        self.Delete(key)

    @mpi.local()
    def get(self, key: str, default: str | None = None) -> str | None:
        """Retrieve value by key."""
        value = self.Get(key) if self else None
        return default if value is None else value

    @mpi.local()
    def keys(self) -> list[str]:
        """Return list of keys."""
        return list(self._pairs()) if self else []

    @mpi.local()
    def values(self) -> list[str]:
        """Return list of values."""
        return list(self._pairs().values()) if self else []

    @mpi.local()
    def items(self) -> list[tuple[str, str]]:
        """Return list of items."""
        return list(self._pairs().items()) if self else []

    @mpi.local()
    def update(
        self,
        items: Info | Mapping[str, str] | Iterable[tuple[str, str]] = (),
        **kwds: str,
    ) -> None:
        """Update contents."""
        if not self:
            raise KeyError("null info")
        for key, value in _pairs_of(items):
            self.Set(key, value)
        for key, value in kwds.items():
            self.Set(key, value)

    @mpi.local()
    @touches_program
    def pop(self, key: str, *default: str) -> str:
        """Pop value by key."""
        value = self.Get(key) if self else None
        if value is not None:
            self.Delete(key)
            return value
        if default:
            (value,) = default
            return value
        raise KeyError(key)

    @mpi.local()
    def popitem(self) -> tuple[str, str]:
        """Pop last item."""
        keys = self.keys()
        if not keys:
            raise KeyError("popitem(): info is empty")
        return keys[-1], self.pop(keys[-1])

    @mpi.local()
    def copy(self) -> Self:
        """Copy contents."""
        return self.Dup() if self else type(self)()

    @mpi.local()
    def clear(self) -> None:
        """Clear contents."""
        for key in self.keys():
            self.Delete(key)


def check_info(info: object) -> Info:
    """Refuse an argument `info` that is not an info object."""
    if not isinstance(info, Info):
        raise wrong_type("info", Info, info)
    return info


INFO_NULL = Info._define("INFO_NULL", None, 0x1C000000)
INFO_ENV = Info._define("INFO_ENV", ENVIRONMENT, 0x5C000001)


def pairs(info: Info | None) -> dict[str, str]:
    """The pairs of an info argument, for reading; none if it is null or None."""
    if info is None or info._sync() is None:
        return {}
    return info._pairs()


def _pairs_of(items: Any) -> Iterable[Any]:
    if hasattr(items, "keys"):
        return [(key, items[key]) for key in items.keys()]
    result = [sequence(pair) for pair in listed(items)]
    for pair in result:
        if len(pair) != 2:
            raise ValueError(f"items: expecting (key, value), got {len(pair)} items")
    return result


def _key(key: str) -> str:
    """A key, checked."""
    name = cstring(key)
    if not name.strip():
        fail(ERR_INFO_KEY, "key is empty or blank")
    if len(name.encode()) > MAX_INFO_KEY:
        fail(ERR_INFO_KEY, f"key is longer than {MAX_INFO_KEY} bytes: {name[:20]!r}...")
    return name
