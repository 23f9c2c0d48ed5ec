// Package cli tests the hardtack command as a user meets it: the scripts in
// testdata run the real binary. Most of them have a QEMU that only plays a
// guest: it prints what it was booted with and ends as the kernel command line
// says. What needs a real kernel is tested elsewhere.
package cli

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"hardtack/tool/machine"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"qemu-system-x86_64": playGuest})
}

// playGuest prints the boot record and the names in the initrd, then what it
// reads, and ends as -append says.
func playGuest() {
	const consoleFD, controlFD = 4, 5
	console, control := os.NewFile(consoleFD, "console"), os.NewFile(controlFD, "control")
	initrd, err := os.ReadFile("/dev/fd/3") // opened anew, as QEMU does
	if err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
	var word, arg string
	for i, a := range os.Args {
		if a == "-append" {
			line := os.Args[i+1]
			if strings.HasPrefix(line, "root=") { // root, its type, its mode
				line = strings.SplitN(line+"   ", " ", 4)[3]
			}
			word, arg, _ = strings.Cut(strings.TrimSpace(line), " ")
		}
	}
	for at := 0; at+110 <= len(initrd); {
		field := func(i int) int {
			v, _ := strconv.ParseInt(string(initrd[at+6+8*i:at+14+8*i]), 16, 64)
			return int(v)
		}
		name := strings.TrimRight(string(initrd[at+110:at+110+field(11)]), "\x00")
		data := (at + 110 + field(11) + 3) &^ 3
		if name == ".hardtack/boot.json" {
			fmt.Fprintf(console, "boot %s\n", initrd[data:data+field(6)])
		} else {
			fmt.Fprintf(console, "file %s\n", name)
		}
		at = (data + field(6) + 3) &^ 3
	}
	fmt.Fprintln(control, "ready")
	switch word {
	case "exit":
		fmt.Fprintf(control, "exit %s\n", arg)
	case "panic":
		fmt.Fprintf(control, "panic %s\n", arg)
	case "hang":
		time.Sleep(time.Hour)
	case "cat": // until the host says that its input has ended
		echoed := make(chan struct{})
		go func() { _, _ = io.Copy(console, console); close(echoed) }()
		lines := make([]byte, 100)
		n, _ := control.Read(lines)
		_ = unix.Shutdown(int(console.Fd()), unix.SHUT_RD)
		<-echoed
		fmt.Fprintf(control, "exit 0\n")
		fmt.Fprintf(console, "said %q\n", lines[:n])
	}
}

// hardtack is the binary under test.
func hardtack(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-ldflags=-checklinkname=0", "-o", dir, "hardtack/cmd/hardtack")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func TestScripts(t *testing.T) {
	bin := hardtack(t)
	reg := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(reg.Close)
	host := strings.TrimPrefix(reg.URL, "http://")
	push(t, host+"/app:1")
	busy, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { busy.Close() })

	testscript.Run(t, testscript.Params{
		Dir:                "testdata",
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			tmp := filepath.Join(e.WorkDir, "tmp")
			if err := os.Mkdir(tmp, 0o755); err != nil {
				return err
			}
			e.Setenv("PATH", bin+":"+e.Getenv("PATH"))
			e.Setenv("TMPDIR", tmp)
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GOCACHE", goCache()) // go list compiles what it finds nothing of there
			e.Setenv("REGISTRY", host)
			e.Setenv("BUSY", strconv.Itoa(busy.Addr().(*net.TCPAddr).Port))
			code := []byte{0xfa, 0xf4, 0xeb, 0xfd}
			return os.WriteFile(filepath.Join(e.WorkDir, "kernel.elf"), machine.TinyKernel(code), 0o644)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": status, "clean": clean, "oneline": oneLine, "mktar": makeTar, "program": program,
		},
	})
}

// goCache is the cache of the go command that runs this test.
func goCache() string {
	dir, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(dir))
}

// status N CMD ARG... runs a command and wants the exit status N.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N CMD ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		// testscript does not give the error's type away, but its text.
		if _, scanErr := fmt.Sscanf(err.Error(), "exit status %d", &got); scanErr != nil {
			ts.Fatalf("%v", err)
		}
	}
	if got != want {
		ts.Fatalf("status %d instead of %d\n%s%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// oneline TEXT wants one line on stderr that contains the text.
func oneLine(ts *testscript.TestScript, neg bool, args []string) {
	got := ts.ReadFile("stderr")
	if neg || len(args) != 1 {
		ts.Fatalf("usage: oneline TEXT")
	}
	if strings.Count(got, "\n") != 1 || !strings.Contains(got, args[0]) || !strings.HasPrefix(got, "hardtack") {
		ts.Fatalf("stderr is not one line with %q: %q", args[0], got)
	}
}

// clean wants nothing to be left in the directory for temporary files.
func clean(ts *testscript.TestScript, _ bool, _ []string) {
	left, err := os.ReadDir(ts.MkAbs("tmp"))
	ts.Check(err)
	if len(left) > 0 {
		ts.Fatalf("left behind: %v", left)
	}
}

// mktar FILE KIND makes a tar of the kind.
func makeTar(ts *testscript.TestScript, _ bool, args []string) {
	headers := map[string][]tar.Header{
		"escape":  {{Name: "../../etc/cron.d/x", Typeflag: tar.TypeReg, Mode: 0o644}},
		"device":  {{Name: "srv/disk", Typeflag: tar.TypeBlock, Devmajor: 8, Mode: 0o666}},
		"large":   {{Name: "zeros", Typeflag: tar.TypeReg, Mode: 0o644, Size: 100 << 20}},
		"symlink": {{Name: "init", Typeflag: tar.TypeSymlink, Linkname: "/proc/self/exe"}},
	}[args[1]]
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		ts.Check(w.WriteHeader(&h))
		if h.Size > 0 {
			_, err := w.Write(make([]byte, h.Size))
			ts.Check(err)
		}
	}
	ts.Check(w.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o644))
}

// program FILE makes a file that is as good as a static program.
func program(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(name)), 0o755))
		ts.Check(os.WriteFile(ts.MkAbs(name), machine.TinyKernel([]byte{0xf4}), 0o755))
	}
}

// push puts an image with a program into a registry.
func push(t *testing.T, ref string) {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	text := machine.TinyKernel([]byte{0xf4})
	for _, h := range []tar.Header{
		{Name: "srv/app", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(text))},
		{Name: "etc/passwd", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(passwd))},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		data := text
		if h.Name == "etc/passwd" {
			data = []byte(passwd)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	img, err = mutate.Config(img, v1.Config{
		User: "app", Env: []string{"COLOUR=red", "PATH=/srv"}, Entrypoint: []string{"app"}, Cmd: []string{"serve"}, WorkingDir: "/srv/data",
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(r, img); err != nil {
		t.Fatal(err)
	}
}

const passwd = "root:x:0:0::/root:/bin/sh\napp:x:7:8::/home/app:/bin/sh\n"
