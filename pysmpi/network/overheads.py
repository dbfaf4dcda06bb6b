"""The overheads of messages on the processors of both ends, as far as hosts define them."""

from __future__ import annotations

from collections.abc import Sequence

from pysmpi.platform.config import Settings
from pysmpi.platform.model import Host
from pysmpi.platform.piecewise import Piecewise, parse


class Overheads:
    """One overhead of every host: from its properties, or the common one."""

    def __init__(self, settings: Settings, name: str, hosts: Sequence[Host]) -> None:
        self.name = name
        self.common: Piecewise = settings.value(name)
        self.own: dict[int, Piecewise] = {}
        for host in hosts:
            self.of(host)

    def of(self, host: Host) -> Piecewise:
        """The overhead of a host; UsageError if its property is invalid."""
        text = host.properties.get(self.name)
        if text is None:
            return self.common
        result = self.own.get(host.index)
        if result is None:
            result = self.own[host.index] = parse(text, f"{host.name}: {self.name}")
        return result
