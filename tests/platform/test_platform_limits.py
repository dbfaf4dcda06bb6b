"""Machines of unreasonably many hosts or links are refused before they are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from pysmpi.errors import UsageError
from pysmpi.platform import load

YAML = """\
name: m
clusters:
  - name: nodes
    hosts: n[0-{last}]
    speed: 1Gf
    network: {{bandwidth: 1GBps, latency: 1us}}
"""
TREE = """\
name: m
clusters:
  - name: nodes
    hosts: n[0-15]
    speed: 1Gf
    link: {bandwidth: 1GBps, latency: 1us}
    topology: {kind: fat_tree, children: [4, 4], parents: [4, 4], cables: [10000, 10000000]}
"""
XML = """\
<?xml version="1.0"?>
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-{last}" speed="1Gf" bw="1GBps" lat="1us"/>
</platform>
"""


@pytest.mark.parametrize("name, text", [("m.yaml", YAML), ("m.xml", XML)])
def test_hosts(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text.format(last=99_999_999_999))
    with pytest.raises(UsageError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert message.endswith(
        "expected at most 2,000,000 hosts, got 100,000,000,000 or more; --cfg "
        "platform/most-hosts:NUMBER raises the limit"
    )


def test_links(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(TREE)
    with pytest.raises(UsageError) as caught:
        load(path)
    message = "expected at most 4,000,000 links, got 1,281,280,000 or more; --cfg platform/most-"
    assert message in str(caught.value)


def test_cables_of_a_fat_tree_are_counted_before_they_are_made(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(TREE.replace("[10000, 10000000]", "[2, 3]"))
    with pytest.raises(UsageError) as caught:
        load(path, {"platform/most-links": "1"})
    links = [link for link in load(path).links if link.name.startswith("link_from")]
    assert f"links, got {len(links):,} or more" in str(caught.value)


def test_limits_are_the_users(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(YAML.format(last=9))
    with pytest.raises(UsageError, match="expected at most 9 hosts, got 10 or more;"):
        load(path, {"platform/most-hosts": "9"})
    assert len(load(path, {"platform/most-hosts": "10"}).hosts) == 10
    with pytest.raises(UsageError, match="platform/most-hosts: expected a whole number above 0"):
        load(path, {"platform/most-hosts": "many"})
