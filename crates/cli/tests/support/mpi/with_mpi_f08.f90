program with_mpi_f08
      use mpi_f08
      implicit none
      integer :: rank, ranks, right, value, got, ierr
      type(MPI_Request) :: req(2)
      type(MPI_Comm) :: copy
      call MPI_Init(ierr)
      include 'body.inc'
end program
