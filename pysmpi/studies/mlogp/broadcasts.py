"""The common part of figures 3 and 4: errors of the two models for a broadcast."""

from __future__ import annotations

from pysmpi.studies.framework import FITTED, PREDICTED, FigureRow, Panel, PictureCurve, StudyResult
from pysmpi.studies.mlogp.costs import by_bcast, label, rows, summary

NEAR = 1.5  # errors of a model are as printed within this factor
SMALL = 2.0  # and those of the better model may be this much (percent) above the printed ones


def broadcast(
    kind: str,
    printed: dict[str, tuple[float, float]],
    quick: bool,
    remark: str,
    half: str = "",
    variant: str = "",
) -> StudyResult:
    """Rows and picture of "linear" or "binomial"; `printed` has mean and largest errors (%).

    `half` is the suffix of the predictions with the measured part of the sender. They are judged
    where they exist, and those with half of the cost of a message are beside them.
    """
    found, totals = rows(quick), summary(quick)
    table = []
    for model, name in (("log_3P", "log_3P"), ("2log", "2log_{2,3}P")):
        for index, which in enumerate(("mean", "largest")):
            plain = totals[f"{kind} {model}, {which} error"]
            ours, paper = totals[f"{kind} {model}{half}, {which} error"], printed[model][index]
            if model == "log_3P":
                holds = paper / NEAR < ours < paper * NEAR
            else:
                holds = ours < paper + SMALL
            table.append(
                FigureRow(f"{name}, {which} error", f"{paper} %", f"{ours:.2f} %",
                    FITTED if half else PREDICTED, None if quick else holds,
                    f"{plain:.1f} %" if half else "")
            )  # fmt: skip
    over = all(row[f"{kind} log_3P{half}"] > row[kind] for row in found)
    table.append(FigureRow("log_3P predicts too much", "always", str(over), holds=over))
    nearer = sum(
        abs(row[f"{kind} 2log{half}"] - row[kind]) < abs(row[f"{kind} log_3P{half}"] - row[kind])
        for row in found
    )
    table.append(
        FigureRow("2log_{2,3}P is nearer", "everywhere", f"at {nearer} of {len(found)} points",
            holds=nearer == len(found))
    )  # fmt: skip
    for model, name in (("log_3P", "log_3P"), ("2log_23P", "2log_{2,3}P")):
        ratios = by_bcast(quick, model, kind)
        table.append(
            FigureRow(f"MPI_Bcast with --model {model} / the formula of {name}", "1",
                f"{min(ratios):.3f} to {max(ratios):.3f}",
                holds=max(abs(ratio - 1) for ratio in ratios) < 0.02)
        )  # fmt: skip
    places = range(len(found))
    lines = [(kind, "simulated", "ko-"), (f"{kind} log_3P", "log_3P, predicted", "s--"),
             (f"{kind} 2log", "2log_{2,3}P, predicted", "^--")]  # fmt: skip
    if half:
        lines += [(f"{kind} log_3P{half}", "log_3P, fitted", "s:"),
                  (f"{kind} 2log{half}", "2log_{2,3}P, fitted", "^:")]  # fmt: skip
    curves = [
        PictureCurve(name, places, [row[key] * 1e6 for row in found], style)
        for key, name, style in lines
    ]
    names = [label(row) for row in found]
    panel = Panel(
        f"{kind} broadcast, 64 ranks on 8 nodes", "size and stride", "us", curves, "y", names
    )
    return StudyResult(table, [panel], remark, variant)
