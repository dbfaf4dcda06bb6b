"""The tracing and profiling functions of fibers, which are exchanged at switches.

In a run with such functions, each switch passes through here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import greenlet

from pysmpi.isolation.kinds.greenlet_switches import GreenletSwitches
from pysmpi.patching.patches import Patches
from pysmpi.python import facts

# The address of the function in C, 0 for none, and its argument: the function in Python, or a tool.
_Hook = tuple[int, Any]
_Pair = tuple[_Hook, _Hook]  # for profiles, and for traces
_Boxed = Any  # a pair that compiled code passes on as it is
_NONE: Final[_Boxed] = ((0, None), (0, None))

_Read = Callable[[], _Pair]
_Put = Callable[[_Hook, _Hook], object]


def _in_python(function: object) -> _Hook:
    return (1, function) if callable(function) else (0, None)


def _read_python() -> _Pair:
    """The functions in Python that are set. Where there is no C extension, tools in C stay set."""
    return _in_python(sys.getprofile()), _in_python(sys.gettrace())


def _put_python(profile: _Hook, trace: _Hook) -> None:
    before = _read_python()
    if profile != before[0]:
        sys.setprofile(profile[1])
    if trace != before[1]:
        sys.settrace(trace[1])


try:
    if not facts.holds("trace-functions"):
        raise ImportError
    from pysmpi.isolation.kinds import trace_hooks
except ImportError:  # pysmpi was installed without a C compiler
    _read: _Read = _read_python
    _put: _Put = _put_python
else:
    _read, _put = trace_hooks.get, trace_hooks.put


class Hooks:
    """The hooks of all fibers; `follow` begins to exchange them."""

    def __init__(self, patches: Patches) -> None:
        self.switches = GreenletSwitches(patches)
        self.following = False
        self.kept: dict[int, _Boxed] = {}  # of suspended greenlets that have some

    def follow(self) -> None:
        """Give each fiber its own hooks from here on."""
        if not self.following:
            self.following = True
            self.switches.follow(self._switched)

    def _switched(self, origin: greenlet.greenlet, target: greenlet.greenlet) -> None:
        hooks: _Boxed = _read()
        if hooks == _NONE or origin.dead:
            self.kept.pop(id(origin), None)
        else:
            self.kept[id(origin)] = hooks
        wanted: _Boxed = self.kept.get(id(target), _NONE)
        if wanted != hooks:
            _put(*wanted)
