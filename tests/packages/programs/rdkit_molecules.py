"""Molecules of RDKit: descriptors, fingerprints, reactions, conformers; similarity over ranks."""

from __future__ import annotations

from mpi4py import MPI
from rdkit import Chem, DataStructs, RDLogger
from rdkit.Chem import AllChem, Descriptors, rdFingerprintGenerator, rdMolDescriptors

comm = MPI.COMM_WORLD
RDLogger.DisableLog("rdApp.*")
SMILES = [
    "CC(=O)Oc1ccccc1C(=O)O", "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "CC(C)Cc1ccc(cc1)C(C)C(=O)O",
    "OC[C@H]1OC(O)[C@H](O)[C@@H](O)[C@@H]1O", "c1ccc2c(c1)ccc1ccccc12", "CCO",
]  # fmt: skip
molecules = [Chem.MolFromSmiles(one) for one in SMILES[comm.rank :: comm.size]]
generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=1024)
for molecule in molecules:
    print(
        comm.rank, Chem.MolToSmiles(molecule), rdMolDescriptors.CalcMolFormula(molecule),
        Descriptors.MolWt(molecule), Descriptors.MolLogP(molecule), Descriptors.TPSA(molecule),
        generator.GetFingerprint(molecule).GetNumOnBits(),
    )  # fmt: skip
everything = [one for part in comm.allgather(molecules) for one in part]
prints = [generator.GetFingerprint(one) for one in everything]
print(comm.rank, DataStructs.BulkTanimotoSimilarity(prints[comm.rank], prints))
solid = Chem.AddHs(molecules[0])
print(
    comm.rank,
    AllChem.EmbedMolecule(solid, randomSeed=7),
    AllChem.MMFFOptimizeMolecule(solid) in (0, 1),
)
distances = Chem.Get3DDistanceMatrix(solid)
print(comm.rank, solid.GetNumAtoms(), round(float(distances.max()), 2))
reaction = AllChem.ReactionFromSmarts("[C:1](=[O:2])O.[N:3]>>[C:1](=[O:2])[N:3]")
products = reaction.RunReactants(
    (Chem.MolFromSmiles("CC(=O)O"), Chem.MolFromSmiles("C" * (comm.rank + 1) + "N"))
)
print(comm.rank, sorted({Chem.MolToSmiles(one[0]) for one in products}))
pattern = Chem.MolFromSmarts("c1ccccc1")
print(
    comm.rank,
    [one.HasSubstructMatch(pattern) for one in everything],
    Chem.MolFromSmiles("C1CC") is None,
)
print(comm.rank, comm.allreduce(sum(one.GetNumAtoms() for one in molecules)))
