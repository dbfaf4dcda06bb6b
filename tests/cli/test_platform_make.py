"""`pysmpi platform new` and `fit` write machines that predict what the user has measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pysmpi.calibrate.osu import read, rendezvous
from pysmpi.cli.platform_make import new
from pysmpi.errors import UsageError
from pysmpi.network.measured import load
from pysmpi.platform import load as load_platform


@pytest.fixture
def figures(tmp_path: Path) -> tuple[str, str]:
    """The output of the two programs, as OSU 5 and 7 print it, on Slingshot-11."""
    curves = load("slingshot-11")
    assert curves.latency is not None and curves.bandwidth is not None
    late, rate = tmp_path / "osu_latency.txt", tmp_path / "osu_bw.txt"
    late.write_text(
        "# OSU MPI Latency Test v7.5\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n"
        + "".join(
            f"{size:<10}{value * 1e6:15.2f}              Pass\n"
            for size, value in zip(curves.latency.sizes, curves.latency.values, strict=True)
        )
    )
    rate.write_text(
        "mpiexec: a line of the launcher\n# OSU MPI Bandwidth Test v5.6.2\n# Size      MB/s\n"
        + "".join(
            f"{size:<10}{value / 1e6:15.2f}\n"
            for size, value in zip(curves.bandwidth.sizes, curves.bandwidth.values, strict=True)
        )
    )
    return str(late), str(rate)


def test_osu_output_becomes_a_machine_with_its_figures(status, figures, tmp_path):
    file = tmp_path / "alps.yaml"
    words = ("platform", "fit", *figures, "-o", str(file), "--nodes", "4", "--cores", "8")
    code, out, err = status(*words)
    assert code == 0, err
    errors = [float(line.split("mean error ")[1].split()[0]) for line in out.splitlines()[:2]]
    assert max(errors) < 1
    platform = load_platform(file)
    assert (len(platform.hosts), platform.hosts[0].cores) == (4, 8)
    assert platform.config["smpi/async-small-thresh"] == "8192"
    code, _, err = status(*words)
    assert code == 2 and "exists; --force overwrites it" in err
    code, _, _ = status(*words, "--force", "--eager", "16KiB")
    assert code == 0
    assert load_platform(file).config["smpi/async-small-thresh"] == "16384"


def test_the_rendezvous_is_at_the_step_of_the_times(figures):
    times, rates = read(figures)
    assert rendezvous(times, rates[max(rates)]) == 8192
    smooth = {1 << k: 1e-6 + (1 << k) / 12e9 for k in range(23)}
    assert rendezvous(smooth, 12e9) == 65536


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("# OSU MPI Latency Test v7.5\n1 1.0\n2 1.0\n", "expected the output of osu_bw"),
        ("hello\n", "expected the output of osu_latency"),
        ("# OSU MPI Latency Test v7.5\n1 x\n", ":2: expected bytes and a number above 0"),
        ("# OSU MPI Latency Test v7.5\n1 -1\n", ":2: expected bytes and a number above 0"),
    ],
)
def test_other_files_are_refused(text, complaint, tmp_path):
    file = tmp_path / "osu.txt"
    file.write_text(text)
    with pytest.raises(UsageError, match=complaint):
        read([str(file)])


def test_five_answers_make_a_machine(tmp_path):
    file = tmp_path / "mine.yaml"
    answers = "16\n8\naries\n1.3us\n9.8GBps\n"
    result = CliRunner().invoke(new, [str(file)], input=answers)
    assert result.exit_code == 0, result.output
    platform = load_platform(file)
    assert (platform.name, platform.preset, len(platform.hosts)) == ("mine", "aries", 16)
    route = platform.route(platform.hosts[0], platform.hosts[1])
    assert route.latency == pytest.approx(1.3e-6)
    assert min(link.bandwidth for link in route.links) == 9.8e9
    # Empty lines take the figures of the preset.
    result = CliRunner().invoke(new, [str(file), "--force"], input="\n" * 5)
    assert result.exit_code == 0, result.output
    assert load_platform(file).preset == "infiniband-edr"


def test_wrong_names_and_answers(status, tmp_path):
    assert status("platform", "new", str(tmp_path / "my cluster.yaml"))[0] == 2
    assert status("platform", "new", "x.xml")[0] == 2
    with pytest.raises(UsageError, match='got "3 miles"'):
        CliRunner().invoke(
            new, [str(tmp_path / "a.yaml")], input="\n\n\n3 miles\n\n", standalone_mode=False,
            catch_exceptions=False,
        )  # fmt: skip
    assert not (tmp_path / "a.yaml").exists()
