package fuzz

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hardtack/ext4"
)

const diskSize = 64 << 20

// machine is a machine for one run of the fuzzer.
type machine struct {
	kernel string // the nucleus's concurrency control, or bounds: it checks those, not its locks
	cpus   int
	user   string // of the children: 0, 1000 or mix
}

// TestFuzz runs the fuzzer on kernels that check their locks, and on one that compares what
// calls allocate with their bounds: a quarter of a minute for each machine, or as HARDTACK_STORM
// says (make storm), there with other concurrency controls too. HARDTACK_FUZZ gives all runs other
// arguments ("-n 1000000 -s 7").
func TestFuzz(t *testing.T) {
	if os.Getenv("HARDTACK_GUEST") == "" {
		t.Skip("boots a Hardtack guest; set HARDTACK_GUEST=1")
	}
	for _, need := range []string{"gcc", "qemu-system-x86_64"} {
		if _, err := exec.LookPath(need); err != nil {
			t.Skipf("needs %s", need)
		}
	}
	machines := []machine{{"big", 2, "1000"}, {"big", 1, "mix"}, {"big", 4, "0"}, {"bounds", 2, "mix"}}
	seconds := 15
	if s := os.Getenv("HARDTACK_STORM"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		seconds = n
		machines = append(machines, machine{"big", 1, "1000"}, machine{"big", 4, "1000"}, machine{"big", 2, "0"}, machine{"big", 4, "mix"},
			machine{"none", 1, "mix"}, machine{"queue", 2, "mix"}, machine{"fine", 4, "mix"}, machine{"fine", 2, "1000"},
			machine{"bounds", 1, "mix"}, machine{"bounds", 2, "1000"})
	}
	repo, dir := repository(t), t.TempDir()
	tool := filepath.Join(dir, "hardtack")
	goBuild(t, repo, tool, "./cmd/hardtack")
	root := filepath.Join(dir, "root")
	for _, d := range []string{"tmp", "proc", "dev", "sys", "etc", "run"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(root, "tmp"), 0o1777); err != nil {
		t.Fatal(err)
	}
	cBuild(t, repo, filepath.Join(root, "fuzz"))
	kernels := map[string]string{}
	for _, m := range machines {
		t.Run(fmt.Sprintf("%s %d CPUs user %s", m.kernel, m.cpus, m.user), func(t *testing.T) {
			if kernels[m.kernel] == "" {
				kernels[m.kernel] = filepath.Join(dir, m.kernel+".elf")
				build(t, repo, tool, m.kernel, kernels[m.kernel])
			}
			seed := time.Now().UnixNano() % 1_000_000_000
			argv := []string{"-t", strconv.Itoa(seconds), "-s", strconv.FormatInt(seed, 10), "-u", m.user}
			limit := time.Duration(2*seconds+240) * time.Second
			if a := os.Getenv("HARDTACK_FUZZ"); a != "" {
				argv, limit = append([]string{"-u", m.user}, strings.Fields(a)...), 12*time.Hour
			}
			run(t, tool, root, kernels[m.kernel], m, limit, argv)
		})
	}
}

