"""The registry of intra-node models.

A model is a function from a node and two cores to a `Channel`, which gives the price of messages
from the first core to the second. To add a model, write such a function under `@memory_model(name,
line)` in a file in `mechanisms/`, or in your own package, which is found through the entry point
group `pysmpi.memory_models`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pysmpi.memory.transfer.channel import Channel
from pysmpi.memory.transfer.room import Room
from pysmpi.platform.config import Settings
from pysmpi.plugins import Registry

# (room, slot of the sender, slot of the receiver, core of the sender, core of the receiver)
Builder = Callable[[Room, int, int, int, int], Channel]


@dataclass(frozen=True)
class MemoryModel:
    """A name, a description of one line, and a function from the options of a run to a builder.

    Without this function (`loopback`), the network model applies to messages inside a node.
    """

    name: str
    line: str
    prepare: Callable[[Settings], Builder] | None


MEMORY_MODELS: Registry[MemoryModel] = Registry(
    "model", "pysmpi.memory_models", "pysmpi.memory.transfer.mechanisms"
)


def memory_model(
    name: str, line: str
) -> Callable[[Callable[[Settings], Builder]], Callable[[Settings], Builder]]:
    """Register the function that makes channels under `name`."""

    def register(prepare: Callable[[Settings], Builder]) -> Callable[[Settings], Builder]:
        MEMORY_MODELS.add(MemoryModel(name, line, prepare))
        return prepare

    return register


def memory_models() -> dict[str, MemoryModel]:
    """All models, by name."""
    return MEMORY_MODELS.known()


def find_memory_model(name: str) -> MemoryModel:
    """The model called `name`; UsageError if there is none."""
    return MEMORY_MODELS.find(name, f"--memory-model {name}")
