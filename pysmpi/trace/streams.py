"""Text files of timelines, compressed if their suffix asks for it, the same from run to run."""

from __future__ import annotations

import gzip
from typing import IO, Final, cast

BLOCK: Final = 1 << 16  # characters that are written at once


class Output:
    """A text file for writing. Its bytes do not depend on the date or the file name.

    Text that is written together reaches the file together, so a killed run leaves whole lines.
    """

    def __init__(self, path: str, compressed: bool) -> None:
        self._file: IO[bytes] = open(path, "wb")
        self._packed: IO[bytes] = self._file
        if compressed:
            # A fast level: timelines are large, and repetitive enough for any.
            self._packed = cast("IO[bytes]", gzip.GzipFile("", "wb", 3, self._file, mtime=0))
        self._pieces: list[str] = []
        self._size = 0

    def write(self, text: str) -> None:
        """Write some text, now or with later text."""
        self._pieces.append(text)
        self._size += len(text)
        if self._size >= BLOCK:
            self._flush()

    def _flush(self) -> None:
        data = "".join(self._pieces).encode()
        self._pieces.clear()
        self._size = 0
        self._packed.write(data)
        if self._packed is self._file:
            self._file.flush()

    def close(self) -> None:
        """Write the remaining text and close the file; a second call does nothing."""
        if not self._file.closed:
            try:
                self._flush()
            finally:
                try:
                    self._packed.close()
                finally:
                    self._file.close()
