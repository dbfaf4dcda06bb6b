"""Figure 6: the speed-up of NPB's LU on graphene."""

from __future__ import annotations

from pysmpi.studies.framework import FITTED, FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.runs import MODELS, Times, grid, speedup
from pysmpi.studies.smpi.npb_messages import lu

RANKS = (8, 16, 32, 64, 128)
EDGES = {"B": 102, "C": 162}
# Operations that NPB counts in a second of one core: the paper does not print it.
RATE = 1.1e9
ITERATIONS = 250


def seconds(edge: int, ranks: tuple[int, ...], iterations: int) -> Times:
    """Seconds of a whole run by model and number of ranks, from those of a few iterations."""
    found = grid(lu, ranks, edge, iterations, RATE)
    return {
        model: {count: each * ITERATIONS for count, each in times.items()}
        for model, times in found.items()
    }


@study(
    "Figure 6, NPB LU, classes B and C on graphene",
    "Hybrid and LogGPS predict nearly the same speed-up, fluid a larger one",
)
def run(quick: bool) -> StudyResult:
    """Both classes with three models."""
    ranks = RANKS[:2] if quick else RANKS
    rows, panels = [], []
    for name, edge in EDGES.items():
        times = seconds(edge, ranks, 1 if quick else 2)
        most = ranks[-1]
        # At the same rate of computation on 8 ranks, so that only messages differ.
        found = {
            model: {count: 8 * times["hybrid"][8] / t for count, t in each.items()}
            for model, each in times.items()
        }
        for model in MODELS:
            rows.append(
                FigureRow(f"class {name}, {most} ranks: seconds with {model}", "",
                    f"{times[model][most]:.2f}", FITTED)
            )  # fmt: skip
        near = found["loggps"][most] / found["hybrid"][most]
        above = found["fluid"][most] / found["hybrid"][most]
        rows.append(
            FigureRow(f"class {name}, {most} ranks: speed-up, LogGPS / hybrid",
                "nearly equal" if name == "B" else "slightly above 1", f"{near:.3f}",
                holds=0.9 <= near <= 1.1)
        )  # fmt: skip
        rows.append(
            FigureRow(f"class {name}, {most} ranks: speed-up, fluid / hybrid", "above 1",
                f"{above:.3f}", holds=above > 1.0)
        )  # fmt: skip
        curves = [PictureCurve("perfect", ranks, ranks, "k--")]
        curves += [
            PictureCurve(model, ranks, [found[model][count] for count in ranks]) for model in MODELS
        ]
        panels.append(Panel(f"LU, class {name}", "ranks", "speed-up", curves, "xy"))
    hybrid = speedup(times["hybrid"])
    rows.append(
        FigureRow(
            f"class C, {most} ranks: efficiency with hybrid", "", f"{hybrid[most] / most:.2f}"
        )
    )
    return StudyResult(
        rows,
        panels,
        f"The messages are those of LU, its computation takes {RATE / 1e9} G operations of NPB in "
        "a second, which is assumed.",
    )
