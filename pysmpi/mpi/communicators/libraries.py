"""Communicators that belong to a library, whose programs do not free them."""

from __future__ import annotations

from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.groups.communicator import Communicator

OF_LIBRARIES: StateSlot[Communicator, bool] = StateSlot(Communicator, bool)
