"""The machine on which a recording was made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.machine import Machine
from pysmpi.trace.model import MACHINE


def recorded_machine(name: str, facts: Mapping[str, object], ranks: int) -> Machine:
    """The machine that the recording in file `name` was made on, with places for some ranks."""
    try:
        return Machine(ranks, **machine_options(facts))
    except UsageError as error:
        raise UsageError(f"{name}: the machine of the recording: {error}") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{name}: expected options of pysmpi run for the machine: {error}"
        ) from None


def machine_options(facts: Mapping[str, object]) -> dict[str, Any]:
    """The options of the machine of a recording."""
    known = facts.get("machine")
    options = known if isinstance(known, dict) else {}
    return {name: options[name] for name in MACHINE if name in options}
