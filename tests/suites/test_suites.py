"""Programs in C become programs of mpi4py with the same output, errors and lines."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import pysmpi
from tests.mbi.source import Code
from tests.suites.labels import labelled
from tests.suites.translate import Translator, Untranslated

pytestmark = pytest.mark.skipif(shutil.which("cpp") is None, reason="there is no C preprocessor")

HEAD = "#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
RIGHT = (
    HEAD
    + r"""
#define N 4
struct pair { int a; double b[2]; };
int seen = 0;
static void fill(int *where, int n, int value) {
  int i;
  for (i = 0; i < n; i++, seen++)
    *where++ = value + i;
}
static int sum(const int *where, int n) {
  int total = 0;
  while (n > 0) {
    n--;
    total += where[n];
  }
  return total;
}
int main(int argc, char **argv) {
  int rank, size, flag = 0, big = 7 / 2;
  int data[N] = {1}, table[2][N];
  double part = 1;
  int *heap = (int *)malloc(N * sizeof(int)), *second = heap + 1;
  struct pair one = {3, {1.5, 2.5}};
  char word[8];
  MPI_Request requests[2];
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  fill(heap, N, 10 * (rank + 1));
  memcpy(data, heap, sizeof(data));
  memset(&table[1][0], 0, N * sizeof(int));
  table[1][2] = second[0] == heap[1] ? 5 : 6;
  switch (rank) {
  case 0:
    big += 10;
    break;
  default:
    big += 20;
  }
  MPI_Isend(&data[1], 2, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(table[0], 2, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  if (rank == 0) {
    if (MPI_Send(&one, sizeof(one), MPI_BYTE, 1, 8, MPI_COMM_WORLD) == MPI_SUCCESS)
      flag = 1;
  }
  if (rank == 1) {
    struct pair other;
    MPI_Recv(&other, sizeof(other), MPI_BYTE, 0, 8, MPI_COMM_WORLD, &status);
    one.b[1] += other.a;
    flag = status.MPI_TAG;
  }
  MPI_Allreduce(MPI_IN_PLACE, &part, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  do {
    flag--;
  } while (flag > 5);
  for (int i = 0; i < 3; i++) {
    int data = i;
    if (data == 1)
      continue;
    big += data;
  }
  if (flag > 100 && big++ < 0)
    big = 0;
  if (rank == 1 || big++ > 0)
    seen++;
  for (int i = 0; i < 3; i++)
    if (seen > 4)
      goto done;
  big = 0;
done:
  heap = (int *)realloc(heap, 2 * N * sizeof(int));
  strcpy(word, "ab");
  seen += strcmp(word, "aa");
  printf("%d: %d %d %d %d %d %.1f %.1f %d\n", rank, table[0][0], table[1][2], sum(heap, N), seen,
         big, one.b[1], part, flag);
  free(heap);
  MPI_Finalize();
  return 0;
}
"""
)
RACE = (
    HEAD
    + """
#include <omp.h>
int main(int argc, char **argv) {
  int rank, provided, *base, value = 0, count = 0;
  MPI_Win win;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Win_allocate(10 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
#pragma omp parallel num_threads(2)
  {
#pragma omp for
    for (int i = 0; i < 10; i++)
      base[i] = i;
#pragma omp critical
    count++;
#pragma omp single
    {
#pragma omp task
      {
#pragma omp critical
        count += 10;
      }
    }
#pragma omp sections
    {
#pragma omp section
      count += 100;
#pragma omp section
      { if (omp_get_thread_num() > 1) count = 0; }
    }
  }
  MPI_Win_fence(0, win);
  if (rank == 0) {
    // CONFLICT
    MPI_Get(&value, 1, MPI_INT, 1, 3, 1, MPI_INT, win);
    // CONFLICT
    value = 42;
  }
  MPI_Win_fence(0, win);
  printf("%d %d\\n", count, base[9]);
  MPI_Win_free(&win);
  MPI_Finalize();
  return 0;
}
"""
)


def test_a_translated_program_computes_the_same(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, program = tmp_path / "right.c", tmp_path / "right.py"
    source.write_text(RIGHT)
    program.write_text(Translator(source).translate()[0])
    pysmpi.run(str(program), nprocs=2, check="all")
    assert sorted(capfd.readouterr().out.splitlines()) == [
        "0: 21 5 46 6 16 2.5 2.0 0", "1: 11 5 86 6 25 5.5 2.0 5",
    ]  # fmt: skip


def test_an_error_keeps_its_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, program = tmp_path / "race-local-yes.c", tmp_path / "race.py"
    source.write_text(RACE)
    text, lines = Translator(source).translate()
    program.write_text(text)
    (code,) = labelled(source)
    marked = {i + 1 for i, line in enumerate(RACE.splitlines(), 1) if "// CONFLICT" in line}
    assert code == Code(source, 2, (), True, "local race", frozenset(marked))
    with pytest.raises(pysmpi.ProgramError) as caught:
        pysmpi.run(str(program), nprocs=2, check="all")
    (finding,) = caught.value.result.findings
    assert finding.code == "PSM124"
    sites = {place.site.line for place in finding.places if place.site is not None}
    assert {lines[line - 1] for line in sites} == marked
    assert capfd.readouterr().out.splitlines() == ["112 9"] * 2


@pytest.mark.parametrize(("line", "reason"), [
    ("again: goto again;", "goto"), ("unknown(1);", "function unknown"),
    ("if (argc++) argc = 0;", "a side effect"), ("int *p = &argc; p--;", "goes back"),
])  # fmt: skip
def test_what_has_no_counterpart_is_named(tmp_path: Path, line: str, reason: str) -> None:
    source = tmp_path / "other.c"
    source.write_text(HEAD + "int main(int argc, char **argv) { " + line + " return 0; }\n")
    with pytest.raises(Untranslated, match=reason):
        Translator(source).translate()
