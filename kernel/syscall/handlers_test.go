package syscall_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/process/proctest"
	"hardtack/kernel/syscall"
)

// handlers are the kernel's system calls, made by a thread of kernel/process/proctest's world.
type handlers struct{ t *proc.Thread }

func (h handlers) call(nr uint64, a [6]uint64) uint64 {
	u := &h.t.User
	u.RAX, u.RDI, u.RSI, u.RDX, u.R10, u.R8, u.R9 = nr, a[0], a[1], a[2], a[3], a[4], a[5]
	syscall.Do(h.t)
	if !h.t.Return() {
		panic("the thread must end")
	}
	return u.RAX
}

func (h handlers) read(b []byte, addr uint64) {
	if _, e := h.t.Space.CopyIn(b, uio.Addr(addr)); e != 0 {
		panic(e)
	}
}

func (h handlers) write(addr uint64, b []byte) {
	if _, e := h.t.Space.CopyOut(uio.Addr(addr), b); e != 0 {
		panic(e)
	}
}

// onHardtack runs a script as a process of the world.
func onHardtack(t *testing.T, s script) (text string) {
	plug()
	proctest.AsInit(func(c *proc.Thread) {
		pid := proctest.Spawn(t, c, proctest.Fork, func(c *proc.Thread) {
			if e := arenaFor(c); e != 0 {
				t.Error(e)
				return
			}
			text = play(handlers{c}, s)
		})
		if pid == 0 {
			return
		}
		if r := proctest.Wait(t, c, pid); r.Status != 0 {
			t.Errorf("the script's process ended with status %#x", r.Status)
		}
	})
	return text
}

// arenaFor maps the arena.
func arenaFor(c *proc.Thread) linux.Errno {
	_, e := c.Space.Mmap(&c.Ctx, &vm.MapArgs{Addr: arena, Length: arenaSize,
		Prot: unix.PROT_READ | unix.PROT_WRITE, Flags: unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED})
	return e
}
