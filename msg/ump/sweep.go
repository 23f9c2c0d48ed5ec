package ump

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A listener without a place of its own has a directory in the one for temporary files:
// temporary and a random number, with a socket called socketName.
const (
	temporary  = "hardtack-msg-"
	socketName = "socket"
)

// Bounds of a sweep.
const (
	sweepAge = time.Minute // younger directories may be about to get a socket
	sweepMax = 1000        // entries that are looked at
)

// sweepOnce removes, once in a process, what killed processes of this user have left.
var sweepOnce = sync.OnceFunc(func() { sweep(os.TempDir(), time.Now().Add(-sweepAge)) })

// sweep removes directories of this user that were made before a time and have a socket
// at which nobody listens.
func sweep(parent string, before time.Time) {
	d, err := os.Open(parent)
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(sweepMax) // an error: fewer
	for _, name := range names {
		if !strings.HasPrefix(name, temporary) {
			continue
		}
		dir := filepath.Join(parent, name)
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || info.ModTime().After(before) {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			continue
		}
		if deserted(filepath.Join(dir, socketName)) {
			os.Remove(filepath.Join(dir, socketName))
			os.Remove(dir) // not if there is more in it
		}
	}
}

// deserted says whether nobody listens at a socket, or there is none.
func deserted(path string) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT)
}
