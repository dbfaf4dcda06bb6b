"""Figures 8 and 9: broadcast trees of one line."""

from __future__ import annotations

from collections.abc import Callable

from pysmpi.memory.lines import broadcast
from pysmpi.memory.lines.costs import LineCosts
from pysmpi.studies.framework import FITTED, FigureRow, Panel, PictureCurve, StudyResult, study
from pysmpi.studies.lines.model import NS, costs, ns

THREADS = (4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 60)
Children = dict[int, list[int]]


def flat(threads: int) -> Children:
    """All threads are children of the root."""
    return {0: list(range(1, threads))}


def k_nomial(threads: int, base: int) -> Children:
    """Each step, every thread that has the line gives it to `base` - 1 others."""
    children: Children = {}
    have = 1
    while have < threads:
        for parent in range(have):
            new = [parent + step * have for step in range(1, base)]
            children.setdefault(parent, []).extend(child for child in new if child < threads)
        have *= base
    return children


def fibonacci(threads: int, overhead: float) -> Children:
    """The tree that is optimal in LogP with L = 1 and o = `overhead` = g: earliest ends first."""
    children: Children = {}
    ready = [(overhead * 2 + 1.0, 0)]  # when the next child of a thread has the line
    for child in range(1, threads):
        ready.sort()
        time, parent = ready.pop(0)
        children.setdefault(parent, []).append(child)
        ready += [(time + overhead, parent), (time + 2 * overhead + 1.0, child)]
    return children


def seconds(
    model: LineCosts, children: Children, grouped: Callable[[list[int]], list[list[int]]]
) -> float:
    """Seconds until the root knows that all have the line.

    A parent notifies (R_I + 2 R_L), the children of a group copy together (equation 3), and write
    one line that the parent reads (equation 5).
    """

    def finish(node: int) -> float:
        """From the time at which a node has the line."""
        now, last = 0.0, 0.0
        for group in grouped(children.get(node, [])):
            now += model.R_I + 2 * model.R_L + model.contended(len(group))
            last = max(last, *(now + finish(child) for child in group))
        count = len(children.get(node, []))
        return last + broadcast.notify_back(model, count + 1) if count else 0.0

    return model.R_I + finish(0)


def together(nodes: list[int]) -> list[list[int]]:
    """All children at the same time."""
    return [nodes] if nodes else []


def one_by_one(nodes: list[int]) -> list[list[int]]:
    """Children one after the other, as trees of LogP have them."""
    return [[node] for node in nodes]


@study(
    "Figures 8 and 9, trees of a small broadcast",
    "The tree that the model tunes is faster than flat, binomial, 3-nomial and Fibonacci trees",
)
def run(quick: bool) -> StudyResult:
    """Times of the trees by the number of threads."""
    model = costs()
    rows = []
    # Figure 8: 10 threads with k = 3, 2 take 5 c + 2 b with b = R_L + R_R - c.
    found = broadcast.copy_down(model, (3, 2))
    c = model.contention
    expected = 5 * c + 2 * (model.R_L + model.R_R - c)
    rows.append(
        FigureRow("figure 8: 10 threads, k = 3, 2", "5 c + 2 b", f"{ns(found):.1f} ns",
            holds=abs(found - expected) < 1e-3 * NS)
    )  # fmt: skip
    for threads, printed in ((30, (5, 5)), (60, (4, 4, 3))):
        tree = broadcast.best_small(model, threads)
        rows.append(
            FigureRow(f"tuned tree of {threads} threads", f"k = {', '.join(map(str, printed))}",
                f"k = {', '.join(map(str, tree))}", FITTED, tree == printed)
        )  # fmt: skip
    kinds: dict[str, Callable[[int], float]] = {
        "tuned": lambda n: broadcast.small(model, broadcast.best_small(model, n)),
        "flat": lambda n: broadcast.small(model, (n - 1,)),
        "binomial": lambda n: seconds(model, k_nomial(n, 2), one_by_one),
        "3-nomial": lambda n: seconds(model, k_nomial(n, 3), together),
        "Fibonacci, o = L/2": lambda n: seconds(model, fibonacci(n, 0.5), one_by_one),
        "Fibonacci, o = L/4": lambda n: seconds(model, fibonacci(n, 0.25), one_by_one),
    }
    times = {name: [ns(kind(n)) for n in THREADS] for name, kind in kinds.items()}
    for name, values in times.items():
        if name != "tuned":
            slower = [a / b for a, b in zip(values, times["tuned"])]
            rows.append(
                FigureRow(f"{name} / tuned, 30 threads and more", "above 1",
                    f"{min(slower[7:]):.2f} to {max(slower[7:]):.2f}", holds=min(slower[7:]) > 1)
            )  # fmt: skip
    curves = [PictureCurve(name, THREADS, values) for name, values in times.items()]
    return StudyResult(rows, [Panel("Broadcast of one line", "threads", "ns", curves)])
