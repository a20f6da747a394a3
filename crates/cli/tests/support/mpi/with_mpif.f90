program with_mpif
      implicit none
      include 'mpif.h'
      integer :: rank, ranks, right, value, got, ierr, req(2), copy
      call MPI_Init(ierr)
      include 'body.inc'
end program
