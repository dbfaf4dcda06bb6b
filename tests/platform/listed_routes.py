"""Routes as SimGrid lists them, by `tests/data/routes/routes.cpp` or in its recorded output."""

from __future__ import annotations

import pytest

from pysmpi.platform.model import Platform


def assert_route(
    platform: Platform, source: str, destination: str, latency: str, links: list[str]
) -> None:
    """A route has these links, as `NAME/BANDWIDTH/SHARED`, and this latency."""
    route = platform.route(platform.host(source), platform.host(destination))
    found = [
        f"{link.name}/{link.bandwidth:.12g}/{int(link.sharing == 'shared')}"
        for link in route.links
        if link.index >= 0  # SimGrid does not list distances
    ]
    assert found == links, f"{source} to {destination}"
    assert route.latency == pytest.approx(float(latency), rel=1e-9, abs=1e-15)
