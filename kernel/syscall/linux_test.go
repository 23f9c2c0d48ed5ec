package syscall_test

import (
	"encoding/binary"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"hardtack/kernel/syscall"
)

var le = binary.LittleEndian

// linuxScript names the script that a process is to run on Linux.
const linuxScript = "HARDTACK_SYSCALL_SCRIPT"

func TestMain(m *testing.M) {
	if name := os.Getenv(linuxScript); name != "" {
		runtime.LockOSThread()
		for _, s := range scripts {
			if s.name == name {
				playOnLinux(s)
			}
		}
		os.Exit(1)
	}
	syscall.Init()
	os.Exit(m.Run())
}

// outFD is where the script's notes go: a number that no script reaches.
const outFD = 900

func playOnLinux(s script) {
	must := func(err error) {
		if err != nil {
			println(err.Error())
			os.Exit(1)
		}
	}
	must(unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	must(unix.Mount("none", "/tmp", "tmpfs", 0, ""))
	must(unix.Dup3(1, outFD, unix.O_CLOEXEC))
	must(unix.CloseRange(3, outFD-1, 0))
	// The arena is the script's, not Go's: it goes by its number alone.
	_, _, e := unix.Syscall6(unix.SYS_MMAP, arena, arenaSize, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uintptr(0), 0)
	if e != 0 {
		must(e)
	}
	text := play(host{}, s)
	for len(text) > 0 {
		n, err := unix.Write(outFD, []byte(text))
		must(err)
		text = text[n:]
	}
	unix.Exit(0)
}

// host is this machine's Linux.
type host struct{}

func (host) call(nr uint64, a [6]uint64) uint64 {
	v, _, e := unix.Syscall6(uintptr(nr), uintptr(a[0]), uintptr(a[1]), uintptr(a[2]), uintptr(a[3]), uintptr(a[4]), uintptr(a[5]))
	if e != 0 {
		return uint64(-int64(e))
	}
	return uint64(v)
}

func (host) read(b []byte, addr uint64) {
	if len(b) > 0 {
		_, err := unix.ProcessVMReadv(os.Getpid(), local(b), remote(addr, len(b)), 0)
		check(err)
	}
}

func (host) write(addr uint64, b []byte) {
	if len(b) > 0 {
		_, err := unix.ProcessVMWritev(os.Getpid(), local(b), remote(addr, len(b)), 0)
		check(err)
	}
}

func local(b []byte) []unix.Iovec {
	v := []unix.Iovec{{Base: &b[0]}}
	v[0].SetLen(len(b))
	return v
}

func remote(addr uint64, n int) []unix.RemoteIovec {
	return []unix.RemoteIovec{{Base: uintptr(addr), Len: n}}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
