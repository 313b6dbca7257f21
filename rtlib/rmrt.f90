! librmrt for Fortran 2008: see rmrt(3), and rm/rmrt.h for what the calls do.
!
! Installed as source: what a compiler makes of a module is for this version of this compiler alone. It is compiled with the program:
!
!      mpifort -O2 -o program $(pkg-config --variable=fsource rmrt) program.f90 $(pkg-config --cflags --libs rmrt)
!
! `ierror` is 0 or a negative errno value, and may be left out.
module rmrt
  use, intrinsic :: iso_c_binding, only: c_bool, c_double, c_funloc, c_funptr, c_int, c_int64_t, c_null_ptr, c_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  implicit none
  private

  public :: rmrt_init, rmrt_is_managed, rmrt_is_respawned, rmrt_step, rmrt_goal, rmrt_at, rmrt_exclude, rmrt_include, &
            rmrt_checkpoint_here, rmrt_own_state, rmrt_finalize

  ! As enum rmrt_event.
  integer(c_int), parameter, public :: rmrt_before_move = 1, rmrt_before_checkpoint = 2, rmrt_after_move = 3, &
                                       rmrt_after_checkpoint = 4, rmrt_after_restart = 5

  ! Numbers of either size; both of a call are of the same.
  interface rmrt_step
    module procedure step_int64, step_int32
  end interface

  ! What rmrt_at() calls. `data` is what it was given.
  abstract interface
    subroutine rmrt_event_sub(event, data) bind(c)
      import :: c_int, c_ptr
      integer(c_int), value :: event
      type(c_ptr), value :: data
    end subroutine
  end interface
  public :: rmrt_event_sub

  interface
    integer(c_int) function c_init() bind(c, name='rmrt_init')
      import :: c_int
    end function
    logical(c_bool) function c_is_managed() bind(c, name='rmrt_is_managed')
      import :: c_bool
    end function
    logical(c_bool) function c_is_respawned() bind(c, name='rmrt_is_respawned')
      import :: c_bool
    end function
    integer(c_int) function c_step(done, total) bind(c, name='rmrt_step')
      import :: c_int, c_int64_t
      integer(c_int64_t), value :: done, total
    end function
    integer(c_int) function c_goal(steps_min, steps_max) bind(c, name='rmrt_goal')
      import :: c_double, c_int
      real(c_double), value :: steps_min, steps_max
    end function
    integer(c_int) function c_at(event, fn, data) bind(c, name='rmrt_at')
      import :: c_funptr, c_int, c_ptr
      integer(c_int), value :: event
      type(c_funptr), value :: fn
      type(c_ptr), value :: data
    end function
    integer(c_int) function c_exclude(memory, bytes) bind(c, name='rmrt_exclude')
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: memory
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function c_include(memory, bytes) bind(c, name='rmrt_include')
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: memory
      integer(c_size_t), value :: bytes
    end function
    subroutine c_checkpoint_here() bind(c, name='rmrt_checkpoint_here')
    end subroutine
    subroutine c_own_state(own) bind(c, name='rmrt_own_state')
      import :: c_bool
      logical(c_bool), value :: own
    end subroutine
    subroutine c_finalize() bind(c, name='rmrt_finalize')
    end subroutine
  end interface

contains

  subroutine tell(r, ierror)
    integer(c_int), intent(in) :: r
    integer, intent(out), optional :: ierror

    if (present(ierror)) ierror = r
  end subroutine

  subroutine rmrt_init(ierror)
    integer, intent(out), optional :: ierror

    call tell(c_init(), ierror)
  end subroutine

  logical function rmrt_is_managed()
    rmrt_is_managed = c_is_managed()
  end function

  logical function rmrt_is_respawned()
    rmrt_is_respawned = c_is_respawned()
  end function

  subroutine step_int64(done, total, ierror)
    integer(int64), intent(in) :: done, total
    integer, intent(out), optional :: ierror

    if (done < 0 .or. total < 0) then ! C has no sign there, and answers what is wrong by its own value of EINVAL
      call tell(c_step(2_c_int64_t, 1_c_int64_t), ierror)
    else
      call tell(c_step(done, total), ierror)
    end if
  end subroutine

  subroutine step_int32(done, total, ierror)
    integer(int32), intent(in) :: done, total
    integer, intent(out), optional :: ierror

    call step_int64(int(done, int64), int(total, int64), ierror)
  end subroutine

  subroutine rmrt_goal(steps_min, steps_max, ierror)
    real(real64), intent(in) :: steps_min, steps_max
    integer, intent(out), optional :: ierror

    call tell(c_goal(steps_min, steps_max), ierror)
  end subroutine

  subroutine rmrt_at(event, sub, data, ierror)
    integer(c_int), intent(in) :: event
    procedure(rmrt_event_sub) :: sub
    type(c_ptr), intent(in), optional :: data
    integer, intent(out), optional :: ierror
    type(c_ptr) :: given

    given = c_null_ptr
    if (present(data)) given = data
    call tell(c_at(event, c_funloc(sub), given), ierror)
  end subroutine

  ! `memory` is c_loc() of an array, `bytes` c_sizeof() of all of it.
  subroutine rmrt_exclude(memory, bytes, ierror)
    type(c_ptr), intent(in) :: memory
    integer(c_size_t), intent(in) :: bytes
    integer, intent(out), optional :: ierror

    call tell(c_exclude(memory, bytes), ierror)
  end subroutine

  subroutine rmrt_include(memory, bytes, ierror)
    type(c_ptr), intent(in) :: memory
    integer(c_size_t), intent(in) :: bytes
    integer, intent(out), optional :: ierror

    call tell(c_include(memory, bytes), ierror)
  end subroutine

  subroutine rmrt_checkpoint_here()
    call c_checkpoint_here()
  end subroutine

  subroutine rmrt_own_state(own)
    logical, intent(in) :: own

    call c_own_state(logical(own, c_bool))
  end subroutine

  subroutine rmrt_finalize()
    call c_finalize()
  end subroutine

end module
