"""The figures and tables of five papers, one study each: `python -m studies`.

A study runs what a figure shows, compares the result with what the paper prints, and draws it. Its
file is in the folder of its paper, and its name is that of the file: `smpi.alltoall`.
"""
