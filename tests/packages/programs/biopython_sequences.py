"""Sequences of Biopython: translated, aligned, parsed and compared between ranks."""

from __future__ import annotations

import io
import random

from Bio import Align, SeqIO
from Bio.Align import substitution_matrices
from Bio.Phylo.TreeConstruction import DistanceMatrix, DistanceTreeConstructor
from Bio.Seq import Seq
from Bio.SeqRecord import SeqRecord
from Bio.SeqUtils import MeltingTemp, gc_fraction, molecular_weight
from mpi4py import MPI

comm = MPI.COMM_WORLD
random.seed(1)
ancestor = "ATG" + "".join(random.choice("ACGT") for _ in range(240))
random.seed(100 + comm.rank)
letters = [random.choice("ACGT") if random.random() < 0.1 else one for one in ancestor]
sequence = Seq("".join(letters))
print(comm.rank, gc_fraction(sequence), MeltingTemp.Tm_NN(sequence[:30]), sequence.count("AT"))
print(comm.rank, sequence.translate(to_stop=False)[:40], molecular_weight(sequence))
record = SeqRecord(
    sequence, id=f"s{comm.rank}", description="made", annotations={"molecule_type": "DNA"}
)
text = io.StringIO()
SeqIO.write([record, record.reverse_complement(id="rc", annotations=True)], text, "genbank")
parsed = list(SeqIO.parse(io.StringIO(text.getvalue()), "genbank"))
print(comm.rank, len(parsed), parsed[1].seq == sequence.reverse_complement())
records = comm.allgather(record)
aligner = Align.PairwiseAligner(mode="global", open_gap_score=-5, extend_gap_score=-0.5)
aligner.substitution_matrix = substitution_matrices.load("NUC.4.4")
scores = [aligner.score(sequence, other.seq) for other in records]
print(comm.rank, scores, aligner.align(sequence[:20], records[0].seq[:20])[0].shape)
rows = comm.allgather([1 - score / scores[comm.rank] for score in scores])
matrix = DistanceMatrix(
    [one.id for one in records],
    [[round(rows[i][j], 6) for j in range(i)] + [0] for i in range(comm.size)],
)
tree = DistanceTreeConstructor().upgma(matrix)
print(comm.rank, tree.total_branch_length(), sorted(leaf.name for leaf in tree.get_terminals()))
protein = aligner.__class__(scoring="blastp")
print(
    comm.rank,
    protein.score(
        sequence.translate().replace("*", "X"), records[0].translate().seq.replace("*", "X")
    ),
)
