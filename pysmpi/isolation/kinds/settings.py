"""Settings of a process in the operating system or C code, which functions of Python change.

The functions are replaced. A setting is exchanged at switches after the first call by a rank.
"""

from __future__ import annotations

import contextlib
import gc
import locale
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pysmpi.isolation.exchange import Exchange
from pysmpi.isolation.state import Accessed, Setting, SharedParts
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches

_putenv = os.putenv
_unsetenv: Any = getattr(os, "unsetenv", None)


class WorkingDirectory(Setting):
    """The working directory."""

    name = "directory"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._chdir = os.chdir

    def capture(self) -> str:
        return os.getcwd()

    def write(self, value: str) -> None:
        try:
            self._chdir(value)
        except OSError:  # it was removed: as in a process, only its use fails
            pass


class Umask(Setting):
    """The file mode creation mask."""

    name = "umask"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._umask = os.umask

    def capture(self) -> int:
        mask = self._umask(0)
        self._umask(mask)
        return mask

    def write(self, value: int) -> None:
        self._umask(value)


class RecursionLimit(Accessed):
    """The recursion limit; the stack of a waiting rank may exceed the limit of others."""

    def write(self, value: Any) -> None:
        try:
            self._set(value)
        except RecursionError:
            pass


class StackSize(Setting):
    """The size of the stacks of new threads, which are real in the children of ranks."""

    name = "stack size"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._size = threading.stack_size

    def capture(self) -> int:
        return self._size()

    def write(self, value: int) -> None:
        self._size(value)

    def replace_functions(self, patches: Patches) -> None:
        """Let ranks change it."""
        real = self._size

        def stack_size(*size: Any) -> Any:
            before = real()
            if size:
                self.change(real, *size)
            return before

        patches.set(threading, "stack_size", like(real, stack_size))


class Locale(Setting):
    """The locale, of all categories."""

    name = "locale"

    def __init__(self, exchange: Exchange, module: Any) -> None:
        super().__init__(exchange)
        self._setlocale = module.setlocale

    def capture(self) -> str:
        return str(self._setlocale(locale.LC_ALL, None))

    def write(self, value: str) -> None:
        self._setlocale(locale.LC_ALL, value)

    def _changing(self, real: Callable[..., object]) -> Callable[..., object]:
        def change(category: int, locale: object = None, /) -> object:
            if locale is None:
                return real(category)
            return self.change(real, category, locale)

        return change


class TimeZone(Setting):
    """The time zone that `time.tzset` read from the variable TZ."""

    name = "time zone"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._tzset = time.tzset

    def capture(self) -> str | None:
        return os.environ.get("TZ")

    def original(self) -> str | None:
        value = _common_variables().get(b"TZ")
        return None if value is None else os.fsdecode(value)

    def write(self, value: str | None) -> None:
        if value is None:
            _unsetenv("TZ")
        else:
            _putenv("TZ", value)
        self._tzset()


class Variables(SharedParts):
    """The environment variables that C code and child processes see."""

    name = "variables"

    def replace_functions(self, patches: Patches) -> None:
        """Let ranks change them."""
        outside = self.exchange.outside

        def putenv(name: Any, value: Any, /) -> None:
            _putenv(name, value)
            if self.exchange.shown is not outside:
                key = os.fsencode(name)
                self.note(key, _common_variables().get(key), os.fsencode(value))

        def unsetenv(name: Any, /) -> None:
            _unsetenv(name)
            if self.exchange.shown is not outside:
                key = os.fsencode(name)
                self.note(key, _common_variables().get(key), None)

        patches.set(os, "putenv", like(_putenv, putenv))
        patches.set(os, "unsetenv", like(_unsetenv, unsetenv))

    def put(self, key: bytes, value: bytes | None) -> None:
        if value is None:
            _unsetenv(key)
        else:
            _putenv(key, value)


def _common_variables() -> dict[Any, Any]:
    """The variables of the caller of the run."""
    data: Any = vars(os.environ)["_data"]
    common: dict[Any, Any] = getattr(data, "common", data)
    return common


class Limits(SharedParts):
    """Limits of resources."""

    name = "limits"

    def replace_functions(self, patches: Patches, module: ModuleType) -> None:
        """Let ranks change them."""
        real, read = module.setrlimit, module.getrlimit
        self._set = real

        def setrlimit(resource: Any, limits: object, /) -> None:
            before = read(resource)
            real(resource, limits)
            if self.exchange.shown is not self.exchange.outside:
                self.note(int(resource), before, read(resource))

        patches.set(module, "setrlimit", like(real, setrlimit))

    def put(self, key: int, value: Any) -> None:
        with contextlib.suppress(OSError, ValueError):  # a hard limit can only go down
            self._set(key, value)


class SignalHandlers(SharedParts):
    """The handlers of signals; pysmpi's own look like the default ones to ranks."""

    name = "signals"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._signal, self._getsignal = signal.signal, signal.getsignal

    def replace_functions(self, patches: Patches) -> None:
        """Let ranks change them."""
        outside = self.exchange.outside
        real = self._signal

        def set_handler(signalnum: Any, handler: Any) -> object:
            if self.exchange.shown is outside:
                return real(signalnum, handler)
            before = self._getsignal(signalnum)
            seen = self.seen(signalnum)
            number = int(signalnum)
            common = self.shared.get(number, before)
            if handler == _usual(number) and _is_ours(common):
                handler = common  # replaced by pysmpi's handler
            real(signalnum, handler)
            self.note(number, before, self._getsignal(signalnum))
            return seen

        def getsignal(signalnum: Any) -> object:
            if self.exchange.shown is outside:
                return self._getsignal(signalnum)
            return self.seen(signalnum)

        patches.set(signal, "signal", like(real, set_handler))
        patches.set(signal, "getsignal", like(self._getsignal, getsignal))

    def seen(self, number: Any) -> object:
        """The handler that ranks see."""
        handler = self._getsignal(number)
        return _usual(int(number)) if _is_ours(handler) else handler

    def put(self, key: int, value: Any) -> None:
        if value is not None:  # None is a handler of C code, which cannot be restored
            with contextlib.suppress(ValueError):  # in another thread than the main one
                self._signal(key, value)


