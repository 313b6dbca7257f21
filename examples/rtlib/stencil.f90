! Heat in a plate, as stencil.c: each rank has some of its rows, and exchanges their edges with its neighbours in each step.
!
!      mpifort -O2 -o stencil $(pkg-config --variable=fsource rmrt) $(pkg-config --variable=fsource_resize rmrt) \
!              $(pkg-config --variable=fsource rmrt-checkpoint) stencil.f90 $(pkg-config --cflags --libs rmrt rmrt-checkpoint)
!      rm-mpirun -n 4 ./stencil 100000
!      rm-mpirun -n 4 ./stencil 100000 10 1000
!      rm-mpirun -n 4 --max-ranks 16 ./stencil 100000
!
! What it tells rmd are the four calls of module rmrt; with a third number it saves the plate, and goes on from there; with --max-ranks it grows and shrinks. It ends
! early once the file exists that a fourth argument names. Both programs have the same result, to the last bit, and each goes on from what the other has
! saved.
program stencil
  use, intrinsic :: iso_c_binding, only: c_loc
  use, intrinsic :: iso_fortran_env, only: error_unit, int64, real64
  use mpi_f08
  use rmrt
  use rmrt_checkpoint
  use rmrt_resize
  implicit none

  integer, parameter :: width = 256, all_rows = 256 ! of all ranks
  integer, parameter :: stop_every = 50 ! steps: rank 0 looks for the file that ends the program

  type plate
    type(MPI_Comm) :: comm ! MPI_COMM_NULL: this rank has none of it
    integer :: rank = 0, size = 0
    integer :: rows = 0 ! of this rank; around them one of each neighbour
    real(real64), allocatable :: now(:, :), next(:, :) ! (width, row)
  end type

  type(plate), target :: p
  integer(int64), target :: done = 0
  integer(int64) :: steps, save_every
  real(real64) :: total
  logical :: active
  character(len=32) :: text
  character(len=256) :: stop_file

  call get_command_argument(4, stop_file)
  steps = int(argument(1, 10000.0_real64), int64)
  save_every = int(argument(3, 0.0_real64), int64)
  call MPI_Init()
  call rmrt_init()
  call rmrt_goal(argument(2, 0.0_real64), 0.0_real64)
  call make_plate(p, MPI_COMM_NULL)
  call resize(p, done, save_every > 0, active)
  do while (active .and. done < steps)
    call step(p)
    done = done + 1
    call rmrt_step(done, steps)
    if (save_every > 0) then
      if (mod(done, save_every) == 0 .or. done == steps) call save(p, done)
    end if
    if (stop_file /= '') then
      if (must_stop(p, done)) exit
    end if
    ! Last, since ranks that come go on with the next step.
    call resize(p, done, .false., active)
  end do
  if (active) then
    total = heat(p)
    if (p%rank == 0) then
      write (text, '(es24.17e2)') total
      print '(3a, i0, a)', 'heat: ', trim(adjustl(text)), ' after ', done, ' steps'
    end if
  end if
  call rmrt_finalize()
  call MPI_Finalize()

