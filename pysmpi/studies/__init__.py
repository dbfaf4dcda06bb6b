"""The figures and tables of five papers, one study each: `pysmpi study`.

A study repeats the experiment of a figure, compares the result with the paper, and draws it. Its
file is in the folder of its paper, and its name is that of the file: `smpi.alltoall`.
"""
