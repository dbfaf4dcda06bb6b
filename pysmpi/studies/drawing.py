"""Pictures of studies, by matplotlib."""

from __future__ import annotations

import textwrap
from pathlib import Path

from pysmpi.studies.framework import PaperStudy, StudyResult


def draw(study: PaperStudy, result: StudyResult, path: Path) -> None:
    """Draw all panels of a result side by side; the ending of `path` chooses the format."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = study.name  # the same file for the same figures
    count = len(result.panels)
    columns = min(count, 3)
    rows = -(-count // columns)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(5.2 * columns, 3.9 * rows), squeeze=False, layout="constrained"
    )
    for place in axes.flat[count:]:
        place.set_visible(False)
    for place, panel in zip(axes.flat, result.panels):
        for curve in panel.curves:
            place.plot(curve.x, curve.y, curve.style, label=curve.label, markersize=4)
        if "x" in panel.log:
            place.set_xscale("log", base=2)
        if "y" in panel.log:
            place.set_yscale("log")
        elif all(value >= 0 for curve in panel.curves for value in curve.y):
            place.set_ylim(bottom=0)
        if panel.ticks:
            place.set_xticks(range(len(panel.ticks)), panel.ticks, fontsize=8)
        place.set_title(panel.title, fontsize=10)
        place.set_xlabel(panel.x)
        place.set_ylabel(panel.y)
        place.grid(alpha=0.3)
        if len(panel.curves) > 1:
            place.legend(fontsize=8)
    title = textwrap.fill(f"{study.name}: {study.figure}", 52 * columns)
    figure.suptitle(title, fontsize=11)
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, metadata=metadata)
    pyplot.close(figure)
