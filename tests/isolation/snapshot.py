"""The state of a process that a run could change, as flat data that can be compared.

`take()` gives a dictionary from a name, such as `module json.encoder: JSONEncoder.default`, to its
value: plain values by their text, other objects by their identity. The snapshot keeps these objects
alive, so that no identity is used twice. `changes(before, after)` lists the differences.
"""

from __future__ import annotations

import atexit
import contextvars
import copyreg
import decimal
import faulthandler
import gc
import locale
import logging
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
import warnings
import weakref
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

PLAIN = (str, bytes, int, float, complex, bool, type(None))
# Caches of Python's own, which any code in any process changes.
CACHES = {
    ("sys", "path_importer_cache"), ("sys", "last_exc"), ("sys", "last_type"),
    ("sys", "last_value"), ("sys", "last_traceback"), ("re", "_cache"), ("re", "_cache2"),
    ("linecache", "cache"), ("builtins", "_"), ("threading", "_dangling"),
    ("functools", "_cache_token"), ("typing", "_cleanups"), ("abc", "_invalidation_counter"),
    ("weakref", "_registry"),
}  # fmt: skip


class Snapshot(dict[str, Any]):
    """Values by name; `kept` are the objects behind the identities."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Any] = []

    def note(self, name: str, value: Any) -> None:
        """Note one thing: a plain value as it is, an object by its identity."""
        if type(value) in PLAIN:
            self[name] = repr(value)
        else:
            self.kept.append(value)
            self[name] = f"{type(value).__qualname__} at {id(value):#x}"


def take() -> Snapshot:
    """The present state."""
    found = Snapshot()
    _settings(found)
    _state(found)
    _modules(found)
    return found


def changes(before: Snapshot, after: Snapshot) -> list[str]:
    """One line for each thing that has changed."""
    lines = []
    for name in {**before, **after}:
        old, new = before.get(name, "nothing"), after.get(name, "nothing")
        if old != new:
            lines.append(f"{name}: {old[:200]} -> {new[:200]}")
    return lines


def _settings(found: Snapshot) -> None:
    """The state that the operating system and the interpreter keep."""
    digits = repr(decimal.getcontext())  # the first look makes a context variable
    mask = os.umask(0o22)
    os.umask(mask)
    plain = {
        "umask": oct(mask),
        "working directory": os.getcwd(),
        "environment": dict(os.environ),
        "C's environment": sorted(subprocess.check_output(["env", "-0"], timeout=100).split(b"\0")),
        "descriptors": {name: _target(name) for name in sorted(os.listdir("/proc/self/fd"))},
        "descriptors that children get": sorted(
            name for name in os.listdir("/proc/self/fd") if _inheritable(name)
        ),
        "tasks": len(os.listdir("/proc/self/task")),
        "threads": threading.enumerate(),
        "children": Path("/proc/self/task", str(os.getpid()), "children").read_text(),
        "signal mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "wakeup descriptor": signal.set_wakeup_fd(-1),
        "timers": [
            signal.getitimer(kind)
            for kind in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
        ],
        "limits": {
            name: resource.getrlimit(getattr(resource, name))
            for name in dir(resource)
            if name.startswith("RLIMIT_")
        },
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "locale": locale.setlocale(locale.LC_ALL),
        "time zone": (time.tzname, time.timezone, time.daylight, time.localtime(0)[:6]),
        "gc": (gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.get_freeze_count()),
        "recursion limit": sys.getrecursionlimit(),
        "switch interval": sys.getswitchinterval(),
        "digits of integers": sys.get_int_max_str_digits(),
        "socket timeout": socket.getdefaulttimeout(),
        "fault handler": faulthandler.is_enabled(),
        "tracemalloc": tracemalloc.is_tracing(),
        "asynchronous generators": repr(sys.get_asyncgen_hooks()),
        "tracing": (sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile()),
        "functions at exit": atexit._ncallbacks(),
        "finalizers": len(weakref.finalize._registry),
        "context variables": sorted(map(repr, contextvars.copy_context())),
        "decimal context": digits,
        "flags": repr(sys.flags),
    }
    signal.set_wakeup_fd(plain["wakeup descriptor"])
    for name, value in plain.items():
        found[name] = repr(value)
    for number in sorted(signal.valid_signals()):
        found.note(f"handler of signal {int(number)}", signal.getsignal(number))
    for index, call in enumerate(gc.callbacks):
        found.note(f"gc callback {index}", call)


def _target(descriptor: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return "the listing itself"


def _inheritable(descriptor: str) -> bool:
    try:
        return os.get_inheritable(int(descriptor))
    except OSError:
        return False


def _state(found: Snapshot) -> None:
    """The state that modules keep behind functions."""
    found["random"] = repr(random.getstate())
    found["numpy.random"] = repr([np.asarray(part).tolist() for part in np.random.get_state()])
    found["numpy's errors"] = repr((np.geterr(), np.geterrcall(), np.getbufsize()))
    found["numpy's printing"] = repr(np.get_printoptions())
    found["warning filters"] = repr(warnings.filters)
    found["temporary directory"] = repr(tempfile.tempdir)
    found["copyreg"] = repr(sorted(map(repr, copyreg.dispatch_table)))
    loggers: list[Any] = [logging.getLogger(), *logging.root.manager.loggerDict.values()]
    for logger in loggers:
        if isinstance(logger, logging.Logger):
            state = {name: _part(value) for name, value in vars(logger).items() if name != "_cache"}
            found[f"logger {logger.name}"] = repr(state)
    found["logging"] = repr((logging.root.manager.disable, logging._nameToLevel))
    for stream in ("stdin", "stdout", "stderr"):
        attributes = getattr(getattr(sys, stream), "__dict__", {})
        found[f"sys.{stream}"] = repr(sorted(attributes))


def _modules(found: Snapshot) -> None:
    """The modules that are loaded, their names, their containers and their classes."""
    for name, module in list(sys.modules.items()):
        if name in ("__main__", "__mp_main__", __name__):
            continue
        found.note(f"module {name}", module)
        if not isinstance(module, ModuleType):
            continue
        for entry, value in list(vars(module).items()):
            if (name, entry) in CACHES:
                continue
            where = f"module {name}: {entry}"
            found.note(where, value)
            if type(value) in (list, dict, set) and entry != "__builtins__":
                if name != "sys" or entry != "modules":
                    found[f"{where} (entries)"] = _part(value)
            if isinstance(value, type) and value.__module__ == name:
                _class(found, where, value)


def _class(found: Snapshot, where: str, kind: type) -> None:
    for entry, value in list(vars(kind).items()):
        if entry in ("__doc__", "__weakref__", "__dict__", "_abc_impl", "__static_attributes__"):
            continue
        if isinstance(value, (FunctionType, BuiltinFunctionType, type, property, *PLAIN)):
            found.note(f"{where}.{entry}", value)


def _part(value: Any) -> str:
    """A container, by the texts or identities of its items."""
    if isinstance(value, dict):
        return repr({_brief(key): _brief(held) for key, held in list(value.items())})
    if isinstance(value, (list, tuple)):
        return repr([_brief(held) for held in value])
    if isinstance(value, (set, frozenset)):
        return repr(sorted(map(_brief, value)))
    return _brief(value)


def _brief(value: Any) -> str:
    return repr(value) if type(value) in PLAIN else f"{type(value).__qualname__} {id(value):#x}"
