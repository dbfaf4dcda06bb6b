"""Sweeps: one program on many machines, under many models, on several cores and computers.

A sweep is a set of cases, the product of its axes (`study`). Dask distributed gives the cases to
workers (`scheduling`); each worker thread has a server process that forks a process for every case
(`workers`, `server`). The results of cases are kept in a journal as they arrive (`journal`), from
which an interrupted sweep goes on, and become a table (`table`) and pictures (`plots`).
"""
