"""Plots of the measurements. Needs matplotlib (the extra `plots`)."""

from __future__ import annotations

from pathlib import Path

from pysmpi.calibrate.memory import Measured
from pysmpi.errors import UsageError
from pysmpi.python.extras import lacking

KINDS = {".png", ".svg", ".pdf"}


def ready(path: Path) -> None:
    """UsageError unless a picture can be written under this name."""
    if path.suffix.lower() not in KINDS:
        raise UsageError(f"--plot {path}: expected a name that ends in .png, .svg or .pdf")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise lacking("--plot", "plots") from None


def draw(measured: Measured, path: Path) -> None:
    """The throughput of each access by size, and the quartiles of the rounds."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter

    from pysmpi.calibrate.fragment import cpu_model, size

    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    colors: dict[str, str] = {}  # of states; loads and stores differ by their lines
    names = [near.name for near in measured.topology.distances]
    for (access, number), points in measured.curves.items():
        sizes = list(points)
        label = access if number < 0 else f"{access} ({names[number]})"
        state = access[1:] if number <= 0 else f"{access[1:]} {number}"
        color = colors.setdefault(state, f"C{len(colors) % 10}")
        style = {"L": "o-", "S": "s--", "F": "^:"}[access[0]]
        axes.plot(sizes, [f.value / 1e9 for f in points.values()], style, label=label, color=color)
        low = [f.low / 1e9 for f in points.values()]
        high = [f.value / 1e9 for f in points.values()]
        axes.fill_between(sizes, low, high, alpha=0.15, color=color)
    for cache in measured.topology.caches:
        axes.axvline(cache.size, color="0.8", zorder=0)
        axes.annotate(f"L{cache.level}", (cache.size, 0.98), xycoords=("data", "axes fraction"))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size(int(value))))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("buffer")
    axes.set_ylabel("GB/s")
    axes.set_title(f"Memory of {cpu_model()}: loads (L), stores (S), hits (H) and misses (M)")
    axes.legend(ncols=2)
    figure.savefig(path)
    pyplot.close(figure)
