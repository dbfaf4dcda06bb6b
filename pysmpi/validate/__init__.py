"""Predictions beside measurements: of a real machine, on its description.

`program` measures on the real machine. `script` writes it as one file, with jobs for its batch
system. `recording` reads what it left there, or the output of OSU's programs. `prediction` runs the
same program on the described machine, `comparison` puts both side by side and says what to
calibrate, `page` shows it.
"""
