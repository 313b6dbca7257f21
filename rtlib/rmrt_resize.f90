! Growing and shrinking for Fortran 2008: see rmrt_resize_point(3), and rm/rmrt_resize.h for what the calls do.
!
! Installed as source, as rmrt.f90 is: this is also what speaks MPI, by the one that the program is compiled for.
!
!      mpifort -O2 -o program $(pkg-config --variable=fsource rmrt) $(pkg-config --variable=fsource_resize rmrt) program.f90 $(pkg-config --cflags --libs rmrt)
!
! Communicators and types are those of mpi_f08. `ierror` is 0 or a negative errno value, and must be given: after an error the ranks have no communicator in common.
module rmrt_resize
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int8, int32, int64
  use mpi_f08
  implicit none
  private

  public :: rmrt_resize_event, rmrt_resize_point, rmrt_redistribute

  ! What has happened.
  enum, bind(c)
    enumerator :: RMRT_UNCHANGED = 0, RMRT_RESIZED = 1, RMRT_ENDED = 2
  end enum
  public :: RMRT_UNCHANGED, RMRT_RESIZED, RMRT_ENDED

  type :: rmrt_resize_event ! struct rmrt_resize
    integer :: kind = RMRT_UNCHANGED
    integer :: before = 0, now = 0 ! active ranks; `before` is 0 at the beginning
    type(MPI_Comm) :: both ! the old communicator or the new one, whichever has more ranks
  end type

  type, bind(c) :: c_change ! struct rmrt_change
    integer(c_int64_t) :: epoch
    integer(c_int32_t) :: before, now
  end type

  ! As in rmrt, counts are of either size.
  interface rmrt_redistribute
    module procedure redistribute_int64, redistribute_int32
  end interface

  interface
    logical(c_bool) function c_is_resizable() bind(c, name='rmrt_is_resizable')
      import :: c_bool
    end function
    integer(c_int) function c_wait(change) bind(c, name='rmrt_resize_wait')
      import :: c_change, c_int
      type(c_change), intent(out) :: change
    end function
    logical(c_bool) function c_is_on() bind(c, name='rmrt_resize_is_on')
      import :: c_bool
    end function
    logical(c_bool) function c_poll(change) bind(c, name='rmrt_resize_poll')
      import :: c_bool, c_change
      type(c_change), intent(inout) :: change
    end function
    subroutine c_made(change) bind(c, name='rmrt_resize_made')
      import :: c_change
      type(c_change), intent(in) :: change
    end subroutine
  end interface

  ! Of Linux.
  integer, parameter :: EIO = 5, EINVAL = 22, EFBIG = 27
  ! As in rm/rmrt_resize.h.
  integer, parameter :: CALL_TAG = 32767

