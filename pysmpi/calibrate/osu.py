"""A machine from the output of the OSU micro-benchmarks between two of its nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pysmpi.api import run
from pysmpi.errors import UsageError
from pysmpi.io.reading import read_bytes
from pysmpi.network.measured import MeasuredPreset, OsuCurve
from pysmpi.platform.units import format_bandwidth, format_time

LATENCY, BANDWIDTH, RATE = "osu_latency", "osu_bw", "osu_mbw_mr"
# The title of a program's output, the program, and the unit of its column.
_TITLES = (
    (r"Latency Test", LATENCY, 1e-6),
    (r"Bandwidth Test", BANDWIDTH, 1e6),
    (r"Multiple Bandwidth / Message Rate Test", RATE, 1.0),
    (r"Bi-Directional Bandwidth Test", "osu_bibw", 1e6),
    (r"Allreduce Latency Test", "osu_allreduce", 1e-6),
    (r"All-to-All Personalized Exchange Latency Test", "osu_alltoall", 1e-6),
)
_TITLE = re.compile(
    rf"#\s*OSU MPI(?:-\w+)? (?:{'|'.join(f'({title})' for title, _, _ in _TITLES)})", re.IGNORECASE
)
EAGER = 65536  # bytes: the rendezvous of machines whose times show no step
STEP = 0.15  # relative step of the one-way time from a size to its double that shows a rendezvous


def read(paths: Sequence[str]) -> tuple[dict[int, float], dict[int, float]]:
    """One-way times (s) and bandwidths (bytes/s) by size in files that OSU's programs printed.

    A file may hold the output of several programs. Raises UsageError for other files.
    """
    printed: dict[str, dict[int, float]] = {}
    for path in paths:
        read_tables(path, read_bytes(path).decode("utf-8", "replace"), printed)
    rates = {size: size * rate for size, rate in printed.get(RATE, {}).items()}
    results = {LATENCY: printed.get(LATENCY, {}), BANDWIDTH: rates | printed.get(BANDWIDTH, {})}
    for program, values in results.items():
        if len(values) < 2:
            raise UsageError(
                f"{', '.join(paths)}: expected the output of {program}, a line for each size, got "
                f"{len(values)} lines"
            )
    return results[LATENCY], results[BANDWIDTH]


def read_tables(path: str, text: str, results: dict[str, dict[int, float]]) -> None:
    """Add what OSU's programs printed, by program and size: s, bytes/s, messages/s of osu_mbw_mr.

    `path` is for messages. Output of other programs is passed over. Raises UsageError for a line
    without a figure.
    """
    values: dict[int, float] | None = None
    program, scale = "", 1.0
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words:
            continue
        if words[0].startswith("#"):
            found = _TITLE.match(line.strip())
            if found is not None:
                _, program, scale = _TITLES[(found.lastindex or 1) - 1]
                values = results.setdefault(program, {})
            elif "OSU" in line:
                values = None  # another program
            continue
        if values is None or not words[0].isdigit() or len(words) < 2:
            continue
        try:
            value = float(words[1]) * scale
            if program == RATE:  # without a column of rates, from that of MB/s
                value = float(words[2]) if len(words) > 2 else value * 1e6 / int(words[0])
        except (ValueError, ZeroDivisionError):
            value = 0.0
        if not 0.0 < value < 1e18:
            raise UsageError(f"{path}:{number}: expected bytes and a number above 0, got {line!r}")
        if int(words[0]) > 0:
            values[int(words[0])] = value


def rendezvous(times: Mapping[int, float], bandwidth: float) -> int:
    """The size (bytes) from which on messages seem to wait for their receive."""
    best, largest = EAGER, STEP
    sizes = sorted(times)
    for small, size in zip(sizes, sizes[1:], strict=False):
        if 1024 <= small < 1 << 19:
            step = times[size] - times[small] - (size - small) / bandwidth
            if step / times[small] > largest:
                best, largest = size, step / times[small]
    return best


def machine(
    name: str, times: Mapping[int, float], rates: Mapping[int, float],
    eager: int | None = None, nodes: int = 2, cores: int = 1, sources: Sequence[str] = (),
    errors: str | None = None,
) -> str:  # fmt: skip
    """The text of the platform file of a machine with these one-way times and bandwidths.

    `errors` is the value of `network/error`.
    """
    latency, bandwidth = times[min(times)], rates[max(rates)]
    below = rendezvous(times, bandwidth) if eager is None else eager
    curves = MeasuredPreset(OsuCurve(times, name), OsuCurve(rates, name), below)
    lines = [f"name: {name}"]
    if sources:
        lines += ["sources:", *(f"  - {_quoted(source)}" for source in sources)]
    lines += [
        "# Overheads and factors by size, as the OSU benchmarks have measured them. Messages below",
        f"# {below:,} bytes are sent eagerly.",
        "config:",
        f"  smpi/async-small-thresh: {below}",
        f"  smpi/send-is-detached-thresh: {below}",
        *([] if errors is None else [f"  network/error: {errors}"]),
        *(f'  {key}: "{value}"' for key, value in curves.options(latency, bandwidth).items()),
        "clusters:",
        f"  - name: {name}",
        f"    hosts: {name}-[0-{nodes - 1}]",
        f"    cores: {cores}",
        f"    network: {{bandwidth: {format_bandwidth(bandwidth)}, "
        f"latency: {format_time(latency)}}}",
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def predicted(path: str, sizes: Sequence[int]) -> dict[int, tuple[float, float]]:
    """The figures of the two OSU programs on the machine of a file: (s, bytes/s) by size."""
    result = run(
        _program, 2, args=(list(sizes),), platform=path, map_by="node", compute="none",
        cfg={"smpi/wtime": "0"},
    )  # fmt: skip
    found: dict[int, tuple[float, float]] = result.returns[0]
    return found


def _program(sizes: Sequence[int]) -> dict[int, tuple[float, float]]:
    """The loops of osu_latency and osu_bw, with few repeats: simulated times do not vary."""
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    peer, window = 1 - comm.rank, 64
    acknowledgement = numpy.zeros(4, "b")
    results = {}
    for size in sizes:
        data = numpy.zeros(size, "b")
        times = []
        for count in (1, window):
            # The first turn warms up.
            for _ in range(2):
                begin = MPI.Wtime()
                if comm.rank == 0:
                    if count == 1:
                        comm.Send(data, peer)
                    else:
                        MPI.Request.Waitall([comm.Isend(data, peer) for _ in range(count)])
                    comm.Recv(data if count == 1 else acknowledgement, peer)
                else:
                    if count == 1:
                        comm.Recv(data, peer)
                    else:
                        MPI.Request.Waitall([comm.Irecv(data, peer) for _ in range(count)])
                    comm.Send(data if count == 1 else acknowledgement, peer)
            times.append(MPI.Wtime() - begin)
        results[size] = times[0] / 2, window * size / times[1]
    return results
