"""Presets with measured curves against the published tables that they were fitted to, and others.

`osu/` holds tables that no preset was fitted to. A file of a preset states its errors on them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import pysmpi
from pysmpi.network.measured import MeasuredPreset, load
from pysmpi.network.presets import HYBRID
from pysmpi.platform.nodes import compose
from tests.network.test_first_predictions import osu

OTHERS = Path(__file__).with_name("osu")
NAMES = [name for name, preset in HYBRID.items() if preset.measured]
Table = dict[int, float]


def mean(errors: list[float]) -> float:
    return 100 * sum(map(abs, errors)) / len(errors)


def predicted(
    folder: Path, preset: str, latency: float, bandwidth: float, rate: float = 0.0
) -> dict[int, tuple[float, float]]:
    """One-way time (s) and bandwidth (bytes/s) by size on a machine of six lines."""
    file = folder / "machine.yaml"
    file.write_text(
        f"name: here\npreset: {preset}\nclusters:\n  - name: here\n    hosts: n[0-1]\n"
        f"    network: {{bandwidth: {bandwidth:.7g}Bps, latency: {latency * 1e6:.7g}us}}\n"
    )
    cfg = {"smpi/wtime": "0"}
    if rate:
        cfg["network/message-rate"] = f"{rate:.7g}"
    run = pysmpi.run(osu, 2, args=(0, 1), platform=file, compute="none", cfg=cfg)
    result: dict[int, tuple[float, float]] = run.returns[0]
    return result


def asymptote(times: Table) -> float:
    """Bytes a second by which the largest one-way times grow."""
    small, _, large = sorted(times)[-3:]
    return (large - small) / (times[large] - times[small])


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_gives_the_curves_that_it_was_fitted_to(name: str, tmp_path: Path) -> None:
    curves = load(name)
    fits: list[tuple[float, float, dict[int, float], dict[int, float]]] = []
    if curves.latency is not None:
        times = dict(zip(curves.latency.sizes, curves.latency.values, strict=True))
        same = curves.bandwidth is not None and curves.bandwidth.machine == curves.latency.machine
        bandwidth = asymptote(times)
        if same and curves.bandwidth is not None:
            bandwidth = curves.bandwidth.values[-1]
        fits.append((times[1], bandwidth, times, {}))
    if curves.bandwidth is not None:
        rates = dict(zip(curves.bandwidth.sizes, curves.bandwidth.values, strict=True))
        latency = curves.latency.values[0] if curves.latency else 1e-6
        fits.append((latency, curves.bandwidth.values[-1], {}, rates))
    if not fits:  # only latency and bandwidth are known
        fits.append((0.5e-6, 6.35e9, {1: 0.5e-6}, {1 << 22: 6.35e9}))
    for latency, bandwidth, times, rates in fits:
        if name == "ethernet-10g" and rates:
            continue  # these are of 25 Gb/s
        result = predicted(tmp_path, name, latency, bandwidth)
        # The two ends are what the file says.
        assert result[1][0] == pytest.approx(latency, rel=0.02)
        assert result[1 << 22][1] == pytest.approx(bandwidth, rel=0.03)
        for index, table in enumerate((times, rates)):
            errors = [result[size][index] / value - 1 for size, value in table.items()]
            if errors:
                assert mean(errors) <= 8
                assert max(map(abs, errors)) <= 0.2


def table_of(machine: str) -> tuple[Table, Table]:
    """One-way times (s) and bandwidths (bytes/s) by size in the table of a machine."""
    for file in OTHERS.glob("*.yaml"):
        keys = compose(file).fields(("machine", "source"), ("us", "MBps", "nominal"))
        if keys["machine"].text() == machine:
            times, rates = (
                {int(n): float(text.text()) * unit for n, text in keys[key].entries().items()}
                if key in keys
                else {}
                for key, unit in (("us", 1e-6), ("MBps", 1e6))
            )
            if "nominal" in keys:
                rates[1 << 30] = float(keys["nominal"].text())
            return times, rates
    raise LookupError(machine)


# One-way times of a byte that go with tables of bandwidth alone.
LATENCIES = {"LUMI": 2e-6, "ConnectX-6": 1.6e-6}


def errors_on(
    folder: Path, name: str, machine: str, rated: bool = False
) -> tuple[float | None, float | None]:
    """The mean errors (%) of one-way times and of bandwidths."""
    times, rates = table_of(machine)
    bandwidth = rates.pop(1 << 30, None) or (rates[max(rates)] if rates else asymptote(times))
    latency = times[1] if times else LATENCIES[machine.partition(",")[0].partition(" ")[0]]
    result = predicted(folder, name, latency, bandwidth, rates[1] if rated else 0.0)
    late = [result[size][0] / value - 1 for size, value in times.items()]
    slow = [result[size][1] / value - 1 for size, value in rates.items()]
    return (mean(late) if late else None), (mean(slow) if slow else None)


def test_files_of_presets_state_their_errors_on_other_tables(tmp_path: Path) -> None:
    late, slow = {}, {}
    for name in NAMES:
        for check in load(name).checks:
            times, rates = errors_on(tmp_path, name, check.machine)
            rated = errors_on(tmp_path, name, check.machine, True)[1] if rates is not None else None
            for stated, exact in (
                (check.latency, times), (check.bandwidth, rates), (check.rated, rated),
            ):  # fmt: skip
                assert (stated is None) == (exact is None), (name, check.machine)
                if stated is not None and exact is not None:
                    assert stated == pytest.approx(exact, abs=0.15), (name, check.machine)
            if times is not None:
                late[check.machine] = times
            if rated is not None:
                slow[check.machine] = rated
    assert len({*late, *slow}) >= 6
    assert sum(late.values()) / len(late) <= 15
    assert sum(slow.values()) / len(slow) <= 15


def test_each_table_is_that_of_a_check() -> None:
    machines = {check.machine for name in NAMES for check in load(name).checks}
    named = {compose(file).entries()["machine"].text() for file in OTHERS.glob("*.yaml")}
    assert named == machines


def test_options_of_a_preset_are_its_costs() -> None:
    """SimGrid's options, of segments, agree with the curve at measured sizes."""
    from pysmpi.platform.config import OPTIONS

    for name in ("infiniband-edr", "slingshot-11", "ethernet-25g"):
        curves: MeasuredPreset = load(name)
        values = curves.options(1.1e-6, 12e9)
        pieces = {key: OPTIONS[key].value(text) for key, text in values.items()}
        assert curves.latency is not None
        for size in curves.latency.sizes:
            exact = curves.sized(size, 1.1e-6, 12e9)
            assert pieces["smpi/ois"].affine(size) == pytest.approx(exact.isend_cost, rel=1e-4)
            assert pieces["smpi/or"].affine(size) == pytest.approx(exact.recv_cost, rel=1e-4)
            assert pieces["smpi/lat-factor"].factor(size + 16) == pytest.approx(
                exact.latency_factor, rel=1e-4
            )
            assert pieces["smpi/bw-factor"].factor(size + 16) == pytest.approx(
                exact.bandwidth_factor, rel=1e-4
            )
