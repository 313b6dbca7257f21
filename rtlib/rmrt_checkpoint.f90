! librmrt-checkpoint for Fortran 2008: see rmrt_save(3), and rm/rmrt_checkpoint.h for what the calls do.
!
! Installed as source, as rmrt.f90 is: this is also what speaks MPI, by the one that the program is compiled for.
!
!      mpifort -O2 -o program $(pkg-config --variable=fsource rmrt-checkpoint) program.f90 $(pkg-config --cflags --libs rmrt-checkpoint)
!
! Communicators and types are those of mpi_f08, or the integers of the module mpi and of mpif.h. `ierror` is 0 or a negative errno value, and must be given:
! a program that does not look may go on with memory that was never saved.
module rmrt_checkpoint
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int8, int32, int64
  use mpi_f08
  implicit none
  private

  public :: rmrt_register, rmrt_unregister, rmrt_save, rmrt_restore, rmrt_set_directory, rmrt_checkpoint_error

  ! Distributions.
  enum, bind(c)
    enumerator :: RMRT_REPLICATED = 0, RMRT_BLOCK = 1, RMRT_PRIVATE = 2
  end enum
  public :: RMRT_REPLICATED, RMRT_BLOCK, RMRT_PRIVATE

  ! What was restored.
  enum, bind(c)
    enumerator :: RMRT_RESTORED_NOTHING = 0, RMRT_RESTORED_ALL = 1, RMRT_RESTORED_SHARED = 2
  end enum
  public :: RMRT_RESTORED_NOTHING, RMRT_RESTORED_ALL, RMRT_RESTORED_SHARED

  ! Of enum rmrt_kind, those that Fortran has.
  enum, bind(c)
    enumerator :: KIND_BYTES = 0, KIND_INTEGER = 1, KIND_FLOAT = 3, KIND_LOGICAL = 5
  end enum

  type, bind(c) :: c_type ! struct rmrt_type
    integer(c_int) :: kind
    integer(c_int32_t) :: unit_bytes, units
  end type

  type, bind(c) :: c_ranks ! struct rmrt_ranks
    integer(c_int) :: rank, size
    type(c_ptr) :: ctx
    type(c_funptr) :: broadcast, gather
  end type

  ! As in rmrt, counts are of either size; and handles are of either module.
  interface rmrt_register
    module procedure register_int64, register_int32, register_int64_old, register_int32_old
  end interface
  interface rmrt_save
    module procedure save_new, save_old
  end interface
  interface rmrt_restore
    module procedure restore_new, restore_old
  end interface

  interface
    integer(c_int) function c_register(name, ptr, count, type, distribution) bind(c, name='rmrt_register_typed')
      import :: c_char, c_int, c_ptr, c_size_t, c_type
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: ptr
      integer(c_size_t), value :: count
      type(c_type), intent(in) :: type
      integer(c_int), value :: distribution
    end function
    integer(c_int) function c_unregister(name) bind(c, name='rmrt_unregister')
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
    end function
    integer(c_int) function c_set_directory(path) bind(c, name='rmrt_set_directory')
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: path(*)
    end function
    integer(c_int) function c_save(ranks) bind(c, name='rmrt_save_by')
      import :: c_int, c_ranks
      type(c_ranks), intent(in) :: ranks
    end function
    integer(c_int) function c_restore(ranks) bind(c, name='rmrt_restore_by')
      import :: c_int, c_ranks
      type(c_ranks), intent(in) :: ranks
    end function
    type(c_ptr) function c_error() bind(c, name='rmrt_checkpoint_error')
      import :: c_ptr
    end function
    integer(c_size_t) function c_strlen(text) bind(c, name='strlen')
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
    end function
  end interface

  ! Of Linux.
  integer(c_int), parameter :: EIO = 5, EFBIG = 27

