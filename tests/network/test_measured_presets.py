"""Presets with measured curves against the published tables that they were fitted to, and others.

`osu/` holds tables that no preset was fitted to. A file of a preset states its errors on them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import pysmpi
from pysmpi.network.measured import ERRORS, MeasuredPreset, load
from pysmpi.network.presets import HYBRID
from tests.network.test_cards import many

OTHERS = Path(__file__).with_name("osu")
NAMES = [name for name, preset in HYBRID.items() if preset.measured]
SIZES = [1 << k for k in range(23)]
Table = dict[int, float]


def mean(errors: list[float]) -> float:
    return 100 * sum(map(abs, errors)) / len(errors)


def messages(sizes: list[int], both: bool) -> dict[int, tuple[float, float, float]]:
    """By size, the results of osu_latency, osu_bw and osu_bibw: seconds and bytes a second."""
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    peer, first = 1 - comm.rank, comm.rank == 0
    signal = numpy.zeros(4, "b")
    result = {}
    for size in sizes:
        buffer, other = numpy.zeros(size, "b"), numpy.zeros(size, "b")
        passed = []
        for _ in range(3):
            begin = MPI.Wtime()
            if first:
                comm.Send(buffer, peer)
                comm.Recv(buffer, peer)
            else:
                comm.Recv(buffer, peer)
                comm.Send(buffer, peer)
            passed.append(MPI.Wtime() - begin)
        latency = passed[-1] / 2
        rates = []
        for twice in (False, True) if both else (False,):
            for _ in range(2):
                begin = MPI.Wtime()
                receives = [comm.Irecv(other, peer) for _ in range(64) if twice or not first]
                sends = [comm.Isend(buffer, peer) for _ in range(64) if twice or first]
                MPI.Request.Waitall(sends)
                MPI.Request.Waitall(receives)
                if first:
                    comm.Recv(signal, peer)
                else:
                    comm.Send(signal, peer)
            rates.append((1 + twice) * 64 * size / (MPI.Wtime() - begin))
        result[size] = latency, rates[0], rates[-1]
    return result


def machine(folder: Path, preset: str, latency: float, bandwidth: float, more: str = "") -> Path:
    file = folder / "machine.yaml"
    file.write_text(
        f"name: here\npreset: {preset}\nclusters:\n  - name: here\n    hosts: n[0-1]\n{more}"
        f"    network: {{bandwidth: {bandwidth:.7g}Bps, latency: {latency * 1e6:.7g}us}}\n"
    )
    return file


def options(rate: float) -> dict[str, str]:
    rated = {"network/message-rate": f"{rate:.7g}"} if rate else {}
    return {"smpi/wtime": "0", **rated}


def predicted(
    file: Path, rate: float = 0.0, both: bool = False
) -> dict[int, tuple[float, float, float]]:
    """One-way time (s) and bandwidths (bytes/s), in one direction and in both, by size."""
    run = pysmpi.run(
        messages, 2, args=(SIZES, both), platform=file, compute="none", cfg=options(rate),
    )  # fmt: skip
    result: dict[int, tuple[float, float, float]] = run.returns[0]
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
        result = predicted(machine(tmp_path, name, latency, bandwidth))
        # The two ends are what the file says.
        assert result[1][0] == pytest.approx(latency, rel=0.02)
        assert result[1 << 22][1] == pytest.approx(bandwidth, rel=0.03)
        for index, table in enumerate((times, rates)):
            errors = [result[size][index] / value - 1 for size, value in table.items()]
            if errors:
                assert mean(errors) <= 8
                assert max(map(abs, errors)) <= 0.2


def table_of(title: str) -> dict[str, Any]:
    """The table of a machine: one-way times (s) and bandwidths (bytes/s) by size, and figures.

    `us` and `MBps` are those of osu_latency and osu_bw, `bi` of osu_bibw, `pairs` of osu_mbw_mr by
    the number of pairs. `byte` (us) and `large` (MB/s) are the latency and the bandwidth of the
    machine without them, `rate` (millions a second) its message rate.
    """
    for file in OTHERS.glob("*.yaml"):
        table = yaml.safe_load(file.read_text())
        if table["machine"] == title:
            times = {n: us * 1e-6 for n, us in table.get("us", {}).items()}
            rates, both = (
                {n: value * 1e6 for n, value in table.get(key, {}).items()}
                for key in ("MBps", "bi")
            )
            large = table.get("large", 0.0) * 1e6
            if not large:
                large = rates[max(rates)] if rates else both[max(both)] / 2 if both else 0.0
            return {
                "times": times, "rates": rates, "both": both, "pairs": table.get("pairs", {}),
                "latency": times[1] if times else table.get("byte", 0.0) * 1e-6,
                "bandwidth": large or asymptote(times),
                "rate": table.get("rate", 0.0) * 1e6 or rates.get(1, 0.0),
                "rails": table.get("rails", 1),
            }  # fmt: skip
    raise LookupError(title)


def errors_on(folder: Path, name: str, title: str) -> dict[str, float]:
    """The mean errors (%) of a preset on the table of a machine, as a file of a preset has them."""
    table = table_of(title)
    curves = load(name)
    latency = table["latency"] or (curves.latency.values[0] if curves.latency else 1e-6)
    file = machine(folder, name, latency, table["bandwidth"])
    result = {}
    both = table["both"]
    if table["times"] or table["rates"] or (both and not table["rate"]):
        plain = predicted(file, both=bool(both))
        for key, index, published in (
            ("latency", 0, table["times"]), ("bandwidth", 1, table["rates"]), ("both", 2, both),
        ):  # fmt: skip
            if published:
                result[key] = mean([plain[n][index] / value - 1 for n, value in published.items()])
    if table["rate"] and (table["rates"] or both):
        rated = predicted(file, table["rate"], both=bool(both))
        for key, index, published in (("rated", 1, table["rates"]), ("both", 2, both)):
            if published:
                result[key] = mean([rated[n][index] / value - 1 for n, value in published.items()])
    if table["pairs"]:
        more = "    cores: 64\n"
        if table["rails"] > 1:
            more += f"    rails: {{count: {table['rails']}}}\n"
        file = machine(folder, name, latency, table["bandwidth"], more)
        errors = []
        for count, published in table["pairs"].items():
            run = pysmpi.run(
                many, 2 * count, args=(count, list(published)), platform=file,
                map_by=f"ppr:{count}:node", compute="none", data="none",
                cfg=options(table["rate"]),
            )  # fmt: skip
            for size, rate in zip(published, run.returns[0], strict=True):
                errors.append(rate * size / (published[size] * 1e6) - 1)
        result["pairs"] = mean(errors)
    return result


CHECKS = [(name, check.machine) for name in NAMES for check in load(name).checks]


@pytest.mark.parametrize(("name", "title"), CHECKS)
def test_files_of_presets_state_their_errors_on_other_tables(
    name: str, title: str, tmp_path: Path
) -> None:
    (check,) = [check for check in load(name).checks if check.machine == title]
    stated = {key: getattr(check, key) for key in ERRORS if getattr(check, key) is not None}
    assert stated == pytest.approx(errors_on(tmp_path, name, title), abs=0.15)


def test_mean_errors_on_other_tables() -> None:
    checks = [check for name in NAMES for check in load(name).checks]
    for key, machines, limit in (("latency", 20, 11), ("rated", 15, 11)):
        errors = [getattr(check, key) for check in checks if getattr(check, key) is not None]
        assert len(errors) >= machines
        assert sum(errors) / len(errors) <= limit


def test_each_table_is_that_of_a_check_and_of_no_fit() -> None:
    tables = [yaml.safe_load(file.read_text()) for file in OTHERS.glob("*.yaml")]
    assert sorted(table["machine"] for table in tables) == sorted(title for _, title in CHECKS)
    for name, title in CHECKS:
        curves, (table,) = load(name), [one for one in tables if one["machine"] == title]
        for key, curve in (("us", curves.latency), ("MBps", curves.bandwidth)):
            assert key not in table or curve is None or curve.machine != title
        assert "pairs" not in table or curves.pairs is None or curves.pairs.machine != title


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


if __name__ == "__main__":  # prints the errors as the files of presets have them
    import tempfile

    for preset, title in CHECKS:
        values = errors_on(Path(tempfile.mkdtemp()), preset, title)
        print(
            preset, title, *(f"    {key}: {value:.1f}" for key, value in values.items()), sep="\n"
        )
