// Package outside_test is somebody else: it installs the libraries, builds programs in
// modules of their own by the very lines of the guides, and runs them.
package outside_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// root is this module's folder.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var installed struct {
	once sync.Once
	dir  string
	err  error
}

// prefix is where the libraries are installed, once for all tests.
func prefix(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"make", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s", tool)
		}
	}
	installed.once.Do(func() {
		dir, err := os.MkdirTemp("", "prefix")
		if err == nil {
			installed.dir = dir
			cmd := exec.Command("make", "-C", root(t), "install-libraries", "PREFIX="+dir, "C_BUILD="+dir+"/build", "C_FLAGS=-O1 -Wall -Werror")
			var out []byte
			if out, err = cmd.CombinedOutput(); err != nil {
				err = fmt.Errorf("make install-libraries: %w\n%s", err, out)
			}
		}
		installed.err = err
	})
	if installed.err != nil {
		t.Fatal(installed.err)
	}
	return installed.dir
}

func TestMain(m *testing.M) {
	code := m.Run()
	if installed.dir != "" {
		os.RemoveAll(installed.dir)
	}
	os.Exit(code)
}

// outside is a folder that belongs to no module yet, and what its commands see.
type outside struct {
	dir string
	env []string
}

// newOutside makes one. hardtack is the folder with the Go libraries.
func newOutside(t *testing.T, prefix, hardtack string) *outside {
	t.Helper()
	dir, err := os.MkdirTemp("", "outside") // short: sockets lie in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, sub := range []string{"run", "app"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run := filepath.Join(dir, "run")
	return &outside{filepath.Join(dir, "app"), append(os.Environ(),
		"HARDTACK="+hardtack, "CHECKOUT="+root(t),
		"PATH="+filepath.Join(prefix, "bin")+":"+os.Getenv("PATH"),
		"PKG_CONFIG_PATH="+filepath.Join(prefix, "lib/pkgconfig"),
		// Nothing of this project's own settings. -trimpath lets Go's cache serve
		// copies of the libraries in other folders.
		"GOFLAGS=-trimpath", "GOWORK=off",
		// The sums are compared with this module's own, so that no network is needed.
		"GOSUMDB=off",
		"XDG_RUNTIME_DIR="+run, "HARDTACK_MSG_DIR=", "HARDTACK_NAMES=",
	)}
}

// put writes a file.
func (o *outside) put(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(o.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// sh runs lines of shell, of which each must succeed, and returns what they print.
func (o *outside) sh(t *testing.T, lines string) string {
	t.Helper()
	cmd := exec.Command("sh", "-euc", lines)
	cmd.Dir, cmd.Env = o.dir, o.env
	// A guide's servers are in the shell's process group and do not outlive it.
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, 10*time.Second
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	err := cmd.Run()
	if cmd.Process != nil {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatalf("%s\n%v\n%s%s", lines, err, out.Bytes(), diag.Bytes())
	}
	return out.String()
}

// sums holds go.sum to this module's.
func (o *outside) sums(t *testing.T) {
	t.Helper()
	ours, err := os.ReadFile(filepath.Join(root(t), "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	theirs, _ := os.ReadFile(filepath.Join(o.dir, "go.sum")) // none: nothing is needed
	for line := range strings.Lines(string(theirs)) {
		if !bytes.Contains(ours, []byte(line)) {
			t.Errorf("go.sum has a line that this module's has not: %s", line)
		}
	}
}
