package ump

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"hardtack/msg"
)

const pageBytes = 4096

// mapping is mapped memory. It is unmapped when it is no longer reachable:
// nobody can know earlier that neither owner of a connection is just using it.
type mapping struct {
	mem   []byte
	unmap runtime.Cleanup
}

// free unmaps memory that nobody uses.
func (m *mapping) free() {
	m.unmap.Stop()
	unix.Munmap(m.mem)
}

// region is the mapping of f, with a descriptor of its own if there are not too
// many kept.
func (m *mapping) region(f *os.File) msg.Region {
	r := msg.Region{Mem: m.mem, Keep: m}
	if kept.Add(1) > keepMax() {
		kept.Add(-1)
		return r
	}
	own, err := dupFile(f)
	if err != nil {
		kept.Add(-1)
		return r
	}
	r.File = own
	runtime.AddCleanup(m, func(f *os.File) { // it may have been sent away and closed
		f.Close()
		kept.Add(-1)
	}, own)
	return r
}

func mapFile(f *os.File, n, prot int) (*mapping, error) {
	var mem []byte
	err := withFD(f, func(fd int) (err error) {
		mem, err = unix.Mmap(fd, 0, n, prot, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		return nil, err
	}
	m := &mapping{mem: mem}
	m.unmap = runtime.AddCleanup(m, func(mem []byte) { unix.Munmap(mem) }, mem)
	return m, nil
}

const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW

// newMemory makes a memory file of n bytes that keeps its size.
func newMemory(n int) (*os.File, error) {
	fd, err := unix.MemfdCreate("hardtack-msg", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "hardtack-msg")
	if err = f.Truncate(int64(n)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals|unix.F_SEAL_SEAL)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

var errMemory = errors.New("not a memory file of small pages")

// checkMemory checks a peer's file: memory that has n bytes and always will, so
// that looking at it cannot raise a signal.
func checkMemory(f *os.File, n int) error {
	return withFD(f, func(fd int) error {
		var st unix.Stat_t
		var fs unix.Statfs_t
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		if err := unix.Fstatfs(fd, &fs); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG || fs.Type != unix.TMPFS_MAGIC {
			return errMemory
		}
		if have, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err != nil || have&seals != seals {
			return fmt.Errorf("%w: not sealed against changes of its size", errMemory)
		}
		if st.Size != int64(n) {
			return fmt.Errorf("%d bytes of memory, not %d", st.Size, n)
		}
		return nil
	})
}

// withFD calls f with the descriptor, which stays open meanwhile.
func withFD(file *os.File, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	cerr := raw.Control(func(fd uintptr) { err = f(int(fd)) })
	return errors.Join(cerr, err)
}

// withFDs is withFD for several.
func withFDs(files []*os.File, fds []int, f func(fds []int) error) error {
	if len(files) == 0 {
		return f(fds)
	}
	return withFD(files[0], func(fd int) error { return withFDs(files[1:], append(fds, fd), f) })
}
