"""A simulated machine with placed ranks: the common part of all kinds of runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from pysmpi.collectives.selection import Selection
from pysmpi.collectives.tuning import Tuner
from pysmpi.kernel.engine import Engine
from pysmpi.kernel.plan import Transport
from pysmpi.memory.bandwidth import NodeTransport
from pysmpi.memory.lines.machine import HostLines
from pysmpi.memory.transfer.choice import over
from pysmpi.memory.transfer.described import Locate
from pysmpi.network.cards import CardTransport
from pysmpi.network.choice import DEFAULT as DEFAULT_MODEL
from pysmpi.network.choice import choose
from pysmpi.network.kinds.fluid import network_of, preset_name
from pysmpi.network.measured import STEP_OVERHEAD, MeasuredPreset
from pysmpi.network.measured import load as load_curves
from pysmpi.network.presets import SMPI
from pysmpi.network.presets import find as find_preset
from pysmpi.network.rails import over_rails
from pysmpi.platform.config import canonical
from pysmpi.platform.loader import Described, load, load_default
from pysmpi.platform.model import Host, Platform
from pysmpi.platform.placement import Slot, place

# The default selectors: that of smpirun on SimGrid's files, ompi on others.
SELECTOR = "ompi5"
SMPIRUN_SELECTOR = "default"
# Speed of cores without a speed in the platform (flop/s): a unit for shared cores.
UNKNOWN_SPEED = 1e9
# The memory model without one: messages inside a node take its loopback alone.
LOOPBACK = "loopback"


class Machine:
    """The platform, the network model, the places of `nprocs` ranks and the selection.

    The arguments are the command line's options by their names. Raises UsageError for an option
    or a file that is wrong.
    """

    def __init__(
        self,
        nprocs: int,
        platform: Described | Platform | None = None,
        hostfile: str | Path | None = None,
        map_by: str | None = None,
        rank_by: str | None = None,
        model: str | None = None,
        memory_model: str | None = None,
        memory_bound: str | float | None = None,
        selector: str | None = None,
        coll: Mapping[str, str] | None = None,
        cfg: Mapping[str, str] | None = None,
    ) -> None:
        options = {canonical(name, f"--cfg {name}"): value for name, value in (cfg or {}).items()}
        if memory_model is not None:
            options["memory/model"] = memory_model
        if memory_bound is not None:
            options["memory/bound"] = str(memory_bound)
        if platform is None:
            platform = load_default(options)
        elif not isinstance(platform, Platform):
            platform = load(platform, options)
        self.platform = platform
        self.model, self.settings = choose(platform, options, model)
        self.slots: list[Slot] = place(platform, nprocs, hostfile, map_by, rank_by)
        selection = Selection.from_options(
            self.settings.said,
            selector,
            coll or {},
            SMPIRUN_SELECTOR if platform.simgrid else SELECTOR,
        )
        if any(slot.host.node is not None for slot in self.slots):
            selection = selection.on_lines(HostLines(self.slots))
        if self._measured() is not None:
            step = self.settings.number("network/step-overhead", STEP_OVERHEAD)
            selection = selection.with_step(step)
        if selection.automatic:
            selection = selection.tried_on(Tuner(self._fresh, len(self.slots), self.equip))
        self.selection = selection

    def transport(
        self, hosts: Sequence[Host], places: Sequence[Slot], locate: Locate | None = None
    ) -> Transport:
        """The transport of messages between `places`, which are on `hosts`.

        Both lists may be extended during the run. `locate` returns the place of a payload in
        memory.
        """
        network = over_rails(
            self.model.build(self.platform, hosts, self.settings),
            self.platform, places, self.settings, self.model.name,
        )  # fmt: skip
        messages = self.shares_memory()
        measured = self._measured()
        if measured is not None and measured.pairs is not None:
            _, bandwidth = network_of(self.platform)
            network = CardTransport(network, places, partial(measured.card, bandwidth=bandwidth))
        if messages or self.settings.number("memory/bound") > 0.0:
            own_costs = measured is not None
            network = NodeTransport(network, places, self.settings, own_costs, messages)
        return over(network, places, self.settings, locate)

    def equip(self, engine: Engine) -> None:
        """Give an engine the bandwidths at which a core combines and copies bytes in collectives.

        With a measured preset these are those of its memory: a reduction loads two bytes and stores
        one, a copy loads one and stores one. Otherwise they take no time, as in SMPI.
        """
        if self._measured() is not None and self.shares_memory():
            core = self.settings.number("memory/core-bandwidth")
            engine.reduce_rate, engine.copy_rate = core / 3.0, core / 2.0

    def _measured(self) -> MeasuredPreset | None:
        """The curves of a measured preset; None under others."""
        name = self.preset()
        preset = None if name is None else find_preset(name)
        return None if preset is None or not preset.measured else load_curves(preset.measured)

    def shares_memory(self) -> bool:
        """Whether messages inside nodes share the memory of their node."""
        if self.settings.value("memory/bandwidth") == math.inf:
            return False
        return self.preset() not in (None, SMPI) and self.settings.text("memory/model") != LOOPBACK

    def preset(self) -> str | None:
        """The name of the factors of model hybrid; None under other models."""
        if self.model.name != DEFAULT_MODEL:
            return None
        return preset_name(self.platform, self.settings)

    def _fresh(self) -> Transport:
        """The network between the ranks' places, unused."""
        return self.transport([slot.host for slot in self.slots], self.slots)
