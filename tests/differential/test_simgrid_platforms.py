"""SimGrid's own examples of platforms: each is read, or refused with its reason.

They are SimGrid's and not copied here: PYSMPI_SIMGRID names a clone of
https://framagit.org/simgrid/simgrid.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pysmpi.errors import UsageError
from pysmpi.platform import load

CLONE = os.environ.get("PYSMPI_SIMGRID")
EXAMPLES = Path(CLONE or ".") / "examples" / "platforms"

pytestmark = pytest.mark.skipif(
    CLONE is None, reason="PYSMPI_SIMGRID does not name a clone of SimGrid"
)

REFUSED = {
    "wifi": 'zones of kind "Wifi" are not supported: there is no model of a radio channel',
    "wifi_energy": 'zones of kind "Wifi" are not supported: there is no model of a radio channel',
    "wifi_large_cell": 'zones of kind "Wifi" are not supported: there is no model of a radio chan',
    "wifi_ns3": 'zones of kind "WIFI" are not supported: there is no model of a radio channel',
}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.xml")), ids=lambda path: path.stem)
def test_every_example_is_read_or_refused_with_its_reason(path):
    reason = REFUSED.get(path.stem)
    if reason is None:
        assert load(path).hosts
        return
    with pytest.raises(UsageError) as refused:
        load(path)
    assert reason in str(refused.value)
    assert str(path) in str(refused.value)
