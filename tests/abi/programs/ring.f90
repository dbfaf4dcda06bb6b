program ring
  use mpi
  implicit none
  integer :: rank, size, ierr, token, st(MPI_STATUS_SIZE), req(2), sts(MPI_STATUS_SIZE,2), idx, d, key, e
  integer(MPI_ADDRESS_KIND) :: v, lb, ex
  logical :: flag
  double precision :: x(3), y(3)
  character(len=MPI_MAX_OBJECT_NAME) :: n
  character(len=20) :: val
  external :: mx
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  call MPI_Irecv(token, 1, MPI_INTEGER, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, req(1), ierr)
  call MPI_Isend(rank, 1, MPI_INTEGER, mod(rank+1,size), 5, MPI_COMM_WORLD, req(2), ierr)
  call MPI_Waitall(2, req, sts, ierr)
  print *, 'rank', rank, 'got', token, 'from', sts(MPI_SOURCE,1), sts(MPI_TAG,1), req(1) == MPI_REQUEST_NULL
  x = rank+1
  call MPI_Allreduce(MPI_IN_PLACE, x, 3, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  call MPI_Op_create(mx, .true., e, ierr)
  idx = rank+1
  call MPI_Allreduce(MPI_IN_PLACE, idx, 1, MPI_INTEGER, e, MPI_COMM_WORLD, ierr)
  print *, 'sum', x(1), 'op', idx
  call MPI_Comm_get_name(MPI_COMM_WORLD, n, d, ierr)
  print *, trim(n), d
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, key, 77_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, d, ierr)
  call MPI_Comm_get_attr(d, key, v, flag, ierr)
  print *, 'attr', v, flag
  call MPI_Comm_get_attr(d, MPI_TAG_UB, v, flag, ierr)
  print *, 'ub', v, flag
  call MPI_Info_create(e, ierr)
  call MPI_Info_set(e, ' key ', '  some value ', ierr)
  call MPI_Info_get(e, 'key', 20, val, flag, ierr)
  print *, '[', val, ']', flag
  call MPI_Recv(idx, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call MPI_Irecv(token, 1, MPI_INTEGER, MPI_PROC_NULL, 5, MPI_COMM_WORLD, req(1), ierr)
  call MPI_Waitany(1, req, idx, st, ierr)
  print *, 'any', idx, st(MPI_SOURCE) == MPI_PROC_NULL, MPI_Wtime() >= 0
  call MPI_Comm_set_errhandler(d, MPI_ERRORS_RETURN, ierr)
  call MPI_Send(idx, 1, MPI_INTEGER, 99, 0, d, e)
  call MPI_Error_class(e, idx, ierr)
  print *, 'err', idx == MPI_ERR_RANK
  call MPI_Finalize(ierr)
end program
subroutine mx(a, b, n, t)
  use mpi
  integer :: n, t, a(n), b(n)
  if (t /= MPI_INTEGER) print *, 'bad type'
  b = b + 10*a
end subroutine