contains

  ! ---- how the ranks speak; `ctx` is the address of a communicator ----

  integer(c_int) function broadcast(ctx, data, bytes, root) bind(c)
    type(c_ptr), value :: ctx, data
    integer(c_size_t), value :: bytes
    integer(c_int), value :: root
    type(MPI_Comm), pointer :: comm
    integer(int8), pointer, contiguous :: buffer(:)
    integer :: ierror

    broadcast = -EFBIG
    if (bytes > huge(ierror)) return
    call c_f_pointer(ctx, comm)
    call c_f_pointer(data, buffer, [bytes])
    call MPI_Bcast(buffer, int(bytes), MPI_BYTE, root, comm, ierror)
    broadcast = merge(0_c_int, -EIO, ierror == MPI_SUCCESS)
  end function

  integer(c_int) function gather(ctx, mine, all, bytes) bind(c)
    type(c_ptr), value :: ctx, mine, all
    integer(c_size_t), value :: bytes
    type(MPI_Comm), pointer :: comm
    integer(int8), pointer, contiguous :: from(:), to(:)
    integer :: n_ranks, ierror

    gather = -EFBIG
    if (bytes > huge(ierror)) return
    call c_f_pointer(ctx, comm)
    call MPI_Comm_size(comm, n_ranks)
    call c_f_pointer(mine, from, [bytes])
    call c_f_pointer(all, to, [bytes * n_ranks])
    call MPI_Allgather(from, int(bytes), MPI_BYTE, to, int(bytes), MPI_BYTE, comm, ierror)
    gather = merge(0_c_int, -EIO, ierror == MPI_SUCCESS)
  end function

  ! `comm` is a target of the caller's, too: its address is used later.
  type(c_ranks) function ranks_of(comm)
    type(MPI_Comm), intent(in), target :: comm
    integer :: rank, n_ranks

    call MPI_Comm_rank(comm, rank)
    call MPI_Comm_size(comm, n_ranks)
    ranks_of = c_ranks(rank, n_ranks, c_loc(comm), c_funloc(broadcast), c_funloc(gather))
  end function

  ! ---- types ----

  ! An MPI has MPI_DATATYPE_NULL for a type that its compiler does not have.
  logical function is_one_of(datatype, list)
    type(MPI_Datatype), intent(in) :: datatype, list(:)
    integer :: i

    is_one_of = .false.
    do i = 1, size(list)
      is_one_of = is_one_of .or. (datatype == list(i) .and. datatype /= MPI_DATATYPE_NULL)
    end do
  end function

  ! With no units, which the library refuses, if it is none of these.
  type(c_type) function named_type(datatype)
    type(MPI_Datatype), intent(in) :: datatype
    integer :: bytes

    named_type = c_type(KIND_BYTES, 0, 0)
    if (is_one_of(datatype, [MPI_BYTE, MPI_CHARACTER, MPI_CHAR])) then
      named_type = c_type(KIND_BYTES, 0, 1)
    else if (is_one_of(datatype, [MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8, MPI_INT, MPI_LONG, &
                                  MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_AINT, MPI_OFFSET, MPI_COUNT])) then
      named_type = c_type(KIND_INTEGER, 0, 1)
    else if (is_one_of(datatype, [MPI_REAL, MPI_REAL4, MPI_REAL8, MPI_DOUBLE_PRECISION, MPI_FLOAT, MPI_DOUBLE])) then
      named_type = c_type(KIND_FLOAT, 0, 1)
    else if (is_one_of(datatype, [MPI_COMPLEX, MPI_COMPLEX8, MPI_COMPLEX16, MPI_DOUBLE_COMPLEX])) then
      named_type = c_type(KIND_FLOAT, 0, 2)
    else if (is_one_of(datatype, [MPI_LOGICAL])) then
      named_type = c_type(KIND_LOGICAL, 0, 1)
    end if
    if (named_type%units == 0) return
    call MPI_Type_size(datatype, bytes)
    named_type%unit_bytes = bytes / named_type%units
  end function

  integer function combiner_of(datatype)
    type(MPI_Datatype), intent(in) :: datatype
    integer :: n_integers, n_addresses, n_types

    call MPI_Type_get_envelope(datatype, n_integers, n_addresses, n_types, combiner_of)
  end function

  ! Also of rows of those (MPI_Type_contiguous()), and of rows of rows.
  recursive function type_of(datatype) result(known)
    type(MPI_Datatype), intent(in) :: datatype
    type(c_type) :: known
    integer :: combiner, n(1)
    integer(MPI_ADDRESS_KIND) :: addresses(1)
    type(MPI_Datatype) :: inner(1)

    known = named_type(datatype)
    if (known%units > 0 .or. datatype == MPI_DATATYPE_NULL) return
    combiner = combiner_of(datatype)
    if (combiner /= MPI_COMBINER_DUP .and. combiner /= MPI_COMBINER_CONTIGUOUS) return
    n = 1
    call MPI_Type_get_contents(datatype, merge(1, 0, combiner == MPI_COMBINER_CONTIGUOUS), 0, 1, n, addresses, inner)
    known = type_of(inner(1))
    if (n(1) <= 0 .or. int(known%units, int64) * n(1) > huge(known%units)) n = 0
    known%units = known%units * n(1)
    ! Only types that are not named are ours to free.
    if (combiner_of(inner(1)) /= MPI_COMBINER_NAMED) call MPI_Type_free(inner(1))
  end function

  ! ---- what programs call ----

  ! `ptr` is c_loc() of the first element; elements lie one behind the other in memory.
  subroutine register_int64(name, ptr, count, datatype, distribution, ierror)
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: ptr
    integer(int64), intent(in) :: count
    type(MPI_Datatype), intent(in) :: datatype
    integer(c_int), intent(in) :: distribution
    integer, intent(out) :: ierror

    ! C has no sign there: what is negative has too many elements.
    ierror = c_register(trim(name)//c_null_char, ptr, int(count, c_size_t), type_of(datatype), distribution)
  end subroutine

  subroutine register_int32(name, ptr, count, datatype, distribution, ierror)
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: ptr
    integer(int32), intent(in) :: count
    type(MPI_Datatype), intent(in) :: datatype
    integer(c_int), intent(in) :: distribution
    integer, intent(out) :: ierror

    call register_int64(name, ptr, int(count, int64), datatype, distribution, ierror)
  end subroutine

  subroutine register_int64_old(name, ptr, count, datatype, distribution, ierror)
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: ptr
    integer(int64), intent(in) :: count
    integer, intent(in) :: datatype
    integer(c_int), intent(in) :: distribution
    integer, intent(out) :: ierror

    call register_int64(name, ptr, count, MPI_Datatype(datatype), distribution, ierror)
  end subroutine

  subroutine register_int32_old(name, ptr, count, datatype, distribution, ierror)
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: ptr
    integer(int32), intent(in) :: count
    integer, intent(in) :: datatype
    integer(c_int), intent(in) :: distribution
    integer, intent(out) :: ierror

    call register_int64(name, ptr, int(count, int64), MPI_Datatype(datatype), distribution, ierror)
  end subroutine

  subroutine rmrt_unregister(name, ierror)
    character(*), intent(in) :: name
    integer, intent(out) :: ierror

    ierror = c_unregister(trim(name)//c_null_char)
  end subroutine

  subroutine save_new(comm, ierror)
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out) :: ierror
    type(MPI_Comm), target :: own

    own = comm
    ierror = c_save(ranks_of(own))
  end subroutine

  subroutine save_old(comm, ierror)
    integer, intent(in) :: comm
    integer, intent(out) :: ierror

    call save_new(MPI_Comm(comm), ierror)
  end subroutine

  subroutine restore_new(comm, restored, ierror)
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out) :: restored, ierror
    type(MPI_Comm), target :: own
    integer(c_int) :: r

    own = comm
    r = c_restore(ranks_of(own))
    restored = max(r, RMRT_RESTORED_NOTHING)
    ierror = min(r, 0)
  end subroutine

  subroutine restore_old(comm, restored, ierror)
    integer, intent(in) :: comm
    integer, intent(out) :: restored, ierror

    call restore_new(MPI_Comm(comm), restored, ierror)
  end subroutine

  subroutine rmrt_set_directory(path, ierror)
    character(*), intent(in) :: path
    integer, intent(out) :: ierror

    ierror = c_set_directory(trim(path)//c_null_char)
  end subroutine

  function rmrt_checkpoint_error() result(text)
    character(:), allocatable :: text
    character(kind=c_char), pointer :: from(:)
    integer :: i

    call c_f_pointer(c_error(), from, [c_strlen(c_error())])
    allocate (character(size(from)) :: text)
    do i = 1, size(from)
      text(i:i) = from(i)
    end do
  end function

end module
