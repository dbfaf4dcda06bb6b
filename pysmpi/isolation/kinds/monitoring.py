"""The tools of `sys.monitoring` (Python 3.12 and later) in ranks.

The interpreter has one table of tools for all its code. A tool that a rank registers, such as its
`cProfile`, belongs to this rank: while another rank runs, its callbacks are removed. A tool from
outside of the ranks sees all of them.
"""

from __future__ import annotations

import sys
from types import ModuleType

from pysmpi.isolation.kinds.greenlet_switches import GreenletSwitches
from pysmpi.mpi.base import ranks
from pysmpi.patching.lookalike import like
from pysmpi.patching.patches import Patches
from pysmpi.python.records import record

# Events at places that a callback may switch off, for all who use the number of its tool.
_AT_PLACES = ("LINE", "INSTRUCTION", "JUMP", "BRANCH")


@record
class _Tool:
    """A tool of a rank; `events` and `callbacks` are those at the last switch to another rank."""

    name: str
    events: int
    callbacks: dict[int, object]


def install(patches: Patches, switches: GreenletSwitches) -> bool:
    """Give each rank its own tools until the patches are undone.

    Returns whether the interpreter has such tools.
    """
    module = getattr(sys, "monitoring", None)
    if not isinstance(module, ModuleType):
        return False
    _Monitoring(patches, switches, module)
    return True


class _Monitoring:
    def __init__(self, patches: Patches, switches: GreenletSwitches, module: ModuleType) -> None:
        self.patches = patches
        self.switches = switches
        self.module = module
        events = vars(module.events)
        self.events = [events[name] for name in sorted(events) if events[name]]
        self.at_places = sum(events[name] for name in _AT_PLACES if name in events)
        self.use, self.free = module.use_tool_id, module.free_tool_id
        self.register = module.register_callback
        self.owned: dict[ranks.Rank, dict[int, _Tool]] = {}  # by number
        self.latest: dict[int, ranks.Rank] = {}  # the rank that has used a number last
        self.shown: ranks.Rank = ranks.outside
        self.following = False
        patches.set(module, "use_tool_id", like(self.use, self.use_tool_id))
        patches.set(module, "free_tool_id", like(self.free, self.free_tool_id))
        real = module.get_tool

        def get_tool(tool_id: int, /) -> str | None:
            own = self.owned.get(ranks.current(), {}).get(tool_id)
            if own is not None or tool_id in self.latest:
                return None if own is None else own.name
            name: str | None = real(tool_id)
            return name

        patches.set(module, "get_tool", like(real, get_tool))

    def use_tool_id(self, tool_id: int, name: str, /) -> None:
        """In place of `sys.monitoring.use_tool_id`."""
        rank = ranks.current()
        if rank.program is None:
            self.use(tool_id, name)
            return
        own = self.owned.get(rank, {})
        if tool_id in self.latest and tool_id not in own:
            self.free(tool_id)  # another rank's, which does not run
            del self.latest[tool_id]
        self.use(tool_id, name)
        self._follow(rank)
        self.owned.setdefault(rank, {})[tool_id] = _Tool(name, 0, {})
        self.latest[tool_id] = rank

    def free_tool_id(self, tool_id: int, /) -> None:
        """In place of `sys.monitoring.free_tool_id`."""
        own = self.owned.get(ranks.current(), {})
        if own.pop(tool_id, None) is not None:
            self._strip(tool_id)
        elif tool_id in self.latest:
            return  # another rank's
        self.free(tool_id)
        if not any(tool_id in tools for tools in self.owned.values()):
            self.latest.pop(tool_id, None)

    def _follow(self, rank: ranks.Rank) -> None:
        """Exchange the tools at switches from here on; `rank` is running."""
        if not self.following:
            self.following = True
            self.shown = rank
            self.switches.follow(self._switched)
            self.patches.call_back(self._close)

    def _switched(self, origin: object, target: object) -> None:
        # greenlet calls this without events of tools.
        rank = ranks.current()
        if rank is not self.shown:
            for tool_id, tool in self.owned.get(self.shown, {}).items():
                tool.events = self.module.get_events(tool_id)
                tool.callbacks = self._strip(tool_id)
            self.shown = rank
            for tool_id, tool in self.owned.get(rank, {}).items():
                self._restore(rank, tool_id, tool)

    def _strip(self, tool_id: int) -> dict[int, object]:
        """Remove the callbacks of a tool. Its events stay, as to change them takes long."""
        callbacks = {event: self.register(tool_id, event, None) for event in self.events}
        return {event: callback for event, callback in callbacks.items() if callback is not None}

    def _restore(self, rank: ranks.Rank, tool_id: int, tool: _Tool) -> None:
        module = self.module
        if self.latest.get(tool_id) is not rank:
            self.free(tool_id)
            self.use(tool_id, tool.name)
            self.latest[tool_id] = rank
            if any(event & self.at_places for event in tool.callbacks):
                module.restart_events()
        if module.get_events(tool_id) != tool.events:
            module.set_events(tool_id, tool.events)
        for event, callback in tool.callbacks.items():
            self.register(tool_id, event, callback)

    def _close(self) -> None:
        for tool_id in self.latest:
            self._strip(tool_id)
            self.module.set_events(tool_id, 0)
            self.free(tool_id)
