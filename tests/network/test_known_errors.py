"""The known errors of networks: of checked presets, of others, of files that say them."""

from __future__ import annotations

from math import hypot, sqrt

import pytest

from pysmpi.errors import UsageError
from pysmpi.network.errors import NORMAL, OTHER_PATTERNS, network_errors, written
from pysmpi.network.measured import load
from pysmpi.network.presets import HYBRID
from pysmpi.platform.config import Settings


def mean_square(values: list[float]) -> float:
    return sqrt(sum(value * value for value in values) / len(values))


def test_a_checked_preset_has_the_errors_of_its_checks() -> None:
    found = network_errors("infiniband-edr", Settings())
    assert found is not None
    checks = load("infiniband-edr").checks
    latency = mean_square([check.latency for check in checks if check.latency is not None])
    assert found.latency == pytest.approx(hypot(NORMAL * 0.01 * latency, OTHER_PATTERNS[0]))
    # With its own message rate, the bandwidth of a machine is better known.
    rated = network_errors("infiniband-edr", Settings({"network/message-rate": "5e6"}))
    assert rated is not None
    assert rated.overhead < found.overhead


def test_a_preset_without_a_check_has_those_of_all() -> None:
    unchecked = [name for name, one in HYBRID.items() if one.measured and not load(name).checks]
    assert unchecked
    for name in unchecked:
        found = network_errors(name, Settings())
        assert found is not None
        assert found.source == f"checks of other presets, {name} has none"
        assert min(found.latency, found.overhead, found.bandwidth) > 0.0


@pytest.mark.parametrize("name", ["neutral", "smpi", "ethernet", None])
def test_other_networks_have_no_known_error(name: str | None) -> None:
    assert network_errors(name, Settings()) is None


def test_a_file_can_say_its_errors() -> None:
    text = written([0.04, 0.08, 0.02])
    found = network_errors(None, Settings({"network/error": text}))
    assert found is not None
    assert found.latency == pytest.approx(hypot(NORMAL * 0.04, OTHER_PATTERNS[0]), rel=0.01)
    assert found.bandwidth == pytest.approx(hypot(NORMAL * 0.02, OTHER_PATTERNS[2]), rel=0.01)


@pytest.mark.parametrize("text", ["0.1", "0.1;0.1", "0.1;0.1;x", "-1;0;0", "nan;0;0"])
def test_wrong_errors_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"network/error: expected three numbers"):
        Settings({"network/error": text})
