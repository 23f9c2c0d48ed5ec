package main

import (
	"fmt"

	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/syscall"
)

// The kernel parameter "strace" prints every system call to the console, for looking at
// a program that does not start.

// printFault prints the signal that a thread's own fault causes.
func printFault(t *proc.Thread, info *linux.Siginfo) {
	u := &t.User
	fmt.Printf("[%d %s] signal %d code %d trap %+v\n%+v\n", t.TID, t.Name(), info.Signo, info.Code, u.Trap, u.Regs)
	t.Space.Maps(func(m vm.MapInfo) bool {
		fmt.Printf("%+v\n", m)
		return true
	})
}

// traced makes of do a function that prints the call, too.
func traced(do func(*proc.Thread)) func(*proc.Thread) {
	return func(t *proc.Thread) {
		nr := t.User.RAX
		name := fmt.Sprint(nr)
		if c := syscall.Lookup(nr); c != nil {
			name = c.Name
		}
		pc := t.User.RIP
		do(t)
		fmt.Printf("%d [%d %s] %s(%#x) = %#x at %#x\n", clocks.Monotonic()/1e6, t.TID, t.Name(), name, t.Args, t.User.RAX, pc)
	}
}