def _is_ours(handler: object) -> bool:
    return str(getattr(handler, "__module__", "")).startswith("pysmpi.")


def _usual(number: int) -> object:
    """Python's reaction to a signal without a handler."""
    return signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL


class Collecting(Setting):
    """Whether Python looks for reference cycles by itself."""

    name = "gc"

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._enable, self._disable = gc.enable, gc.disable

    def capture(self) -> bool:
        return gc.isenabled()

    def write(self, value: bool) -> None:
        (self._enable if value else self._disable)()


class MaxDigits(Accessed):
    """The longest number as a text. From Python 3.14 on, setting it copies `sys.flags` in C.

    `sys.flags` of a rank may be a tuple of pysmpi, which C code cannot copy.
    """

    def __init__(self, exchange: Exchange) -> None:
        get, put = sys.get_int_max_str_digits, sys.set_int_max_str_digits
        super().__init__(exchange, "digits", get, put)

    def write(self, value: Any) -> None:
        module: Any = sys
        flags = module.flags
        module.flags = getattr(flags, "base", flags)
        super().write(value)
        module.flags = flags  # the exchange has installed the flags of this rank

    def change(self, function: Callable[..., object], *args: object, **kwargs: object) -> object:
        module: Any = sys
        flags = module.flags
        base = module.flags = getattr(flags, "base", flags)
        try:
            return super().change(function, *args, **kwargs)
        finally:
            if module.flags is base:
                module.flags = flags
            elif flags is not base:
                module.flags = type(flags)(flags.changes)


def install(patches: Patches, exchange: Exchange) -> None:
    """Give every rank its own values of state that is changed by functions alone."""
    WorkingDirectory(exchange).replace(patches, os, "chdir", "fchdir")
    Umask(exchange).replace(patches, os, "umask")
    RecursionLimit(
        exchange, "recursion limit", sys.getrecursionlimit, sys.setrecursionlimit
    ).replace(patches, sys, "setrecursionlimit")
    Accessed(exchange, "switch interval", sys.getswitchinterval, sys.setswitchinterval).replace(
        patches, sys, "setswitchinterval"
    )
    if hasattr(sys, "set_int_max_str_digits"):
        MaxDigits(exchange).replace(patches, sys, "set_int_max_str_digits")
    if hasattr(sys, "setdlopenflags"):
        Accessed(exchange, "flags of dlopen", sys.getdlopenflags, sys.setdlopenflags).replace(
            patches, sys, "setdlopenflags"
        )
    Accessed(
        exchange,
        "depth of origins",
        sys.get_coroutine_origin_tracking_depth,
        sys.set_coroutine_origin_tracking_depth,
    ).replace(patches, sys, "set_coroutine_origin_tracking_depth")
    StackSize(exchange).replace_functions(patches)
    Collecting(exchange).replace(patches, gc, "enable", "disable")
    set_threshold = gc.set_threshold
    Accessed(
        exchange, "gc threshold", gc.get_threshold, lambda value: set_threshold(*value)
    ).replace(patches, gc, "set_threshold")
    Accessed(exchange, "gc debug", gc.get_debug, gc.set_debug).replace(patches, gc, "set_debug")
    if hasattr(os, "sched_setaffinity"):
        set_affinity = os.sched_setaffinity
        Accessed(
            exchange,
            "affinity",
            lambda: os.sched_getaffinity(0),
            lambda value: set_affinity(0, value),
        ).replace(patches, os, "sched_setaffinity")
    set_asyncgen_hooks = sys.set_asyncgen_hooks
    Accessed(
        exchange,
        "hooks of asynchronous generators",
        lambda: tuple(sys.get_asyncgen_hooks()),
        lambda value: set_asyncgen_hooks(*value),
    ).replace(patches, sys, "set_asyncgen_hooks")
    SignalHandlers(exchange).replace_functions(patches)
    if hasattr(signal, "pthread_sigmask"):
        mask = signal.pthread_sigmask
        Accessed(
            exchange,
            "signal mask",
            lambda: mask(signal.SIG_BLOCK, ()),
            lambda value: mask(signal.SIG_SETMASK, value),
        ).replace(patches, signal, "pthread_sigmask")
    low: Any = sys.modules["_locale"]
    place = Locale(exchange, low)
    place.replace(patches, low, "setlocale")
    patches.set(locale, "_setlocale", low.setlocale)
    if hasattr(time, "tzset"):
        TimeZone(exchange).replace(patches, time, "tzset")
    if hasattr(os, "unsetenv"):
        Variables(exchange).replace_functions(patches)


def patch_socket(patches: Patches, module: ModuleType, exchange: Exchange) -> None:
    """Give every rank its own default timeout of sockets."""
    timeout = Accessed(
        exchange, "socket timeout", module.getdefaulttimeout, module.setdefaulttimeout
    )
    timeout.replace(patches, module, "setdefaulttimeout")


def patch_resource(patches: Patches, module: ModuleType, exchange: Exchange) -> None:
    """Give every rank its own limits of resources."""
    Limits(exchange).replace_functions(patches, module)
