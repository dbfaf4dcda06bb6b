"""Valid files, one for each reader, and the commands that read them."""

from __future__ import annotations

from pathlib import Path

PLATFORM = """name: small
description: two hosts
config: {smpi/os: "0:1e-6:0", smpi/wtime: 1us}
routing: floyd
hosts:
- {name: a, speed: 1Gf, cores: 2}
- {name: b, speed: [2Gf, 1Gf], pstate: 1}
links:
- {name: l, bandwidth: 125MBps, latency: 10us}
routes:
- {from: a, to: b, via: [l]}
profiles:
- {link: l, bandwidth: {10s: 50MBps, 20s: 1GBps}, loop_after: 5s}
- {host: a, speed: {0s: 0.5, 30s: 1}}
"""
CLUSTERS = """name: nets
routing: full
clusters:
- name: west
  hosts: west-[0-31]
  speed: 3Gf
  link: {bandwidth: 1Gbps, latency: 20us}
  backbone: {bandwidth: 10Gbps, latency: 5us}
- name: east
  hosts: east-[0-7]
  cores: 4
  network: {bandwidth: 10Gbps, latency: 2us}
links:
- {name: between, bandwidth: 1Gbps, latency: 5ms}
routes:
- {from: west, to: east, via: [between]}
"""
XML = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<config><prop id="smpi/os" value="0:1:2"/></config>
<zone id="all" routing="Floyd">
<host id="a" speed="1Gf,2Gf" pstate="1" core="2" availability_file="profile.txt"/>
<host id="b" speed="1Gf"/><host id="c" speed="1Gf"/>
<link id="l" bandwidth="1GBps" latency="1us"/>
<route src="a" dst="b"><link_ctn id="l"/></route>
<route src="b" dst="c"><link_ctn id="l"/></route>
</zone></platform>
"""
CLUSTER_XML = """<platform version="4.1"><zone id="w" routing="Full">
<cluster id="c" prefix="n-" suffix=".x" radical="0-15" speed="1Gf" bw="1GBps" lat="1us"
 topology="FAT_TREE" topo_parameters="2;4,4;1,2;1,2" sharing_policy="SPLITDUPLEX"/>
</zone></platform>
"""
PROFILE = "# of a host\n0.0 1.0\n2.5 0.5\nLOOPAFTER 1.0\n"
HOSTS = "a:2\nb slots=3\n# done\na\n"
PROGRAM = "from mpi4py import MPI\nprint(MPI.COMM_WORLD.allreduce(1))\n"
STUDY = """name: s
program: ok.py
ranks: [1, 2]
platforms: [platform.yaml]
seeds: [0]
arguments: ["a b"]
options: {compute: none}
values: {x: "x=(.*)"}
timeout: 10s
plots: [{file: p.svg, x: ranks, y: seconds}]
"""
JOURNAL = '{"sweep": 1}\n{"key": "0a", "case": {"ranks": 1}, "row": {"seconds": 1.0}}\n'
FAILURES = (
    '{"version": 1, "failures": {"0a": [{"ranks": 2, "schedule": "o1,s:9f3a", "cause": "x", '
    '"arguments": [], "events": ["a"], "command": "c"}]}}'
)
BLOCKS = (
    "# pysmpi compute 1, nanoseconds of blocks on a core of flop/s: 1000000000.0\n0 120\n1 3\n"
    + "0 5\n1 7\n" * 20
)
SELECTION = (
    "bcast\n  P == 16  <=1024:binomial_tree else:NTSL\n  else  binomial_tree\n"
    "allreduce\n  else  <8K:rdb else:lr\n"
)
INDEPENDENT = (
    "0 init\n1 init\n0 compute 1e6\n0 send 1 7 100\n1 recv 0 7 100\n0 bcast 8 0 0\n1 bcast 8 0 0\n"
    "0 allReduce 5e3 2 0\n1 allReduce 5e3 2 0\n0 finalize\n1 finalize\n"
)
CONFIG = "# programs\n-n 1 ok.py one\n-n 1 ok.py 'two words'\n"
MULTI = "0 ok.py a\n1-2 ok.py %t\n* ok.py\n"
PRIMITIVE = (
    "from pysmpi.memory.primitives.operations import Program\n\ndef program(cells=1):\n"
    "    return None\n"
)

# The command of each file; `{}` is its name.
READERS: dict[str, tuple[str, list[list[str]]]] = {
    "platform.yaml": (PLATFORM, [
        ["platform", "check", "{}"], ["platform", "show", "{}"], ["platform", "convert", "{}"],
        ["run", "-n", "2", "--platform", "{}", "ok.py"], ["platform", "draw", "{}", "-o", "o.svg"],
    ]),
    "clusters.yaml": (CLUSTERS, [["platform", "check", "{}"]]),
    "platform.xml": (XML, [
        ["platform", "check", "{}"], ["platform", "convert", "{}"],
        ["run", "-n", "3", "--platform", "{}", "ok.py"],
    ]),
    "cluster.xml": (CLUSTER_XML, [["platform", "check", "{}"], ["platform", "show", "{}"]]),
    "profile.txt": (PROFILE, [["platform", "check", "reads_profile.xml"]]),
    "hosts": (HOSTS, [
        ["run", "--platform", "good.yaml", "--hostfile", "{}", "ok.py"],
        ["run", "-n", "2", "--platform", "good.yaml", "-f", "{}", "-ppn", "1", "ok.py"],
    ]),
    "program.py": (PROGRAM, [["run", "-n", "2", "{}"]]),
    "study.yaml": (STUDY, [["sweep", "{}", "--list"]]),
    "journal.jsonl": (JOURNAL, [["sweep", "good_study.yaml", "--list", "-o", "."]]),
    ".pysmpi/failures.json": (FAILURES, [["explore", "-n", "2", "--runs", "2", "ok.py"]]),
    "blocks": (BLOCKS, [["run", "-n", "2", "--compute", "./{}", "ok.py"]]),
    "selection.txt": (SELECTION, [
        ["collectives", "bcast", "--selector", "./{}", "-n", "16"],
        ["run", "-n", "2", "--selector", "./{}", "ok.py"],
    ]),
    "trace.ti": (INDEPENDENT, [["replay", "{}"], ["replay", "{}", "--explain"]]),
    "config": (CONFIG, [["run", "-configfile", "{}"]]),
    "multi": (MULTI, [["run", "-n", "3", "--multi-prog", "{}"]]),
    "primitive.py": (PRIMITIVE, [["coherence", "study", "./{}"]]),
}  # fmt: skip

RECORDED = [
    ["view", "{}", "--text"], ["replay", "{}"], ["analyse", "{}"], ["replay", "{}", "--explain"],
    *(["trace", "convert", "{}", f"out.{suffix}"]
      for suffix in ("json", "csv", "ti", "paje", "goal", "otf2", "parquet", "jsonl")),
]  # fmt: skip


def prepare(folder: Path) -> None:
    """Write the files that are right in every case."""
    (folder / "ok.py").write_text(PROGRAM)
    (folder / "good.yaml").write_text(PLATFORM)
    (folder / "good_study.yaml").write_text(STUDY)
    (folder / "reads_profile.xml").write_text(
        '<platform version="4.1"><zone id="w" routing="Full">'
        '<host id="h" speed="1Gf" availability_file="profile.txt"/></zone></platform>'
    )
    (folder / "platform.yaml").write_text(PLATFORM)
    (folder / "profile.txt").write_text(PROFILE)
