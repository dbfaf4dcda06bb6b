program g
  use mpi_f08
  implicit none
  integer :: rank, size, token
  type(MPI_Status) :: st
  type(MPI_Request) :: r
  type(MPI_Comm) :: c
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Irecv(token, 1, MPI_INTEGER, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, r)
  call MPI_Send(rank, 1, MPI_INTEGER, mod(rank+1,size), 5, MPI_COMM_WORLD)
  call MPI_Wait(r, st)
  print *, 'rank', rank, 'got', token, st%MPI_SOURCE, r == MPI_REQUEST_NULL
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank,2), 0, c)
  call MPI_Allreduce(MPI_IN_PLACE, token, 1, MPI_INTEGER, MPI_SUM, c)
  call MPI_Recv(rank, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  print *, 'sum', token, c /= MPI_COMM_WORLD
  call MPI_Finalize()
end program
