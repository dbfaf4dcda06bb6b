"""The table of published figures on the page about accuracy holds what pysmpi predicts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pysmpi
from tests.network.test_first_predictions import osu

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "accuracy.md"
FILES = {
    "InfiniBand EDR": "preset: infiniband-edr\n",
    "1 Gb/s Ethernet": "preset: ethernet-1g\n",
    "Omni-Path 100": "preset: omni-path\n",
    "Cray XC (Aries)": "preset: aries\n",
}
ROUTES = {
    "InfiniBand EDR": "{bandwidth: 11.9GBps, latency: 0.91us}",
    "1 Gb/s Ethernet": "{bandwidth: 117MBps, latency: 25.4us}",
    "Omni-Path 100": "{bandwidth: 12.4GBps, latency: 1us}",
    "Cray XC (Aries)": "{bandwidth: 9.96GBps, latency: 1.21us}",
}


def table() -> dict[str, list[tuple[str, int, float, float, str]]]:
    """The rows of each network: figure, bytes, published, predicted, error."""
    text = PAGE.read_text(encoding="utf-8")
    part = text.partition("<!-- table: published figures -->")[2].partition("<!-- end")[0]
    rows: dict[str, list[tuple[str, int, float, float, str]]] = {}
    network = figure = ""
    for line in part.strip().splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        network, figure = cells[0] or network, cells[1] or figure
        nbytes, published, predicted = (float(cell.replace(",", "")) for cell in cells[2:5])
        rows.setdefault(network, []).append((figure, int(nbytes), published, predicted, cells[5]))
    return rows


def error(published: float, predicted: float) -> str:
    ratio = predicted / published
    percent = round(100 * (ratio - 1))
    return f"{ratio:.1f} ×" if ratio > 2 else f"{percent:+d} %" if percent else "0 %"


@pytest.mark.parametrize("network", FILES)
def test_the_table_is_true(network: str, tmp_path: Path) -> None:
    path = tmp_path / "machine.yaml"
    path.write_text(
        f"name: here\n{FILES[network]}clusters:\n  - name: here\n    hosts: n[0-3]\n"
        f"    cores: 40\n    network: {ROUTES[network]}\n"
    )
    found = pysmpi.run(
        osu, 41, args=(0, 40), platform=path, compute="none", cfg={"smpi/wtime": "0"}
    ).returns[0]
    for figure, nbytes, published, predicted, difference in table()[network]:
        latency, bandwidth = found[nbytes]
        exact = latency * 1e6 if figure == "latency, us" else bandwidth / 1e6
        assert predicted == pytest.approx(exact, rel=0.007), (figure, nbytes)
        assert difference == error(published, predicted), (figure, nbytes)


def test_the_file_of_the_page_is_the_first() -> None:
    (file,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert ROUTES["InfiniBand EDR"] in file and FILES["InfiniBand EDR"] in file
    assert list(table()) == list(FILES)
