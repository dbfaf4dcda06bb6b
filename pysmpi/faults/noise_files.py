"""Files that describe the noise of a machine, and presets: the values of `--noise`.

A file is YAML with the keys `detours`, `jitter` and `drop`. Each has the keys of the value of
`--fault` with its name, once or as a list; the `times` of detours are exponential or constant.
`pysmpi calibrate noise` writes a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.faults.specification import Detours, Drops, Jitter, Noise
from pysmpi.platform.nodes import Node, compose, from_data
from pysmpi.platform.units import parse_time
from pysmpi.text import did_you_mean, real, whole

BECKMAN = (
    "P. Beckman et al., The influence of operating systems on the performance of collective "
    "operations at extreme scale, Cluster 2006: the ratio of noise and the mean detour"
)

# The detours of the presets of computers have the published mean, and the rate that follows from
# the published part of the time.
PRESETS: dict[str, dict[str, Any]] = {
    "light-kernel": {
        "description": "compute nodes of a Cray XT3: 0.002 % of the time, 2.1 us each",
        "sources": [BECKMAN],
        "detours": {"rate": 9.5, "time": "2.1us"},
    },
    "linux-tuned": {
        "description": "Linux without daemons (I/O node of Blue Gene/L): 0.02 %, 2 us each",
        "sources": [BECKMAN],
        "detours": {"rate": 100, "time": "2us"},
    },
    "linux-cluster": {
        "description": "a node of a Linux cluster (Jazz): 0.12 %, 6.2 us each",
        "sources": [BECKMAN],
        "detours": {"rate": 194, "time": "6.2us"},
    },
    "linux-desktop": {
        "description": "Linux of a laptop, with its desktop: 1.02 %, 9.5 us each",
        "sources": [BECKMAN],
        "detours": {"rate": 1074, "time": "9.5us"},
    },
    # Jitter: the mean time above the shortest one, and the part of messages that are far later, so
    # that the mean, the 99th and the 99.9th percentile are those that were measured.
    "infiniband": {
        "description": "messages of a quiet 200 Gb/s InfiniBand: 0.04 us, 0.2 % of them 2 us more",
        "sources": [
            "Notes on InfiniBand: ib_send_lat, 100,000 messages between two Azure HB120rs_v3: "
            "shortest 1.55, mean 1.59, 99 % 1.62, 99.9 % 3.29 us"
        ],
        "jitter": [{"time": "0.037us"}, {"time": "2us", "rate": 0.002}],
    },
    "cloud-tcp": {
        "description": "TCP between machines of a cloud: 4.2 us, 0.26 % of them 100 us more",
        "sources": [
            "Availability sets vs availability zones in Azure: sockperf, 2.2 million round trips "
            "of two D4as_v4: shortest 36.6, mean 45.6, 99 % 57.2, 99.9 % 210.2 us"
        ],
        "jitter": [{"time": "4.2us"}, {"time": "100us", "rate": 0.0026}],
    },
}
_DESCRIBING = ("description", "sources")


def read_noise(value: str | PathLike[str] | Mapping[str, object]) -> list[Noise]:
    """The noise of a file, of a preset by its name, or of a dictionary with the keys of a file.

    Raises UsageError with the file, the line and the key.
    """
    if isinstance(value, Mapping):
        return _read(from_data(dict(value), "noise"))
    name = fspath(value)
    if name in PRESETS:
        return _read(from_data(PRESETS[name], name))
    path = Path(name)
    if not path.exists() and not path.suffix and path.name == name:
        raise UsageError(
            f"--noise {name}: expected a file or one of {', '.join(PRESETS)}"
            f"{did_you_mean(name, PRESETS)}"
        )
    return _read(compose(path))


def _read(top: Node) -> list[Noise]:
    keys = top.fields((), (*_DESCRIBING, *_READERS))
    noise: list[Noise] = []
    for key, reader in _READERS.items():
        if key in keys:
            node = keys[key]
            noise += [reader(one) for one in (node.items() if node.is_list() else [node])]
    if not noise:
        raise top.error(f"expected {', '.join(_READERS)}, got no noise")
    return noise


def _detours(node: Node) -> Detours:
    keys = node.fields(("rate", "time"), ("times",))
    times = keys["times"].choice(("exponential", "constant")) if "times" in keys else ""
    return Detours(keys["rate"].parse(_positive), keys["time"].parse(_time), times == "constant")


def _jitter(node: Node) -> Jitter:
    keys = node.fields(("time",), ("rate",))
    rate = keys["rate"].parse(_probability) if "rate" in keys else 1.0
    return Jitter(keys["time"].parse(_time), rate)


def _drop(node: Node) -> Drops:
    keys = node.fields(("rate",), ("queue", "timeout"))
    return Drops(
        keys["rate"].parse(_probability),
        keys["queue"].parse(_messages) if "queue" in keys else 0,
        keys["timeout"].parse(_time) if "timeout" in keys else Drops.timeout,
    )


_READERS: dict[str, Callable[[Node], Noise]] = {
    "detours": _detours,
    "jitter": _jitter,
    "drop": _drop,
}


def _positive(text: str) -> float:
    number = real(text)
    if number is None or number <= 0.0:
        raise UsageError(f'expected a number above 0, got "{text}"')
    return number


def _probability(text: str) -> float:
    number = real(text)
    if number is None or not 0.0 < number < 1.0:
        raise UsageError(f'expected a number between 0 and 1, got "{text}"')
    return number


def _messages(text: str) -> int:
    number = whole(text, 9)
    if number is None:
        raise UsageError(f'expected a number of messages, got "{text}"')
    return number


def _time(text: str) -> float:
    seconds = parse_time(text, bare=True)
    if seconds == 0.0:
        raise UsageError(f'expected a time above 0, got "{text}"')
    return seconds


def write_detours(detours: list[Detours], description: str) -> str:
    """The text of a file with some kinds of detours."""
    lines = [f"description: {description}", "detours:"]
    for one in detours:
        times = ", times: constant" if one.constant else ""
        lines.append(f"  - {{rate: {one.rate:.4g}, time: {1e6 * one.seconds:.4g}us{times}}}")
    return "\n".join(lines) + "\n"
