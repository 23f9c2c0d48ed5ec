package reserve

//go:generate go run hardtack/cmd/hardtack maxlive --image --started --format table --table hardtack/kernel/syscall.Call --models ../../cmd/kernel/maxlive.models -o table.go hardtack/cmd/kernel

// Need is the most heap that one system call needs, in bytes, counted in size classes:
// found from the source (docs/maxlive.md). Functions that are points of reservation are
// not counted: a page fault, a transaction of a file system. They have bounds of their own.
type Need struct {
	Transient uint32 // dead when the call returns
	Lasting   uint32 // may live longer
	Allocated uint32 // in all, what dies on the way among it; 0: not known
	Known     bool   // without it the other fields say nothing
	Whole     bool   // all points that the call can reach have a bound as well
}
