"""The page of a comparison: one HTML file with its tables and curves, which needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from pysmpi.validate.comparison import (
    COMPUTE,
    KINDS,
    MEMORY,
    PROGRAMS,
    ValidatedFigure,
    Validation,
    origin,
    percent,
    summary,
)
from pysmpi.validate.prediction import MESSAGES

PLUS = "+"  # the sign of errors
WIDTH, HEIGHT = 340, 220  # of a curve
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 12, 26
TITLES = {
    "latency": "One way of a message", "bandwidth": "Bandwidth",
    "bidirectional": "Bandwidth in both directions", "message_rate": "Message rate of all pairs",
    "allreduce": "Allreduce", "alltoall": "Alltoall",
}  # fmt: skip
SIZES = {0: "", 10: "Ki", 20: "Mi", 30: "Gi"}

_STYLE = """
.curves { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 290px), 1fr));
  gap: 14px; }
.curves figure { margin: 0; min-width: 0; }
.curves figcaption { color: var(--soft); font-size: 12.5px; }
.curves svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--soft); font-size: 10px; }
svg .grid { stroke: var(--line); fill: none; }
svg .predicted { stroke: var(--compute); fill: none; stroke-width: 2; }
svg .measured { fill: var(--message); }
.dot { background: var(--message); } .stroke { background: var(--compute); }
ul.advice { margin: 0; padding-left: 18px; overflow-wrap: anywhere; }
section h2 { margin-bottom: 8px; } section h3 { margin-top: 16px; }
section > .legend { margin-bottom: 10px; }
td.far { color: var(--wait-text); font-weight: 600; }
summary { cursor: pointer; color: var(--accent); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 14px; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
"""
_SCRIPT = """
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => { document.documentElement.dataset.theme = dark.matches ? "dark" : "light"; };
dark.addEventListener("change", follow);
follow();
"""


def page(
    comparison: Validation, machine: str, recordings: Sequence[str], remarks: Sequence[str]
) -> str:
    """The text of the page; `machine` names the described machine."""
    style = (files("pysmpi.analysis") / "assets" / "page.css").read_text("utf-8") + _STYLE
    clock = "processor time" if comparison.clock == "processor" else "wall time"
    parts = [
        _cards(comparison),
        _section("What to calibrate", _advice(comparison.advice(recordings))),
        _section("Programs", _programs(comparison)),
        _section("Memory", _table(comparison.of(MEMORY))),
        _section("Messages", _messages(comparison)),
        _section("The recording", _facts(comparison, recordings, remarks)),
    ]
    title = f"Predicted beside measured, on {machine}"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)} - pysmpi</title>\n<link rel="icon" href="data:,">\n'
        f"<style>{style}</style>\n</head>\n<body>\n<header><div><p class='brand'>pysmpi</p>"
        f"<h1>{escape(title)}</h1></div><p>{comparison.statistic} of the repeats, {clock}</p>"
        f"</header>\n<main>\n{''.join(filter(None, parts))}</main>\n"
        "<footer>An error is predicted / measured - 1 of the figure that is shown.</footer>\n"
        f"<script>{_SCRIPT}</script>\n</body>\n</html>\n"
    )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>\n" if content else ""


def _cards(comparison: Validation) -> str:
    cards = []
    for one in comparison.summaries():
        cards.append(
            f'<div class="card"><b>{percent(one.mean)}</b><span>mean error, {escape(one.kind)}<br>'
            f"median {percent(one.median)}, worst {percent(one.worst, PLUS)}, "
            f"{one.count} figures</span></div>"
        )
    return f'<section class="cards">{"".join(cards)}</section>\n'


def _advice(lines: Sequence[str]) -> str:
    if not lines:
        return "<p>No kind of figure has a mean error of 10 % or more.</p>"
    return f'<ul class="advice">{"".join(f"<li>{escape(line)}</li>" for line in lines)}</ul>'


def _percent(value: float | None) -> str:
    if value is None:
        return "<td></td>"
    return f"<td{' class=far' if abs(value) > 0.2 else ''}>{percent(value, PLUS)}</td>"


def _head(names: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<th>{name}</th>' for name in names)}</tr>"


def _programs(comparison: Validation) -> str:
    rows = sorted(
        (*comparison.of(COMPUTE), *comparison.of(PROGRAMS)),
        key=lambda row: (row.case, row.nodes, row.ranks),
    )
    if not rows:
        return ""
    lines = [
        _head(
            ("program", "nodes x ranks", "error", "measured", "predicted", "of it compute",
             "of it the rest", "messages", "mainly from")
        )
    ]  # fmt: skip
    for row in rows:
        share = "" if row.messages is None else f"{row.messages:.0%}"
        where = "compute" if row.kind == COMPUTE else origin(row)
        lines.append(
            f"<tr><td>{escape(row.case)}</td><td>{row.layout}</td>{_percent(row.error)}"
            f"<td>{row.measured:.4g} s</td><td>{row.predicted:.4g} s</td>{_percent(row.compute)}"
            f"{_percent(row.rest)}<td>{share}</td><td>{where}</td></tr>"
        )
    return (
        f'<div class="scroll"><table>{"".join(lines)}</table></div>{_by_ranks(rows)}'
        '<p class="hint">The part of compute is the error on one rank, for as much of the '
        "predicted time as is compute. Messages is their part of the predicted time.</p>"
    )


def _by_ranks(rows: Sequence[ValidatedFigure]) -> str:
    """The errors of the programs by rank count."""
    lines = []
    for nodes, ranks, layout in sorted({(row.nodes, row.ranks, row.layout) for row in rows}):
        here = [row for row in rows if (row.nodes, row.ranks) == (nodes, ranks)]
        one = summary("", here)
        if one is not None:
            lines.append(
                f"<tr><td>all, {layout}</td><td>{one.count}</td><td>{percent(one.mean)}</td>"
                f"<td>{percent(one.median)}</td>{_percent(one.worst)}</tr>"
            )
    head = _head(("nodes x ranks", "programs", "mean", "median", "worst"))
    return f'<h3>By rank count</h3><div class="scroll"><table>{head}{"".join(lines)}</table></div>'


def _table(rows: Sequence[ValidatedFigure]) -> str:
    if not rows:
        return ""
    lines = [_head(("case", "nodes x ranks", "bytes", "error", "measured", "predicted"))]
    for row in rows:
        lines.append(
            f"<tr><td>{escape(row.case)}</td><td>{row.layout}</td><td>{row.nbytes:,}</td>"
            f"{_percent(row.error)}<td>{row.measured:.4g} {row.unit}</td>"
            f"<td>{row.predicted:.4g} {row.unit}</td></tr>"
        )
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'


def _messages(comparison: Validation) -> str:
    rows = [row for row in comparison.rows if row.kind in KINDS[2:6]]
    if not rows:
        return ""
    curves = []
    for nodes, ranks, layout in sorted({(row.nodes, row.ranks, row.layout) for row in rows}):
        for case in MESSAGES:
            here = [row for row in rows if (row.case, row.nodes, row.ranks) == (case, nodes, ranks)]
            if here:
                curves.append(_curve(f"{TITLES[case]}, {layout}", here))
    legend = (
        '<ul class="legend"><li><i class="dot"></i>measured</li>'
        '<li><i class="stroke"></i>predicted</li></ul>'
    )
    return (
        f'{legend}<div class="curves">{"".join(curves)}</div>'
        f"<details><summary>All {len(rows)} figures</summary>{_table(rows)}</details>"
    )


def _curve(title: str, rows: Sequence[ValidatedFigure]) -> str:
    """Measured points and the predicted line by bytes, both axes logarithmic."""
    rows = sorted(rows, key=lambda row: row.nbytes)
    one = summary("", rows)
    assert one is not None
    values = [value for row in rows for value in (row.measured, row.predicted)]
    low, high = math.log10(min(values)), math.log10(max(values))
    low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)
    first, last = math.log2(rows[0].nbytes), math.log2(rows[-1].nbytes)

    def x(nbytes: int) -> float:
        part = (math.log2(nbytes) - first) / (last - first) if last > first else 0.5
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        part = (math.log10(value) - low) / (high - low)
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)

    drawn = []
    for power in range(low, high + 1):
        at = y(10.0**power)
        drawn.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>')
        drawn.append(
            f'<text x="{LEFT - 5}" y="{at + 3:.1f}" text-anchor="end">{10.0**power:g}</text>'
        )
    step = max(1, round((last - first) / 6))
    for row in rows:
        log = round(math.log2(row.nbytes))
        if (log - round(first)) % step == 0:
            unit = SIZES[log // 10 * 10]
            drawn.append(
                f'<text x="{x(row.nbytes):.1f}" y="{HEIGHT - 10}" text-anchor="middle">'
                f"{row.nbytes >> (log // 10 * 10)}{unit}</text>"
            )
    line = " ".join(f"{x(row.nbytes):.1f},{y(row.predicted):.1f}" for row in rows)
    drawn.append(f'<polyline class="predicted" points="{line}"/>')
    for row in rows:
        drawn.append(
            f'<circle class="measured" cx="{x(row.nbytes):.1f}" cy="{y(row.measured):.1f}" r="3">'
            f"<title>{row.nbytes:,} B: measured {row.measured:.4g} {row.unit}, predicted "
            f"{row.predicted:.4g} ({percent(row.error, PLUS)})</title></circle>"
        )
    return (
        f"<figure><figcaption>{escape(title)} ({rows[0].unit}); mean error {percent(one.mean)}, "
        f"worst {percent(one.worst, PLUS)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">{"".join(drawn)}</svg></figure>'
    )


def _facts(comparison: Validation, recordings: Sequence[str], remarks: Sequence[str]) -> str:
    facts: dict[str, set[str]] = {}
    for job in comparison.jobs:
        for name, value in job.facts.items():
            facts.setdefault(name, set()).add(value)
        facts.setdefault("nodes x ranks", set()).add(job.layout)
        facts.setdefault("hosts", set()).update(job.hosts)
        for name, why in job.skipped.items():
            facts.setdefault("not run", set()).add(f"{name} on {job.layout}: {why}")
    lines = [f"<dt>files</dt><dd>{escape(', '.join(recordings))}</dd>"]
    lines += [
        f"<dt>{escape(name)}</dt><dd>{escape(', '.join(sorted(values)))}</dd>"
        for name, values in facts.items()
    ]
    lines += [
        f"<dt>remark</dt><dd>{escape(remark)}</dd>" for remark in (*comparison.remarks(), *remarks)
    ]
    return f"<dl>{''.join(lines)}</dl>"
