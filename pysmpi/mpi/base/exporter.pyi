"""The base of classes that export a buffer; `exporter.c` says why it is in C."""

from typing import Any

class Exporter:
    """A class whose instances export the buffer of their attribute `_exporter`.

    None is an empty buffer without an owner.
    """

    @property
    def _exporter(self) -> Any: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
