"""Files with usual mistakes: what the message says, and what it proposes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pysmpi.cli.platform import command
from pysmpi.errors import UsageError
from pysmpi.platform import load, units

CLUSTER = """\
name: lab
{0}clusters:
  - name: lab
    hosts: n[0-3]
{1}    network: {{bandwidth: {2}, latency: {3}}}
"""


@pytest.mark.parametrize(
    ("parse", "text", "meant"),
    [
        (units.parse_bandwidth, "100Gb/s", "100Gbps"),
        (units.parse_bandwidth, "100 Gbps", "100Gbps"),
        (units.parse_bandwidth, "100Gbit/s", "100Gbps"),
        (units.parse_bandwidth, "100 Gbits/s", "100Gbps"),
        (units.parse_bandwidth, "100gbps", "100Gbps"),
        (units.parse_bandwidth, "12000MB/s", "12000MBps"),
        (units.parse_bandwidth, "12.5 GByte/s", "12.5GBps"),
        (units.parse_bandwidth, "12 GiB/sec", "12GiBps"),
        (units.parse_time, "1.5\u00b5s", "1.5us"),
        (units.parse_time, "1.5 usec", "1.5us"),
        (units.parse_time, "1.5 microseconds", "1.5us"),
        (units.parse_time, "800 nsec", "800ns"),
        (units.parse_speed, "2.5 GFlop/s", "2.5Gf"),
        (units.parse_speed, "2.5GFLOPS", "2.5Gf"),
        (units.parse_size, "64 KiB", "64KiB"),
    ],
)
def test_another_spelling_is_refused_with_the_right_one(parse, text, meant):
    with pytest.raises(UsageError, match=f'; did you mean "{meant}"\\?$'):
        parse(text)
    assert parse(meant) > 0.0


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.parse_bandwidth, "1 us"),
        (units.parse_bandwidth, "fast"),
        (units.parse_bandwidth, "-5 GBps"),
        (units.parse_time, "100 Gbps"),
        (units.parse_speed, "2.5GHz"),
    ],
)
def test_nothing_is_proposed_for_other_things(parse, text):
    with pytest.raises(UsageError) as error:
        parse(text)
    assert "did you mean" not in str(error.value)


@pytest.mark.parametrize(
    ("preset", "message"),
    [
        ("infinband-hdr", r'got "infinband-hdr"; did you mean "infiniband-hdr"\?'),
        ("InfiniBand-EDR", r'did you mean "infiniband-edr"\?'),
        ("omnipath", r'did you mean "omni-path"\?'),
        ("infiniband-xdr", r"infiniband-edr, -hdr or -ndr, got .*platform fit"),
        ("InfiniBand-FDR", r"no table of this generation is known"),
        ("token-ring", r"expected one of neutral, smpi, .*got \"token-ring\"$"),
    ],
)
def test_a_preset_that_is_not_there(preset, message, tmp_path):
    file = tmp_path / "lab.yaml"
    file.write_text(CLUSTER.format(f"preset: {preset}\n", "", "10GBps", "1us"))
    with pytest.raises(UsageError, match=message) as error:
        load(file)
    assert str(error.value).startswith(f"{file}:2: preset: ")


@pytest.mark.parametrize("key", ["preset: infiniband-edr", "config: {smpi/os: 0}"])
def test_keys_of_the_file_in_a_cluster(key, tmp_path):
    file = tmp_path / "lab.yaml"
    file.write_text(CLUSTER.format("", f"    {key}\n", "10GBps", "1us"))
    name = key.partition(":")[0]
    with pytest.raises(UsageError, match=rf'expected "{name}" at the top of the file, got it in a'):
        load(file)


@pytest.mark.parametrize(
    ("preset", "bandwidth", "latency", "note"),
    [
        ("infiniband-edr", "100GBps", "1us", "the bandwidth 100GBps is 8.20 times that of"),
        ("infiniband-edr", "12.5Gbps", "1us", "the bandwidth 1.5625GBps is 0.13 times that of"),
        ("infiniband-edr", "100Gbps", "1ms", "the latency 1ms is 1020.41 times that of"),
        ("infiniband-edr", "100Gbps", "1.3us", ""),
        ("ethernet-100g", "12GBps", "20us", ""),
        ("neutral", "100GBps", "1ms", ""),
    ],
)
def test_figures_that_the_network_of_a_preset_never_has(
    preset: str, bandwidth: str, latency: str, note: str, tmp_path: Path
) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(CLUSTER.format(f"preset: {preset}\n", "", bandwidth, latency))
    result = CliRunner().invoke(command, ["check", str(file)], standalone_mode=False)
    assert result.return_value == 0 and "4 hosts" in result.stdout
    assert (note in result.stderr) if note else not result.stderr
