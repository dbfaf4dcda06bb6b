"""The former name of `pysmpi.coherence.study`, which warns."""

from __future__ import annotations

import warnings
from importlib import import_module


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    message = "pysmpi.memory.primitives.study has become pysmpi.coherence.study"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return getattr(import_module("pysmpi.coherence.study"), name)
