! Heat in a plate, as stencil.c: each rank has some of its rows, and exchanges their edges with its neighbours in each step.
!
!      mpifort -O2 -o stencil $(pkg-config --variable=fsource rmrt) stencil.f90 $(pkg-config --cflags --libs rmrt)
!      rm-mpirun -n 4 ./stencil 100000
!
! What it tells rmd are the four calls whose names begin with rmrt_. Both programs have the same result, to the last bit.
program stencil
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi_f08
  use rmrt
  implicit none

  integer, parameter :: width = 256, all_rows = 256 ! of all ranks

  type plate
    integer :: rank, size
    integer :: rows ! of this rank; around them one of each neighbour
    real(real64), allocatable :: now(:, :), next(:, :) ! (width, row)
  end type

  type(plate) :: p
  integer(int64) :: steps, i
  real(real64) :: total
  character(len=32) :: text

  steps = int(argument(1, 10000.0_real64), int64)
  call MPI_Init()
  call rmrt_init()
  call rmrt_goal(argument(2, 0.0_real64), 0.0_real64)
  call make_plate(p)
  do i = 1, steps
    call step(p)
    call rmrt_step(i, steps)
  end do
  total = heat(p)
  if (p%rank == 0) then
    write (text, '(es24.17e2)') total
    print '(3a, i0, a)', 'heat: ', trim(adjustl(text)), ' after ', steps, ' steps'
  end if
  call rmrt_finalize()
  call MPI_Finalize()

contains

  real(real64) function argument(number, otherwise)
    integer, intent(in) :: number
    real(real64), intent(in) :: otherwise
    character(len=32) :: given

    argument = otherwise
    if (command_argument_count() < number) return
    call get_command_argument(number, given)
    read (given, *) argument
  end function

  ! The upper edge of the plate is hot, the others are cold.
  subroutine make_plate(p)
    type(plate), intent(out) :: p

    call MPI_Comm_rank(MPI_COMM_WORLD, p%rank)
    call MPI_Comm_size(MPI_COMM_WORLD, p%size)
    p%rows = all_rows * (p%rank + 1) / p%size - all_rows * p%rank / p%size
    allocate (p%now(width, 0:p%rows + 1), p%next(width, 0:p%rows + 1), source=0.0_real64)
    if (p%rank == 0) then
      p%now(:, 0) = 100
      p%next(:, 0) = 100
    end if
  end subroutine

  subroutine exchange_edges(p)
    type(plate), intent(inout) :: p
    integer :: up, down

    up = MPI_PROC_NULL
    down = MPI_PROC_NULL
    if (p%rank > 0) up = p%rank - 1
    if (p%rank + 1 < p%size) down = p%rank + 1
    call MPI_Sendrecv(p%now(:, 1), width, MPI_DOUBLE_PRECISION, up, 0, p%now(:, p%rows + 1), width, MPI_DOUBLE_PRECISION, &
                      down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(p%now(:, p%rows), width, MPI_DOUBLE_PRECISION, down, 1, p%now(:, 0), width, MPI_DOUBLE_PRECISION, &
                      up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine

  subroutine step(p)
    type(plate), intent(inout) :: p
    real(real64), allocatable :: swap(:, :)
    integer :: x, y

    call exchange_edges(p)
    do y = 1, p%rows
      do x = 2, width - 1
        p%next(x, y) = (p%now(x, y - 1) + p%now(x, y + 1) + p%now(x - 1, y) + p%now(x + 1, y)) / 4
      end do
    end do
    call move_alloc(p%now, swap)
    call move_alloc(p%next, p%now)
    call move_alloc(swap, p%next)
  end subroutine

  ! Of the rows in their order, so that it is the same for each number of ranks.
  real(real64) function heat(p)
    type(plate), intent(in) :: p
    integer :: x, y

    heat = 0
    if (p%rank > 0) call MPI_Recv(heat, 1, MPI_DOUBLE_PRECISION, p%rank - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    do y = 1, p%rows
      do x = 1, width
        heat = heat + p%now(x, y)
      end do
    end do
    if (p%rank + 1 < p%size) call MPI_Send(heat, 1, MPI_DOUBLE_PRECISION, p%rank + 1, 2, MPI_COMM_WORLD)
    call MPI_Bcast(heat, 1, MPI_DOUBLE_PRECISION, p%size - 1, MPI_COMM_WORLD)
  end function

end program
