"""Tables, trees, markup and syntax of rich, printed by each rank in turn."""

from __future__ import annotations

from mpi4py import MPI
from rich.console import Console
from rich.markdown import Markdown
from rich.panel import Panel
from rich.progress import track
from rich.syntax import Syntax
from rich.table import Table
from rich.tree import Tree

comm = MPI.COMM_WORLD
console = Console(width=70, force_terminal=False, record=True)
rows = comm.allgather((comm.rank, comm.rank**2 / 7, f"[bold]r{comm.rank}[/bold]"))
for turn in range(comm.size):
    if turn == comm.rank:
        table = Table(title=f"seen by {comm.rank}", show_lines=True)
        for name in ("rank", "value", "name"):
            table.add_column(name, justify="right")
        for rank, value, name in rows:
            table.add_row(str(rank), f"{value + comm.rank:.4f}", name)
        console.print(table)
        tree = Tree(f"rank {comm.rank}")
        for k in range(comm.rank + 1):
            tree.add(f"leaf {k}").add(f"[red]{k * comm.rank}[/]")
        console.print(Panel(tree))
        console.print(Markdown(f"# Rank {comm.rank}\n\n- one\n- **two**\n\n> three"))
        console.print(Syntax("for x in y:\n    z(x)", "python", line_numbers=True))
        console.print({"data": list(range(30)), "rank": comm.rank})
    comm.barrier()
total = sum(k for k in track(range(50), console=Console(quiet=True)))
print(comm.rank, total, len(console.export_text()), comm.allreduce(len(console.export_html())))
try:
    1 / (comm.rank - comm.rank)
except ZeroDivisionError:
    console.print_exception(show_locals=False, width=60, suppress=[])
