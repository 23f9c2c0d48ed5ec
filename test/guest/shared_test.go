package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	osbench "hardtack/bench/os"
)

// TestMain owns the directory of what tests share.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "guestbuilt")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared.dir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// shared holds the tool and the kernels: each is built once, by the first test that needs it.
var shared struct {
	mu   sync.Mutex
	dir  string
	made map[string]error // guarded by mu
}

// share links a shared file to where the test wants it. make builds the file at a path.
func share(name, to string, make func(path string) error) error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	from := filepath.Join(shared.dir, name)
	err, ok := shared.made[name]
	if !ok {
		err = make(from)
		if shared.made == nil {
			shared.made = map[string]error{}
		}
		shared.made[name] = err
	}
	if err != nil {
		return err
	}
	return os.Link(from, to)
}

// command returns the command line tool with a kernel image beside it, with the
// concurrency control that HARDTACK_GUEST_CONTROL names.
func command(t *testing.T, repo, dir string, more ...string) string {
	t.Helper()
	tool := filepath.Join(dir, "hardtack")
	if err := share("hardtack", tool, func(path string) error { return goBuild(repo, path, "./cmd/hardtack") }); err != nil {
		t.Fatal(err)
	}
	buildKernel(t, repo, tool, kernelControl(), filepath.Join(dir, "kernel.elf"), more...)
	return tool
}

func kernelControl() string {
	if control := os.Getenv("HARDTACK_GUEST_CONTROL"); control != "" {
		return control
	}
	return "big"
}

// buildKernel puts a kernel with a concurrency control at a path. more are further flags of
// hardtack build; without any, the environment names them.
func buildKernel(t *testing.T, repo, tool, control, out string, more ...string) {
	t.Helper()
	args := append([]string{"build", "--control", control}, more...)
	if len(more) == 0 && os.Getenv("HARDTACK_GUEST_CHECK_LOCKS") != "" {
		args = append(args, "--check-locks")
	}
	if len(more) == 0 && os.Getenv("HARDTACK_GUEST_COVER") != "" {
		args = append(args, "--cover")
	}
	err := share("kernel"+strings.Join(args[2:], ""), out, func(path string) error {
		build := exec.Command(tool, append(args, "-o", path)...)
		build.Dir = repo
		if text, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("hardtack build: %w\n%s", err, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// fetching is held while packages or Linux's kernel are downloaded into a cache that
// tests share.
var fetching sync.Mutex

// debianLinux is the Linux kernel that is the reference.
func debianLinux(dirs osbench.Dirs) (osbench.LinuxKernel, error) {
	fetching.Lock()
	defer fetching.Unlock()
	return osbench.Linux(dirs)
}
