package reserve

import "hardtack/abi/linux"

// A call reserves what the table of needs says (table.go), and Points where not all that it
// can reach is known as a whole. The lists here are for calls of which the table says nothing,
// and for those that must not wait.
const (
	// Default is what a call reserves of which no bound is known: none was seen to have
	// more alive at once (/proc/hardtack/allocated), but that is a measurement and no
	// proof. Fork reserves what it copies besides.
	Default = 64 << 10
	// Points is for the points of reservation that a call may meet: a page fault, a table
	// that grows. It is more than any point but a few takes, and also no proof.
	Points = 16 << 10
	// Fault is what a page fault reserves. Measurements show that it allocates nothing once
	// what it works on is there.
	Fault = 4 << 10
)

// freeing are the calls that give memory back or only wait. They never wait for memory: what
// they need is in the part of the reserve that is not promised.
var freeing = [...]int{
	linux.SYS_close, linux.SYS_close_range, linux.SYS_exit, linux.SYS_exit_group, linux.SYS_munmap, linux.SYS_shmdt,
	linux.SYS_wait4, linux.SYS_waitid, linux.SYS_futex, linux.SYS_nanosleep, linux.SYS_clock_nanosleep, linux.SYS_pause,
	linux.SYS_rt_sigreturn, linux.SYS_sched_yield, linux.SYS_restart_syscall, linux.SYS_rt_sigsuspend,
}

// quiet are the calls without a bound that allocate nothing in the long run (TestAllocated).
var quiet = [...]int{linux.SYS_read, linux.SYS_pread64}

// perArgument are the calls that need so many bytes for each thing that an argument counts.
var perArgument = map[int]struct{ arg, bytes, fixed uint32 }{
	linux.SYS_poll:       {1, pollBytes, Fault},
	linux.SYS_ppoll:      {1, pollBytes, Fault},
	linux.SYS_select:     {0, pollBytes, Fault},
	linux.SYS_pselect6:   {0, pollBytes, Fault},
	linux.SYS_semop:      {2, 64, Default},
	linux.SYS_semtimedop: {2, 64, Default},
}

// pollBytes is what a file takes in a set of files that a thread waits for.
const pollBytes = 192

// bounds is what each call reserves, by its number.
var bounds = allBounds()

func allBounds() (bounds [Size]uint32) {
	for nr, n := range &Table {
		bounds[nr] = n.reserve()
	}
	for _, nr := range quiet {
		bounds[nr] = Fault
	}
	for _, nr := range freeing {
		bounds[nr] = 0
	}
	for nr, x := range perArgument {
		bounds[nr] = sized | x.fixed
	}
	return bounds
}

// sized marks the bounds of calls that are in perArgument.
const sized = 1 << 31

// reserve returns what a call with such a need reserves.
func (n Need) reserve() uint32 {
	switch b := n.Transient + n.Lasting; {
	case !n.Known:
		return Default
	case n.Whole:
		return b
	default:
		return b + Points
	}
}

// Bound returns what a call reserves, by its number and its first three arguments. Numbers
// that are no system calls are message calls, which the nucleus carries out in its own memory.
func Bound(nr, a0, a1, a2 uint64) int64 {
	if nr >= Size {
		return Fault
	}
	b := bounds[nr]
	if b&sized == 0 {
		return int64(b)
	}
	x := perArgument[int(nr)]
	count := min([...]uint64{a0, a1, a2}[x.arg], 1<<24)
	return int64(x.fixed) + int64(count)*int64(x.bytes)
}
