"""Text files of timelines, compressed if their name says so, the same from run to run."""

from __future__ import annotations

import gzip
import io
from typing import IO, TextIO, cast


class Output:
    """A text file for writing. Its bytes do not depend on the date or the file name."""

    def __init__(self, path: str, compressed: bool) -> None:
        self._file: IO[bytes] = open(path, "wb")
        raw: IO[bytes] = self._file
        if compressed:
            # A fast level: timelines are large, and repetitive enough for any.
            raw = cast("IO[bytes]", gzip.GzipFile("", "wb", 3, self._file, mtime=0))
        self.text: TextIO = io.TextIOWrapper(raw, "utf-8", newline="\n")
        self.write = self.text.write

    def close(self) -> None:
        """Write the remaining text and close the file; a second call does nothing."""
        if not self._file.closed:
            self.text.close()
            self._file.close()
