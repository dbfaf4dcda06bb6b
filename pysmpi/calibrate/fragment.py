"""The measurements as a platform file with one computer, for `pysmpi run --platform FILE`."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path

from pysmpi.calibrate.memory import Figure, Measured

HOW = """\
Measured by pysmpi calibrate memory on {machine}, {date}, load {load}.
Throughputs: memchr (L..), memset (S..) and memmove (overlap) of {libc} on shared pages of {page} B,
one core pinned beside another; latencies: a chain of pointers followed by tfind, one line a step,
so that those of hits (LH.) contain the comparison and are upper bounds. Lower quartile of
the rounds, less the time of the same call on nothing. SHS is a store to a line that another core
has read. Contention takes three cores and is not measured; distances are those that Linux tells.
{control}
"""
CONTROLLED = """\
SNT (_mm_stream_si128) is a store past the caches to lines that another core has read, with the
fence after it; FHM and FHS (_mm_clflush) flush lines that are modified or shared.\
"""
UNCONTROLLED = "Non-temporal stores (SNT) and flushes (FHM, FHS) are not measured: {reason}."


def fragment(
    measured: Measured, name: str, speed: float, config: Mapping[str, str] | None = None
) -> str:
    """The text of the platform file. `speed` is that of a core (flop/s), `config` the options."""
    topology = measured.topology
    names = [near.name for near in topology.distances]
    lines = [*(f"# {line}" for line in how(measured).splitlines()), f"name: {name}"]
    if config:
        lines += ["config:", *(f"  {key}: {value}" for key, value in config.items())]
    lines += [
        "nodes:",
        f"  - name: {name}",
        f"    cores: {len(topology.cpus)}",
        f"    sockets: {topology.sockets}",
        f"    numa: {topology.numa}",
        f"    protocol: {protocol()}",
        f"    line: {topology.line}B",
        "    caches:",
    ]
    lines += [
        f"      - {{level: {cache.level}, size: {size(cache.size)}, cores: {cache.cores}}}"
        for cache in topology.caches
    ]
    lines.append("    distances:")
    lines += [f"      - {{name: {near.name}, cores: {near.cores}}}" for near in topology.distances]
    lines.append("    curves:")
    for (access, number), points in measured.curves.items():
        where = f", distance: {names[number]}" if number >= 0 else ""
        lines.append(f"      # quartiles, GB/s: {_spread(points)}")
        shown = ", ".join(f"{size(n)}: {f.value / 1e9:.4g}GBps" for n, f in points.items())
        lines.append(f"      - {{access: {access}{where}, points: {{{shown}}}}}")
    if measured.overlap:
        shown = ", ".join(f"{size(n)}: {part:.2f}" for n, part in measured.overlap.items())
        lines.append(f"    overlap: {{{shown}}}")
    lines.append("    latencies:")
    for (access, number), figure in measured.latencies.items():
        where = f", distance: {names[number]}" if number >= 0 else ""
        lines.append(
            f"      - {{access: {access}{where}, time: {figure.value * 1e9:.4g}ns}}"
            f"  # to {figure.high * 1e9:.4g}ns at the upper quartile"
        )
    lines += ["hosts:", f"  - {{name: {name}, speed: {speed / 1e9:.4g}Gf, node: {name}}}"]
    return "\n".join(lines) + "\n"


def _spread(points: Mapping[int, Figure]) -> str:
    return ", ".join(f"{f.low / 1e9:.3g} to {f.value / 1e9:.3g}" for f in points.values())


def how(measured: Measured) -> str:
    """The measurements, the place and the date, as lines of text."""
    reason = measured.uncontrolled
    return HOW.format(
        machine=cpu_model(),
        date=time.strftime("%Y-%m-%d"),
        load=f"{os.getloadavg()[0]:.1f}",
        libc=" ".join(platform.libc_ver()) or "the C library",
        page=os.sysconf("SC_PAGE_SIZE"),
        control=UNCONTROLLED.format(reason=reason) if reason else CONTROLLED,
    )


def size(nbytes: int) -> str:
    """Bytes with the largest unit that divides them."""
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes % scale == 0:
            return f"{nbytes // scale}{unit}"
    return f"{nbytes}B"


def cpu_model() -> str:
    """The name of the processor."""
    return _cpuinfo("model name") or platform.machine()


def protocol() -> str:
    """The usual coherence protocol of the manufacturer's processors."""
    return {"AuthenticAMD": "MOESI", "GenuineIntel": "MESIF"}.get(_cpuinfo("vendor_id"), "MESI")


def _cpuinfo(key: str) -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""
