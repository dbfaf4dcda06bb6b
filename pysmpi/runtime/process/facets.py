"""State that the operating system or C code keeps for a process: one class for each kind.

A facet costs nothing until a rank changes it. From then on it is exchanged at switches of ranks.
"""

from __future__ import annotations

import gc
import locale
import os
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pysmpi.runtime.lookalike import like
from pysmpi.runtime.patches import Patches
from pysmpi.runtime.process.exchange import Exchange, State


class Facet:
    """One kind of state: `read` and `write` are the real thing's.

    Ranks come in through replacements of the functions that change it, which call `change`.
    """

    name = ""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.base: Any = None  # the value of the caller, and of ranks that have not changed it
        self.actual: Any = None

    def read(self) -> Any:
        """The value that the process has now."""
        raise TypeError(f"{type(self).__name__} cannot be read")

    def write(self, value: Any) -> None:
        """Give the process a value."""
        raise TypeError(f"{type(self).__name__} cannot be written")

    def change(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function that changes the state for the rank that is running."""
        exchange = self.exchange
        state = exchange.shown
        if state is exchange.outside and self.name not in exchange.facets:
            return function(*args, **kwargs)
        if self.name not in exchange.facets:
            self.base = self.actual = self.read()
            exchange.facets[self.name] = self
        try:
            return function(*args, **kwargs)
        finally:
            self.actual = self.read()
            if state is exchange.outside:
                self.base = self.actual
            else:
                state.facets[self.name] = self.actual

    def show(self, last: State, state: State) -> None:
        """Exchange the value as the rank of `state` goes on."""
        value = state.facets.get(self.name, self.base)
        if value != self.actual:
            self.write(value)
            self.actual = value

    def forget(self, state: State) -> None:
        """A rank has ended that has a value of its own."""

    def replace(self, patches: Patches, owner: Any, *names: str) -> None:
        """Let functions of a module change the state of one rank."""
        for name in names:
            real = getattr(owner, name, None)
            if real is not None:
                patches.set(owner, name, like(real, self._changing(real)))

    def _changing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def change(*args: Any, **kwargs: Any) -> Any:
            return self.change(real, *args, **kwargs)

        return change


class Directory(Facet):
    """The working directory."""

    name = "directory"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._chdir = os.chdir

    def read(self) -> str:
        return os.getcwd()

    def write(self, value: str) -> None:
        try:
            self._chdir(value)
        except OSError:  # somebody removed it: as in a process, only its use fails
            pass


class Umask(Facet):
    """The file mode creation mask."""

    name = "umask"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._umask = os.umask

    def read(self) -> int:
        mask = self._umask(0)
        self._umask(mask)
        return mask

    def write(self, value: int) -> None:
        self._umask(value)


class Setting(Facet):
    """A setting with a function to get and one to set it, such as the recursion limit."""

    def __init__(
        self, exchange: Exchange, name: str, get: Callable[[], Any], set: Callable[[Any], Any]
    ) -> None:
        super().__init__(exchange)
        self.name = name
        self.read = get  # type: ignore[method-assign]
        self._set = set

    def write(self, value: Any) -> None:
        self._set(value)


class RecursionLimit(Setting):
    """The recursion limit; a rank that waits deep in its stack may be beyond that of others."""

    def write(self, value: Any) -> None:
        try:
            self._set(value)
        except RecursionError:
            pass


class Locale(Facet):
    """The locale, of all categories."""

    name = "locale"

    def __init__(self, exchange: Exchange, module: Any) -> None:
        super().__init__(exchange)
        self._setlocale = module.setlocale

    def read(self) -> str:
        return str(self._setlocale(locale.LC_ALL, None))

    def write(self, value: str) -> None:
        self._setlocale(locale.LC_ALL, value)

    def _changing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def change(category: int, locale: Any = None, /) -> Any:
            if locale is None:
                return real(category)
            return self.change(real, category, locale)

        return change


class TimeZone(Facet):
    """The time zone that `time.tzset` read from the variable TZ."""

    name = "time zone"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._tzset = time.tzset

    def read(self) -> str | None:
        return os.environ.get("TZ")

    def write(self, value: str | None) -> None:
        if value is None:
            os.unsetenv("TZ")
        else:
            os.putenv("TZ", value)
        self._tzset()


class Collecting(Facet):
    """Whether Python looks for reference cycles by itself."""

    name = "gc"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._enable, self._disable = gc.enable, gc.disable

    def read(self) -> bool:
        return gc.isenabled()

    def write(self, value: bool) -> None:
        (self._enable if value else self._disable)()


def install(patches: Patches, exchange: Exchange) -> None:
    """Give every rank its own of what functions without a module of their own change."""
    Directory(exchange).replace(patches, os, "chdir", "fchdir")
    Umask(exchange).replace(patches, os, "umask")
    RecursionLimit(
        exchange, "recursion limit", sys.getrecursionlimit, sys.setrecursionlimit
    ).replace(patches, sys, "setrecursionlimit")
    Setting(
        exchange, "switch interval", sys.getswitchinterval, sys.setswitchinterval
    ).replace(patches, sys, "setswitchinterval")
    if hasattr(sys, "set_int_max_str_digits"):
        Setting(
            exchange, "digits", sys.get_int_max_str_digits, sys.set_int_max_str_digits
        ).replace(patches, sys, "set_int_max_str_digits")
    Collecting(exchange).replace(patches, gc, "enable", "disable")
    low: Any = sys.modules["_locale"]
    place = Locale(exchange, low)
    place.replace(patches, low, "setlocale")
    patches.set(locale, "_setlocale", low.setlocale)
    if hasattr(time, "tzset"):
        TimeZone(exchange).replace(patches, time, "tzset")


def patch_socket(patches: Patches, module: ModuleType, exchange: Exchange) -> None:
    """Give every rank its own default timeout of sockets."""
    timeout = Setting(
        exchange, "socket timeout", module.getdefaulttimeout, module.setdefaulttimeout
    )
    timeout.replace(patches, module, "setdefaulttimeout")
