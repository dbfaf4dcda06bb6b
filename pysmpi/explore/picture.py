"""The page of failures: space-time diagrams of an order that fails and of the default order.

The lines of the ranks run downwards, one step for each decision. A message is an arrow from the
step before which it was sent to the decision that takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from pysmpi.explore.events import DrawnDecision
from pysmpi.explore.exploration import FailingOrder

MOST: Final = 200  # steps of a diagram
BEFORE: Final = 8  # steps before the first that differs, of a longer order
_STEP, _RANK, _LEFT, _TOP = 26, 64, 44, 34  # lengths (pixels)


def page(title: str, failures: Sequence[FailingOrder]) -> str:
    """The text of the page: HTML that needs nothing else."""
    parts = [_section(number, failure) for number, failure in enumerate(failures, 1)]
    if not parts:
        parts = ["<p>No failure was found.</p>\n"]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}: orders of events</title>\n<style>{_STYLE}</style></head><body>\n"
        f"<h1>{escape(title)}: orders of events</h1>\n{''.join(parts)}</body></html>\n"
    )


def _section(number: int, failure: FailingOrder) -> str:
    lines = failure.error.strip().splitlines() or [failure.cause]
    told = [f"<h2>Failure {number}: {escape(lines[0])}</h2>"]
    if len(lines) > 1:
        told.append(f"<pre>{escape(chr(10).join(lines[1:]))}</pre>")
    for one in failure.remedies:
        told.append(f"<p>{one.verdict.capitalize()} if {escape(one.text)}.</p>")
    if failure.command:
        told.append(f"<p>Repeat it: <code>{escape(failure.command)}</code></p>")
    passing, failing = failure.passing_steps, failure.steps
    parting = failure.parting
    begin = 0
    if parting is not None and max(len(passing), len(failing)) > MOST:
        begin = max(0, parting - BEFORE)
    ranks = 1 + max((max(one.rank, one.sender) for one in (*passing, *failing)), default=0)
    fatal = failure.inevitable
    orders = []
    if passing:
        which = "Another order passes" if failure.passing_schedule else "The default order passes"
        orders.append(_order(which, passing, failing, parting, begin, ranks))
    if failing:
        name = "This order fails"
        orders.append(_order(name, failing, passing, parting, begin, ranks, fatal))
    return f'<section>{"".join(told)}<div class="orders">{"".join(orders)}</div></section>\n'


def _order(
    name: str,
    steps: Sequence[DrawnDecision],
    others: Sequence[DrawnDecision],
    parting: int | None,
    begin: int,
    ranks: int,
    fatal: int | None = None,
) -> str:
    """The diagram of an order and the list of its decisions; those that differ are marked."""
    shown = list(enumerate(steps))[begin : begin + MOST]
    width = _LEFT + ranks * _RANK
    height = _TOP + (len(shown) + 1) * _STEP
    drawn = [
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
        f"<title>{escape(name)}</title>"
    ]
    for rank in range(ranks):
        x = _across(rank)
        drawn.append(
            f'<text class="rank" x="{x}" y="16">rank {rank}</text>'
            f'<line class="rank" x1="{x}" y1="{_TOP - 10}" x2="{x}" y2="{height}"/>'
        )
    listed = []
    for i, step in shown:
        differs = parting is not None and (i >= len(others) or others[i].name != step.name)
        kind = ' class="differs"' if differs else ""
        y = _down(i - begin)
        x = _across(step.rank)
        arrow = ""
        if step.sender >= 0:
            since = max(-0.5, step.sent - begin - 0.5)
            arrow = _arrow(_across(step.sender), _down(since), x, y, step.sender == step.rank)
        drawn.append(
            f"<g{kind}><title>{escape(step.text)}</title>{arrow}"
            f'<circle cx="{x}" cy="{y}" r="6"/><text x="6" y="{y + 4:g}">{i + 1}</text></g>'
        )
        if fatal == i + 1:
            low = y + _STEP / 2
            drawn.append(
                f'<line class="fatal" x1="0" y1="{low:g}" x2="{width}" y2="{low:g}">'
                "<title>Every tried order fails from here on</title></line>"
            )
        after = " <b>Every tried order fails from here on.</b>" if fatal == i + 1 else ""
        listed.append(f'<li value="{i + 1}"{kind}>{escape(step.text)}{after}</li>')
    drawn.append("</svg>")
    more = len(steps) - begin - len(shown)
    rest = f"<p>{more:,} later decisions are not shown.</p>" if more > 0 else ""
    return (
        f'<article><h3>{escape(name)}</h3><div class="wide">{"".join(drawn)}</div>'
        f"<ol>{''.join(listed)}</ol>{rest}</article>"
    )


def _across(rank: int) -> int:
    return _LEFT + rank * _RANK + _RANK // 2


def _down(step: float) -> float:
    return _TOP + (step + 0.5) * _STEP


def _arrow(x: float, y: float, end: float, low: float, loop: bool) -> str:
    """An arrow to a circle; a message of a rank to itself goes around its line."""
    if loop:
        return f'<path d="M{x} {y:g} Q{x + 30} {(y + low) / 2:g} {end + 7} {low:g}"/>'
    side = -1 if end > x else 1
    return (
        f'<path d="M{x} {y:g} L{end + 7 * side} {low:g}"/>'
        f'<path class="head" d="M{end + 6 * side} {low:g} l{7 * side} -4 v8 z"/>'
    )


_STYLE: Final = """
:root { color-scheme: light dark; --back: #fff; --text: #1c2330; --quiet: #667085; --line: #c3cad6;
  --dot: #3b6fd4; --differs: #c2410c; --fatal: #b3123f; --panel: #f5f7fa; }
@media (prefers-color-scheme: dark) { :root { --back: #12161d; --text: #e4e8ef; --quiet: #98a2b3;
  --line: #3a4454; --dot: #7aa5ff; --differs: #ff9a5c; --fatal: #ff6b93; --panel: #1a202a; } }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; background: var(--back);
  color: var(--text); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.3rem } h2 { font-size: 1.1rem; overflow-wrap: anywhere } h3 { font-size: 1rem }
pre, code { background: var(--panel); border-radius: 4px; font-size: 13px }
pre { padding: .6rem; overflow-x: auto } code { padding: .1rem .3rem; overflow-wrap: anywhere }
.orders { display: flex; flex-wrap: wrap; gap: 1.5rem } article { flex: 1 1 22rem; min-width: 0 }
.wide { overflow-x: auto } svg { display: block } svg text { font: 12px system-ui, sans-serif;
  fill: var(--quiet) } svg text.rank { text-anchor: middle } line.rank { stroke: var(--line) }
circle { fill: var(--dot) } path { fill: none; stroke: var(--dot); stroke-width: 1.5 }
path.head { fill: var(--dot); stroke: none } .differs circle, .differs path.head {
  fill: var(--differs) } .differs path { stroke: var(--differs) }
svg .differs text { fill: var(--differs); font-weight: 600 } .fatal { stroke: var(--fatal);
  stroke-width: 2; stroke-dasharray: 5 4 } ol { padding-left: 2.4rem; font-size: 13px;
  overflow-wrap: anywhere } li.differs { color: var(--differs) } li b { color: var(--fatal) }
"""