contains

  ! What MPI says, as errno.
  subroutine check(ierror)
    integer, intent(inout) :: ierror

    ierror = merge(0, -EIO, ierror == MPI_SUCCESS)
  end subroutine

  ! Ranks 0 .. `ranks` - 1, who alone call this.
  subroutine first(ranks, epoch, ret, ierror)
    integer, intent(in) :: ranks
    integer(int64), intent(in) :: epoch
    type(MPI_Comm), intent(out) :: ret
    integer, intent(out) :: ierror
    type(MPI_Group) :: world, group
    integer :: ignored

    call MPI_Comm_group(MPI_COMM_WORLD, world, ierror)
    if (ierror == MPI_SUCCESS) then
      call MPI_Group_range_incl(world, 1, reshape([0, ranks - 1, 1], [3, 1]), group, ierror)
      call MPI_Group_free(world, ignored)
    end if
    if (ierror == MPI_SUCCESS) then
      call MPI_Comm_create_group(MPI_COMM_WORLD, group, int(mod(epoch, 32768_int64)), ret, ierror)
      call MPI_Group_free(group, ignored)
    end if
    call check(ierror)
  end subroutine

  ! Ranks that were parked do not know it.
  subroutine tell_before(comm, event, ierror)
    type(MPI_Comm), intent(in) :: comm
    type(rmrt_resize_event), intent(inout) :: event
    integer, intent(out) :: ierror

    call MPI_Bcast(event%before, 1, MPI_INTEGER, 0, comm, ierror)
    call check(ierror)
  end subroutine

  ! Rank 0 calls for those that were woken: it makes the change now.
  subroutine call_woken(change, ierror)
    type(c_change), intent(in) :: change
    integer, intent(out) :: ierror
    integer(int64) :: epoch(1)
    integer :: i

    ierror = 0
    epoch(1) = change%epoch
    do i = int(change%before), int(change%now) - 1
      call MPI_Send(epoch, 1, MPI_INTEGER8, i, CALL_TAG, MPI_COMM_WORLD, ierror)
      call check(ierror)
      if (ierror < 0) return
    end do
  end subroutine

  ! 1: rank 0 has called. 0: the program has ended.
  subroutine await_call(change, ierror)
    type(c_change), intent(in) :: change
    integer, intent(out) :: ierror
    integer(int64) :: epoch(1)
    logical :: there

    epoch(1) = 0
    do while (epoch(1) /= change%epoch)
      call MPI_Iprobe(0, CALL_TAG, MPI_COMM_WORLD, there, MPI_STATUS_IGNORE, ierror)
      call check(ierror)
      if (ierror < 0) return
      if (there) then
        call MPI_Recv(epoch, 1, MPI_INTEGER8, 0, CALL_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
        call check(ierror)
        if (ierror < 0) return
      else if (.not. c_is_on()) then
        ierror = 0
        return
      end if
    end do
    ierror = 1
  end subroutine

  ! Of a rank that has no communicator: at the beginning, and after it was parked.
  subroutine join(newcomm, event, ierror)
    type(MPI_Comm), intent(out) :: newcomm
    type(rmrt_resize_event), intent(inout) :: event
    integer, intent(out) :: ierror
    type(c_change) :: change

    newcomm = MPI_COMM_NULL
    ierror = c_wait(change)
    if (ierror > 0 .and. change%epoch > 0) call await_call(change, ierror)
    if (ierror <= 0) then
      event%kind = RMRT_ENDED
      return
    end if
    if (change%now == 0) then ! a job of a fixed number
      call MPI_Comm_dup(MPI_COMM_WORLD, newcomm, ierror)
      call check(ierror)
    else
      call first(int(change%now), change%epoch, newcomm, ierror)
    end if
    if (ierror < 0) return
    event%kind = RMRT_RESIZED
    event%both = newcomm
    event%before = 0
    call MPI_Comm_size(newcomm, event%now)
    if (change%epoch > 0) call tell_before(newcomm, event, ierror)
    if (ierror == 0) call c_made(change)
  end subroutine

  subroutine change_to(comm, change, newcomm, event, ierror)
    type(MPI_Comm), intent(in) :: comm
    type(c_change), intent(in) :: change
    type(MPI_Comm), intent(out) :: newcomm
    type(rmrt_resize_event), intent(inout) :: event
    integer, intent(out) :: ierror
    integer :: rank

    event%kind = RMRT_RESIZED
    event%before = int(change%before)
    event%now = int(change%now)
    newcomm = MPI_COMM_NULL
    ierror = 0
    call MPI_Comm_rank(comm, rank)
    if (rank == 0) call call_woken(change, ierror)
    if (ierror < 0) return
    if (rank < event%now) call first(event%now, change%epoch, newcomm, ierror)
    if (ierror < 0) return
    event%both = comm
    if (event%now > event%before) then
      event%both = newcomm
      call tell_before(newcomm, event, ierror)
    end if
    if (ierror == 0) call c_made(change)
  end subroutine

  ! Collective over `comm`; `newcomm` is another variable.
  subroutine rmrt_resize_point(comm, newcomm, event, ierror)
    type(MPI_Comm), intent(in) :: comm
    type(MPI_Comm), intent(out) :: newcomm
    type(rmrt_resize_event), intent(out) :: event
    integer, intent(out) :: ierror
    type(c_change) :: change
    integer(int64) :: words(3)
    integer :: rank

    event%both = MPI_COMM_NULL
    newcomm = comm
    ierror = 0
    if (comm == MPI_COMM_NULL) then
      call join(newcomm, event, ierror)
      return
    end if
    if (.not. c_is_resizable()) return ! on all ranks alike
    change = c_change(0, 0, 0)
    call MPI_Comm_rank(comm, rank)
    if (rank == 0) then
      if (.not. c_poll(change)) change%epoch = 0
    end if
    words = [change%epoch, int(change%before, int64), int(change%now, int64)]
    call MPI_Bcast(words, 3, MPI_INTEGER8, 0, comm, ierror)
    call check(ierror)
    if (ierror < 0 .or. words(1) == 0) return
    change = c_change(words(1), int(words(2), int32), int(words(3), int32))
    call change_to(comm, change, newcomm, event, ierror)
  end subroutine

  ! How many of the elements `begin` .. `past` - 1 lie in `from` .. `to` - 1; `at`: the first of them, counted from `begin`.
  subroutine overlap(begin, past, from, to, n, at)
    integer(int64), intent(in) :: begin, past, from, to
    integer, intent(out) :: n, at

    n = int(max(min(past, to) - max(begin, from), 0_int64))
    at = 0
    if (n > 0) at = int(max(begin, from) - begin)
  end subroutine

  ! `all` has of each rank how many elements it had, and how many it gets. `counts` gets, for `rank`: sent, where, received, where; of each rank.
  subroutine shares(all, rank, counts, ierror)
    integer(int64), intent(in) :: all(:, 0:)
    integer, intent(in) :: rank
    integer, intent(out) :: counts(0:, :)
    integer, intent(out) :: ierror
    integer(int64) :: had, gets, mine(2), mine_end(2)
    integer :: i

    ierror = 0
    if (any(all > huge(i))) ierror = -EFBIG
    if (any(all < 0) .or. sum(all(1, :)) /= sum(all(2, :))) ierror = -EINVAL
    if (ierror < 0) return
    mine = sum(all(:, :rank - 1), dim=2)
    mine_end = mine + all(:, rank)
    had = 0
    gets = 0
    do i = 0, ubound(all, 2)
      call overlap(mine(1), mine_end(1), gets, gets + all(2, i), counts(i, 1), counts(i, 2))
      call overlap(mine(2), mine_end(2), had, had + all(1, i), counts(i, 3), counts(i, 4))
      had = had + all(1, i)
      gets = gets + all(2, i)
    end do
  end subroutine

  ! Memory for MPI: it looks at no more of it than the counts say.
  function buffer_of(ptr) result(buffer)
    type(c_ptr), intent(in) :: ptr
    integer(int8), pointer, contiguous :: buffer(:)
    integer(int8), save, target :: nothing(1) ! of a rank that has no array

    buffer => nothing
    if (c_associated(ptr)) call c_f_pointer(ptr, buffer, [1])
  end function

  ! `from` and `to` are c_loc() of the first element; elements lie one behind the other in memory. Without any, c_null_ptr will do. Collective over `event%both`.
  subroutine redistribute_int64(event, from, old_count, to, new_count, datatype, ierror)
    type(rmrt_resize_event), intent(in) :: event
    type(c_ptr), intent(in) :: from, to
    integer(int64), intent(in) :: old_count, new_count
    type(MPI_Datatype), intent(in) :: datatype
    integer, intent(out) :: ierror
    integer(int8), pointer, contiguous :: old(:), new(:)
    integer(int64), allocatable :: all(:, :)
    integer, allocatable :: counts(:, :)
    integer :: rank, n_ranks

    ierror = -EINVAL
    if (event%kind /= RMRT_RESIZED) return
    call MPI_Comm_rank(event%both, rank)
    call MPI_Comm_size(event%both, n_ranks)
    allocate (all(2, 0:n_ranks - 1), counts(0:n_ranks - 1, 4))
    call MPI_Allgather([old_count, new_count], 2, MPI_INTEGER8, all, 2, MPI_INTEGER8, event%both, ierror)
    call check(ierror)
    if (ierror == 0) call shares(all, rank, counts, ierror)
    if (ierror < 0) return
    old => buffer_of(from)
    new => buffer_of(to)
    call MPI_Alltoallv(old, counts(:, 1), counts(:, 2), datatype, new, counts(:, 3), counts(:, 4), datatype, event%both, ierror)
    call check(ierror)
  end subroutine

  subroutine redistribute_int32(event, from, old_count, to, new_count, datatype, ierror)
    type(rmrt_resize_event), intent(in) :: event
    type(c_ptr), intent(in) :: from, to
    integer(int32), intent(in) :: old_count, new_count
    type(MPI_Datatype), intent(in) :: datatype
    integer, intent(out) :: ierror

    call redistribute_int64(event, from, int(old_count, int64), to, int(new_count, int64), datatype, ierror)
  end subroutine

end module
