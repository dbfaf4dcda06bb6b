/* Executes the lines of a random program under SMPI: interpreter DIRECTORY. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROOM (1 << 24)
#define MOST 512

static char *word[4096];
static int number(int i) { return atoi(word[i]); }

static void sleep_for(double seconds) {
  if (seconds > 0) {
    long nanoseconds = (long)(seconds * 1e9 + 0.5);
    struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    nanosleep(&time, NULL);
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int me;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  char name[4096];
  snprintf(name, sizeof name, "%s/%d.program", argv[1], me);
  FILE *file = fopen(name, "r");
  if (!file) return 2;
  char *send = calloc(1, ROOM), *receive = calloc(1, ROOM), *line = NULL;
  size_t room = 0;
  MPI_Comm comms[16] = {MPI_COMM_WORLD};
  MPI_Request requests[MOST];
  MPI_Win window = MPI_WIN_NULL;
  double times[1024];
  int readings = 0, a[64], b[64], c[64], d[64];
  for (int i = 0; i < MOST; i++) requests[i] = MPI_REQUEST_NULL;
  while (getline(&line, &room, file) > 0) {
    int count = 0;
    for (char *p = strtok(line, " \n"); p; p = strtok(NULL, " \n")) word[count++] = p;
    if (!count) continue;
    char *op = word[0];
#define IS(text) !strcmp(op, text)
#define COMM comms[number(1)]
#define BYTES(i) number(i), MPI_BYTE
    if (IS("time")) times[readings++] = MPI_Wtime();
    else if (IS("align")) sleep_for(number(1) - MPI_Wtime());
    else if (IS("sleep")) sleep_for(number(1) * 1e-6);
    else if (IS("send")) MPI_Send(send, BYTES(4), number(2), number(3), COMM);
    else if (IS("ssend")) MPI_Ssend(send, BYTES(4), number(2), number(3), COMM);
    else if (IS("recv"))
      MPI_Recv(receive, BYTES(4), number(2), number(3), COMM, MPI_STATUS_IGNORE);
    else if (IS("isend"))
      MPI_Isend(send, BYTES(4), number(2), number(3), COMM, &requests[number(5)]);
    else if (IS("issend"))
      MPI_Issend(send, BYTES(4), number(2), number(3), COMM, &requests[number(5)]);
    else if (IS("irecv"))
      MPI_Irecv(receive, BYTES(4), number(2), number(3), COMM, &requests[number(5)]);
    else if (IS("send_init"))
      MPI_Send_init(send, BYTES(4), number(2), number(3), COMM, &requests[number(5)]);
    else if (IS("recv_init"))
      MPI_Recv_init(receive, BYTES(4), number(2), number(3), COMM, &requests[number(5)]);
    else if (IS("startall")) MPI_Startall(number(1), requests);
    else if (IS("wait")) MPI_Wait(&requests[number(1)], MPI_STATUS_IGNORE);
    else if (IS("waitall")) MPI_Waitall(number(1), requests, MPI_STATUSES_IGNORE);
    else if (IS("sendrecv"))
      MPI_Sendrecv(send, BYTES(3), number(2), 9, receive, BYTES(5), number(4), 9, COMM,
                   MPI_STATUS_IGNORE);
    else if (IS("dup")) MPI_Comm_dup(MPI_COMM_WORLD, &comms[number(1)]);
    else if (IS("split")) MPI_Comm_split(MPI_COMM_WORLD, number(1), me, &comms[number(2)]);
    else if (IS("window"))
      MPI_Win_create(receive, ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    else if (IS("fence")) MPI_Win_fence(0, window);
    else if (IS("put")) MPI_Put(send, BYTES(2), number(1), 0, BYTES(2), window);
    else if (IS("get")) MPI_Get(send, BYTES(2), number(1), 0, BYTES(2), window);
    else if (IS("accumulate"))
      MPI_Accumulate(send, number(2) / 4, MPI_INT, number(1), 0, number(2) / 4, MPI_INT, MPI_SUM,
                     window);
    else {
      MPI_Comm comm = COMM;
      int root = number(2), n = count > 3 ? number(3) : 0, size, rank;
      MPI_Request *q = &requests[0];
      MPI_Comm_size(comm, &size);
      MPI_Comm_rank(comm, &rank);
      for (int i = 0, at = 0, from = 0; i < size; i++) {
        a[i] = count > 3 + i ? number(3 + i) : 0;
        b[i] = at;
        at += a[i];
        c[i] = count > 3 + size + i ? number(3 + size + i) : 0;
        d[i] = from;
        from += c[i];
      }
#define REDUCED send, receive, n, MPI_INT, MPI_SUM
#define SAME send, n, MPI_BYTE, receive, n, MPI_BYTE
      if (IS("barrier")) MPI_Barrier(comm);
      else if (IS("bcast")) MPI_Bcast(send, n, MPI_BYTE, root, comm);
      else if (IS("reduce")) MPI_Reduce(REDUCED, root, comm);
      else if (IS("allreduce")) MPI_Allreduce(REDUCED, comm);
      else if (IS("scan")) MPI_Scan(REDUCED, comm);
      else if (IS("exscan")) MPI_Exscan(REDUCED, comm);
      else if (IS("gather")) MPI_Gather(SAME, root, comm);
      else if (IS("scatter")) MPI_Scatter(SAME, root, comm);
      else if (IS("allgather")) MPI_Allgather(SAME, comm);
      else if (IS("alltoall")) MPI_Alltoall(SAME, comm);
      else if (IS("reduce_scatter_block")) MPI_Reduce_scatter_block(REDUCED, comm);
      else if (IS("reduce_scatter")) MPI_Reduce_scatter(send, receive, a, MPI_INT, MPI_SUM, comm);
      else if (IS("gatherv"))
        MPI_Gatherv(send, a[rank], MPI_BYTE, receive, a, b, MPI_BYTE, root, comm);
      else if (IS("scatterv"))
        MPI_Scatterv(send, a, b, MPI_BYTE, receive, a[rank], MPI_BYTE, root, comm);
      else if (IS("allgatherv"))
        MPI_Allgatherv(send, a[rank], MPI_BYTE, receive, a, b, MPI_BYTE, comm);
      else if (IS("alltoallv"))
        MPI_Alltoallv(send, a, b, MPI_BYTE, receive, c, d, MPI_BYTE, comm);
      else if (IS("ibcast")) MPI_Ibcast(send, n, MPI_BYTE, root, comm, q);
      else if (IS("ireduce")) MPI_Ireduce(REDUCED, root, comm, q);
      else if (IS("iallreduce")) MPI_Iallreduce(REDUCED, comm, q);
      else if (IS("iscan")) MPI_Iscan(REDUCED, comm, q);
      else if (IS("iexscan")) MPI_Iexscan(REDUCED, comm, q);
      else if (IS("igather")) MPI_Igather(SAME, root, comm, q);
      else if (IS("iscatter")) MPI_Iscatter(SAME, root, comm, q);
      else if (IS("iallgather")) MPI_Iallgather(SAME, comm, q);
      else if (IS("ialltoall")) MPI_Ialltoall(SAME, comm, q);
      else if (IS("ireduce_scatter_block")) MPI_Ireduce_scatter_block(REDUCED, comm, q);
      else MPI_Abort(MPI_COMM_WORLD, 2);
    }
  }
  fclose(file);
  snprintf(name, sizeof name, "%s/%d.times", argv[1], me);
  file = fopen(name, "w");
  for (int i = 0; i < readings; i++) fprintf(file, "%.13g\n", times[i]);
  fclose(file);
  MPI_Finalize();
  return 0;
}