contains

  ! All ranks end with the same step.
  logical function must_stop(p, done)
    type(plate), intent(in) :: p
    integer(int64), intent(in) :: done

    must_stop = .false.
    if (mod(done, int(stop_every, int64)) /= 0) return
    if (p%rank == 0) inquire(file=stop_file, exist=must_stop)
    call MPI_Bcast(must_stop, 1, MPI_LOGICAL, 0, p%comm)
  end function


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
  subroutine make_plate(p, comm)
    type(plate), intent(out) :: p
    type(MPI_Comm), intent(in) :: comm

    p%comm = comm
    if (comm /= MPI_COMM_NULL) then
      call MPI_Comm_rank(comm, p%rank)
      call MPI_Comm_size(comm, p%size)
      p%rows = all_rows * (p%rank + 1) / p%size - all_rows * p%rank / p%size
    end if
    allocate (p%now(width, 0:p%rows + 1), p%next(width, 0:p%rows + 1), source=0.0_real64)
    if (p%rank == 0) then
      p%now(:, 0) = 100
      p%next(:, 0) = 100
    end if
  end subroutine

  ! To as many ranks as are wanted; at the beginning these are the first. Not `active`: the program has ended without this rank.
  subroutine resize(p, done, restores, active)
    type(plate), intent(inout), target :: p
    integer(int64), intent(inout), target :: done
    logical, intent(in) :: restores
    logical, intent(out) :: active
    type(rmrt_resize_event) :: event
    type(plate), target :: old
    type(MPI_Comm) :: comm
    integer :: ierror

    do
      call rmrt_resize_point(p%comm, comm, event, ierror)
      if (ierror < 0) call MPI_Abort(MPI_COMM_WORLD, 1)
      active = event%kind /= RMRT_ENDED
      if (event%kind /= RMRT_RESIZED) return
      old = p
      call make_plate(p, comm)
      if (event%before > 0) then
        call rmrt_redistribute(event, c_loc(old%now(1, 1)), old%rows * width, c_loc(p%now(1, 1)), p%rows * width, &
                               MPI_DOUBLE_PRECISION, ierror)
        call MPI_Bcast(done, 1, MPI_INTEGER8, 0, event%both)
      else if (restores) then
        call restore(p, done)
      end if
      if (old%comm /= MPI_COMM_NULL) call MPI_Comm_free(old%comm)
      if (p%comm /= MPI_COMM_NULL) return
    end do
  end subroutine

  subroutine exchange_edges(p)
    type(plate), intent(inout) :: p
    integer :: up, down

    up = MPI_PROC_NULL
    down = MPI_PROC_NULL
    if (p%rank > 0) up = p%rank - 1
    if (p%rank + 1 < p%size) down = p%rank + 1
    call MPI_Sendrecv(p%now(:, 1), width, MPI_DOUBLE_PRECISION, up, 0, p%now(:, p%rows + 1), width, MPI_DOUBLE_PRECISION, &
                      down, 0, p%comm, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(p%now(:, p%rows), width, MPI_DOUBLE_PRECISION, down, 1, p%now(:, 0), width, MPI_DOUBLE_PRECISION, &
                      up, 1, p%comm, MPI_STATUS_IGNORE)
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

  ! Rows change their places at each step.
  subroutine register(p, done)
    type(plate), intent(in), target :: p
    integer(int64), intent(in), target :: done
    integer :: ierror

    call rmrt_register('plate', c_loc(p%now(1, 1)), p%rows * width, MPI_DOUBLE_PRECISION, RMRT_BLOCK, ierror)
    call must(p, ierror)
    call rmrt_register('done', c_loc(done), 1, MPI_INTEGER8, RMRT_REPLICATED, ierror)
    call must(p, ierror)
  end subroutine

  subroutine save(p, done)
    type(plate), intent(in), target :: p
    integer(int64), intent(in), target :: done
    integer :: ierror

    call register(p, done)
    call rmrt_save(p%comm, ierror)
    call must(p, ierror)
  end subroutine

  ! Into what is registered.
  subroutine restore(p, done)
    type(plate), intent(inout), target :: p
    integer(int64), intent(inout), target :: done
    integer :: restored, ierror

    call register(p, done)
    call rmrt_restore(p%comm, restored, ierror)
    call must(p, ierror)
    if (p%rank == 0 .and. restored /= RMRT_RESTORED_NOTHING) print '(a, i0, a)', 'goes on after ', done, ' steps'
  end subroutine

  ! Also what is no error is told: a checkpoint that was damaged, and passed over.
  subroutine must(p, ierror)
    type(plate), intent(in) :: p
    integer, intent(in) :: ierror

    if (p%rank == 0) then
      if (rmrt_checkpoint_error() /= '') write (error_unit, '(2a)') 'stencil: ', rmrt_checkpoint_error()
    end if
    if (ierror < 0) call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine

  ! Of the rows in their order, so that it is the same for each number of ranks.
  real(real64) function heat(p)
    type(plate), intent(in) :: p
    integer :: x, y

    heat = 0
    if (p%rank > 0) call MPI_Recv(heat, 1, MPI_DOUBLE_PRECISION, p%rank - 1, 2, p%comm, MPI_STATUS_IGNORE)
    do y = 1, p%rows
      do x = 1, width
        heat = heat + p%now(x, y)
      end do
    end do
    if (p%rank + 1 < p%size) call MPI_Send(heat, 1, MPI_DOUBLE_PRECISION, p%rank + 1, 2, p%comm)
    call MPI_Bcast(heat, 1, MPI_DOUBLE_PRECISION, p%size - 1, p%comm)
  end function

end program
