"""Records what SMPI predicts for point-to-point patterns that start at time 0.

    python tests/data/record_exact.py

Writes `p2p_exact.jsonl.gz` beside this program.  Every figure comes from a smpirun of its own, so
no rank's clock has to be aligned and the figures are exact to all their digits.  Needs SMPI
(Debian: libsimgrid-dev).
"""

import gzip
import json
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLATFORMS = ("flat", "shared_backbone", "graphene", "fat_tree", "torus", "dragonfly")
MODELS = ("default", "hybrid")
RANKS = (5, 16)
SIZES = (1, 1421, 65536, 400000)  # eager and detached, at the thresholds, rendezvous
PATTERNS = (
    "pingpong",
    "send_late_recv",
    "late_send_recv",
    "ssend_late_recv",
    "isend_wait",
    "ring",
    "pairs",
    "far_pairs",
    "oneway_far",
    "incast",
    "fanout",
    "halo",
    "wave",
    "staggered",
    "anysource",
)


def main() -> None:
    """Compile the C program, run every case, write the rows."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        program, hosts = Path(name) / "patterns", Path(name) / "hosts.txt"
        subprocess.run(["smpicc", "-O2", HERE / "patterns.c", "-o", program], check=True)
        for platform in PLATFORMS:
            for ranks in RANKS:
                step = 144 // ranks if platform == "graphene" else 1
                prefix = "graphene" if platform == "graphene" else "n"
                hosts.write_text("".join(f"{prefix}-{rank * step}\n" for rank in range(ranks)))
                for model in MODELS:
                    machine = HERE / "platforms" / f"{platform}.{model}.xml"
                    command = ["smpirun", "-np", str(ranks), "-platform", str(machine)]
                    command += ["-hostfile", str(hosts), "--log=root.thres:critical"]
                    command += ["--cfg=smpi/simulate-computation:no", "--cfg=smpi/wtime:0"]
                    for pattern in PATTERNS:
                        for size in SIZES:
                            done = subprocess.run(
                                [*command, str(program), pattern, str(size)],
                                stdout=subprocess.PIPE,
                                text=True,
                                check=True,
                            )
                            rows.append(
                                {
                                    "platform": platform,
                                    "model": model,
                                    "pattern": pattern,
                                    "ranks": ranks,
                                    "bytes": size,
                                    "seconds": [float(line) for line in done.stdout.split()],
                                }
                            )
    # No time stamp in the archive: the same figures make the same file.
    with gzip.GzipFile(HERE / "p2p_exact.jsonl.gz", "wb", mtime=0) as file:
        for row in rows:
            file.write((json.dumps(row, separators=(",", ":")) + "\n").encode())


if __name__ == "__main__":
    main()
