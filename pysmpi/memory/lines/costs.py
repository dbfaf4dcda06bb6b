"""The costs of a node's cache lines."""

from __future__ import annotations

from pysmpi.python.records import record


@record(frozen=True)
class Reads:
    """Seconds to read a line that a cache holds modified, exclusive or shared."""

    modified: float
    exclusive: float
    shared: float


@record(frozen=True)
class MultiLine:
    """T_N = o N + q - p / N seconds for a message of N lines (equation 2).

    `per_line` is o, the fetch of one more line when prefetching has set in; `startup` is q;
    `saved` is p, the part of the start that few lines spare.
    """

    per_line: float
    startup: float
    saved: float

    def seconds(self, lines: int) -> float:
        """T_N for N >= 1 lines."""
        if lines < 1:
            raise ValueError(f"lines: expected at least 1, got {lines}")
        return self.per_line * lines + self.startup - self.saved / lines


@record(frozen=True)
class LineCosts:
    """The costs of reading lines in one node, in seconds.

    `local` and `remote` are the costs of reading a line in the own cache and in another core's
    cache, `invalid` of a line in no cache. `contention` is c, the additional time for each further
    core that reads the same line at the same time. `lines_exclusive` and `lines_invalid` are the
    transfer functions of messages of several lines, for send and receive buffers in that state.
    `line` is in bytes.
    """

    local: Reads
    remote: Reads
    invalid: float
    contention: float
    lines_exclusive: MultiLine | None = None
    lines_invalid: MultiLine | None = None
    line: int = 64

    # The simplified model (table 2c) has one cost for each place, that of exclusive lines.

    @property
    def R_L(self) -> float:
        """Seconds of a read in the own cache."""
        return self.local.exclusive

    @property
    def R_R(self) -> float:
        """Seconds of a read from another core's cache."""
        return self.remote.exclusive

    @property
    def R_I(self) -> float:
        """Seconds of a read of a line that is in no cache."""
        return self.invalid

    def read(self, place: str, state: str) -> float:
        """R of a line by place ("local", "remote") and state of the full model (table 2b)."""
        if state == "invalid":
            return self.invalid
        reads = self.local if place == "local" else self.remote
        result: float = getattr(reads, state)
        return result

    def contended(self, readers: int) -> float:
        """T_C: seconds until each of several readers has copied one line (equation 3)."""
        return self.R_L + self.R_R + self.contention * (readers - 1)

    def transfer(self, lines: int, state: str = "exclusive") -> float:
        """T_N of a message of several lines.

        If there is no fit for the state: one copied line, and each further line from the other
        cache (or from memory).
        """
        fitted = self._fitted(state)
        if fitted is not None:
            return fitted.seconds(lines)
        source = self.invalid if state == "invalid" else self.R_L
        return source + 2 * self.R_R + (lines - 1) * self.per_line(state)

    def per_line(self, state: str = "exclusive") -> float:
        """o: seconds that one more line of a message costs."""
        fitted = self._fitted(state)
        if fitted is not None:
            return fitted.per_line
        return self.invalid if state == "invalid" else self.R_R

    def _fitted(self, state: str) -> MultiLine | None:
        return self.lines_invalid if state == "invalid" else self.lines_exclusive

    def lines(self, nbytes: int) -> int:
        """Lines of a buffer that begins with a line; at least one."""
        return max(1, -(-nbytes // self.line))
