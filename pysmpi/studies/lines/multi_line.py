"""Figure 5 and section 3.1: ping-pongs of one line and of several."""

from __future__ import annotations

from pysmpi.memory.lines import pingpong
from pysmpi.studies.framework import FITTED, FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.lines.model import PHI, costs, ns
from pysmpi.studies.runs import one_way

LINES = (1, 2, 4, 8, 16, 32, 64, 128)


@study(
    "Figure 5, latency of a multi-line ping-pong",
    "The full model gives the printed times of a line, and o N + q - p / N those of several",
)
def run(quick: bool) -> StudyResult:
    """Both states of the buffers."""
    model = costs()
    rows = []
    for state, printed, measured in (("exclusive", 479.1, 497.1), ("invalid", 748.1, 842.8)):
        found = ns(pingpong.single_line(model, state, simplified=False))
        rows.append(
            FigureRow(f"one line, send buffer {state}: ns", f"{printed} (measured {measured})",
                f"{found:.1f}", holds=abs(found - printed) < 0.2)
        )  # fmt: skip
    panels = []
    for state, (per_line, startup, saved) in (
        ("exclusive", (76.0, 1521.0, 1096.0)), ("invalid", (94.9, 2750.0, 2017.5)),
    ):  # fmt: skip
        ours = [ns(pingpong.multi_line(model, lines, state)) for lines in LINES]
        formula = [per_line * lines + startup - saved / lines for lines in LINES]
        worst = max(abs(a / b - 1) for a, b in zip(ours, formula))
        rows.append(
            FigureRow(f"N lines, {state}: ns", f"{per_line} N + {startup} - {saved} / N",
                f"at most {100 * worst:.1f} % off", FITTED, worst < 1e-6)
        )  # fmt: skip
        curves = [
            PictureCurve("pysmpi", LINES, ours),
            PictureCurve("printed", LINES, formula, "k--"),
        ]
        panels.append(Panel(f"Ping-pong, {state}", "lines", "ns", curves, "x"))
    sizes = (8, 128, 512)
    times = {8: 479.1, 128: 1125.0, 512: 1992.0}
    for size, seconds in zip(sizes, one_way(PHI, "lines", sizes, 1)):
        rows.append(
            FigureRow(f"a run with --memory-model lines, {size} bytes: ns", f"{times[size]}",
                f"{ns(seconds):.1f}", holds=abs(ns(seconds) - times[size]) < 0.1)
        )  # fmt: skip
    return StudyResult(rows, panels)
