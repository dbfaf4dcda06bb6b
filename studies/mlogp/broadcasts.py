"""What figures 3 and 4 share: errors of the two models for a broadcast."""

from __future__ import annotations

from studies.framework import Curve, Panel, Result, Row
from studies.mlogp.costs import label, rows, summary


def broadcast(
    kind: str, printed: dict[str, tuple[float, float]], quick: bool, remark: str
) -> tuple[list[Row], Result]:
    """Rows and picture of "linear" or "binomial"; `printed` has mean and largest errors (%)."""
    found, totals = rows(quick), summary(quick)
    table = []
    for model, name in (("log_3P", "log_3P"), ("2log", "2log_{2,3}P")):
        for index, which in enumerate(("mean", "largest")):
            ours, paper = totals[f"{kind} {model}, {which} error"], printed[model][index]
            table.append(
                Row(f"{name}, {which} error", f"{paper} %", f"{ours:.1f} %",
                    holds=None if quick else abs(ours - paper) < 2)
            )  # fmt: skip
    over = all(row[f"{kind} log_3P"] > row[kind] for row in found)
    table.append(Row("log_3P predicts too much", "always", str(over), holds=over))
    nearer = sum(
        abs(row[f"{kind} 2log"] - row[kind]) < abs(row[f"{kind} log_3P"] - row[kind])
        for row in found
    )
    table.append(
        Row("2log_{2,3}P is nearer", "everywhere", f"at {nearer} of {len(found)} points",
            holds=nearer == len(found))
    )  # fmt: skip
    places = range(len(found))
    curves = [
        Curve(name, places, [row[key] * 1e6 for row in found], style)
        for key, name, style in (
            (kind, "simulated", "ko-"), (f"{kind} log_3P", "log_3P", "s--"),
            (f"{kind} 2log", "2log_{2,3}P", "^--"),
        )
    ]  # fmt: skip
    names = [label(row) for row in found]
    panel = Panel(
        f"{kind} broadcast, 64 ranks on 8 nodes", "size and stride", "us", curves, "y", names
    )
    return table, Result(table, [panel], remark)
