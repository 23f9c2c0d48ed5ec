package syscall_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	osbench "hardtack/bench/os"
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
	if os.Getpid() == 1 {
		playAll()
	}
	syscall.Init()
	os.Exit(m.Run())
}

// The machine's text is what playAll says; Linux may say more.
const (
	marker   = "|"
	beginsAt = "script "
)

// playAll is process 1 of a Linux that is there to answer all scripts.
func playAll() {
	for _, dir := range []string{"/dev", "/tmp", "/proc"} {
		check(os.MkdirAll(dir, 0o755))
	}
	check(unix.Mount("none", "/dev", "devtmpfs", 0, ""))
	for _, s := range scripts {
		cmd := exec.Command("/bench/init")
		cmd.Env = []string{linuxScript + "=" + s.name, "GODEBUG=asyncpreemptoff=1"}
		cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET | unix.CLONE_NEWUTS}
		out, err := cmd.Output()
		text := string(out)
		if err != nil {
			text += "script failed: " + err.Error() + "\n"
		}
		fmt.Println(marker + beginsAt + s.name)
		for line := range strings.Lines(text) {
			fmt.Print(marker + line)
		}
	}
	unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)
}

// askedLinux boots Linux 6.1 and returns what it answers to each script.
func askedLinux(t *testing.T) map[string]string {
	dirs, err := osbench.FindDirs()
	if err != nil {
		t.Fatal(err)
	}
	linux, err := osbench.Linux(dirs)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(os.Args[0]) // this test, which must be static: CGO_ENABLED=0
	if err != nil {
		t.Fatal(err)
	}
	root := osbench.Tree{}
	root.Add("bench/init", 0o755, program)
	boot := osbench.Boot{OS: osbench.OnLinux, Root: root, CPUs: 1, Memory: "1G", Machine: "microvm",
		Timeout: 5 * time.Minute, Args: []string{"-cpu", "max,la57=off"}}
	m, err := boot.Start(dirs, linux)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = m.Wait() // what it said tells whether it did its work
	answers, name := map[string]string{}, ""
	for line := range strings.Lines(m.Output()) {
		line, ours := strings.CutPrefix(strings.ReplaceAll(line, "\r", ""), marker)
		if next, begins := strings.CutPrefix(line, beginsAt); ours && begins && !strings.Contains(next, "failed") {
			name = strings.TrimSpace(next)
		} else if ours {
			answers[name] += line
		}
	}
	if len(answers) < len(scripts) {
		t.Fatalf("Linux answered %d of %d scripts:\n%s", len(answers), len(scripts), m.Output())
	}
	return answers
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