// run boots a machine with a disk and judges what the fuzzer said and left behind.
func run(t *testing.T, tool, root, kernel string, m machine, limit time.Duration, argv []string) {
	disk := filepath.Join(t.TempDir(), "disk")
	if err := makeDisk(disk); err != nil {
		t.Fatal(err)
	}
	const memory = 512 << 20 // bytes
	ram := ramFile(t)
	ctx, cancel := context.WithTimeout(context.Background(), limit+time.Minute)
	defer cancel()
	args := []string{"run", "--accel", "tcg", "--timeout", limit.String(), "--cpus", strconv.Itoa(m.cpus), "--memory", strconv.Itoa(memory>>20) + "M", "--panic", "stop",
		"--kernel", kernel, "--disk", disk,
		// Memory in a file: the last calls can be read when the kernel has stopped.
		"--qemu-arg", "-object", "--qemu-arg", fmt.Sprintf("memory-backend-file,id=ram,size=%d,mem-path=%s,share=on", memory, ram),
		"--qemu-arg", "-machine", "--qemu-arg", "memory-backend=ram", root, "--", "/fuzz", "-d", "/dev/vda"}
	cmd := exec.CommandContext(ctx, tool, append(args, argv...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	text := printable(out.String())
	if err == nil && !strings.Contains(text, "fuzz: ok") {
		err = errors.New("it did not reach its end")
	}
	for _, bad := range []string{"lock order: ", "bounds: ", "panic: ", "fatal error: ", "oops: "} {
		if strings.Contains(text, "\n"+bad) {
			err = errors.Join(err, fmt.Errorf("the console says %q", bad))
		}
	}
	if err != nil {
		t.Errorf("fuzz %v: %v\n%s", argv, err, words(text, 400))
		if calls, err := lastCalls(ram); err != nil {
			t.Logf("no last calls: %v", err)
		} else {
			t.Logf("the last calls of each worker:\n%s", calls)
		}
		return
	}
	t.Log(report(text))
	if fsck, err := exec.LookPath("e2fsck"); err == nil {
		if text, err := exec.Command(fsck, "-fn", disk).CombinedOutput(); err != nil {
			t.Errorf("e2fsck: %v\n%s", err, text)
		}
	}
}

// words is what a console's text says of a failure: from where the kernel stops or the
// fuzzer judges, and the end.
func words(s string, lines int) string {
	all := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, line := range all {
		for _, begin := range []string{"lock order: ", "bounds: ", "panic: ", "fatal error: ", "fuzz: FAIL", "oops: "} {
			if strings.HasPrefix(line, begin) {
				return strings.Join(all[i:min(len(all), i+lines)], "\n") + "\n…\n" + strings.Join(all[max(0, len(all)-5):], "\n")
			}
		}
	}
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// report is the fuzzer's lines on what it did.
func report(s string) string {
	var lines []string
	for _, line := range strings.Split(s, "\n") {
		if strings.HasPrefix(line, "fuzz: seed ") || strings.HasPrefix(line, "fuzz: free ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// printable drops what a console cannot show; children write to terminals, too.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r >= ' ' && r < 0x7f {
			return r
		}
		return -1
	}, s)
}

// makeDisk makes an empty ext4 file system.
func makeDisk(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(diskSize); err != nil {
		return err
	}
	return ext4.Mkfs(ext4.NewFileDevice(f, diskSize), ext4.MkfsOptions{Zeroed: true})
}

// ramFile is a file for the machine's memory, in this machine's memory where it can be.
func ramFile(t *testing.T) string {
	dir := t.TempDir()
	if shm, err := os.MkdirTemp("/dev/shm", "fuzz"); err == nil {
		t.Cleanup(func() { os.RemoveAll(shm) })
		dir = shm
	}
	return filepath.Join(dir, "ram")
}

func repository(t *testing.T) string {
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

func goBuild(t *testing.T, repo, out, pkg string) {
	cmd := exec.Command("go", "build", "-o", out, pkg)
	cmd.Dir, cmd.Env = repo, append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, text)
	}
}

// build makes a machine's kernel.
func build(t *testing.T, repo, tool, kernel, out string) {
	args := []string{"build", "--check-locks", "--control", kernel, "-o", out}
	if kernel == "bounds" {
		args = []string{"build", "--check-bounds", "-o", out}
	}
	cmd := exec.Command(tool, args...)
	cmd.Dir = repo
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("hardtack build: %v\n%s", err, text)
	}
}

func cBuild(t *testing.T, repo, out string) {
	sources, err := filepath.Glob(filepath.Join(repo, "test", "fuzz", "guest", "*.c"))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("gcc", append([]string{"-static", "-O2", "-w", "-fno-stack-protector", "-o", out}, sources...)...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, text)
	}
}

// TestRefuses: as an ordinary program the fuzzer must do nothing.
func TestRefuses(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	fuzz := filepath.Join(t.TempDir(), "fuzz")
	cBuild(t, repository(t), fuzz)
	for _, argv := range [][]string{{"-n", "10"}, {"-t", "1", "-u", "1000"}, {"-c", "3"}} {
		out, err := exec.Command(fuzz, argv...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "not a Hardtack guest") {
			t.Errorf("%v: it ran: %v %s", argv, err, out)
		}
	}
}
