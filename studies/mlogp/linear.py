"""Figure 3: the linear broadcast."""

from __future__ import annotations

from studies.framework import FITTED, Result, Row, study
from studies.mlogp.broadcasts import broadcast
from studies.mlogp.costs import rows, send_half

PRINTED = {"log_3P": (5.64, 15.32), "2log": (1.59, 3.61)}
LOCAL, REMOTE = 7, 56


@study(
    "Figure 3, prediction of a linear broadcast",
    "2log_{2,3}P is within 1.59 % on average and 3.61 % at most, log_3P within 5.64 and 15.32 %",
)
def run(quick: bool) -> Result:
    """Both models, and 2log_{2,3}P with the sender's own half of the cost."""
    table, result = broadcast(
        "linear",
        PRINTED,
        quick,
        "The models give each side half of the middleware's cost; here unpacking takes longer than "
        "packing. With the sender's measured half 2log_{2,3}P is nearly exact.",
    )
    errors = []
    for row in rows(quick):
        inside, between = (send_half(row["size"], row["stride"], where) for where in (True, False))
        predicted = LOCAL * inside + REMOTE * between + row["net"]
        errors.append(100 * abs(predicted / row["linear"] - 1))
    table += [
        Row("2log_{2,3}P with the sender's measured half, mean error", "1.59 %",
            f"{sum(errors) / len(errors):.2f} %", FITTED),
        Row("... largest error", "3.61 %", f"{max(errors):.2f} %", FITTED),
    ]  # fmt: skip
    return Result(table, result.panels, result.remark)
