package guest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Programs of root and of another user call the kernel's services, alone, beside clients that flood,
// stop half-way or never read, and with other clusters.
func TestServices(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	if err := goBuild(repo, filepath.Join(dir, "runner"), "./test/guest/services"); err != nil {
		t.Fatal(err)
	}
	if err := goBuild(repo, filepath.Join(dir, "example"), "./examples/services"); err != nil {
		t.Fatal(err)
	}
	programs := []string{"runner", "example"}
	if _, err := exec.LookPath("gcc"); err == nil {
		if err := servicesInC(repo, dir); err != nil {
			t.Fatal(err)
		}
		programs = append(programs, "cexample", "cclient")
	}
	tool, root := command(t, repo, dir), guestRoot(t, dir, programs...)
	for name, flags := range map[string][]string{
		"one":      {"--cpus", "1", "--memory", "128M"},
		"two":      {"--cpus", "2", "--memory", "128M"},
		"clusters": {"--clusters", "2", "--cpus", "2", "--memory", "384M"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := inGuest(t, tool, root, 10*time.Minute, flags, "/runner", name)
			out = strings.ReplaceAll(out, "\r", "")
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, "a connection") {
					t.Log(line)
				}
			}
			for _, text := range []string{"example\n", "process\n", "clusters\n", "names\n", "log\n", "metrics\n", "user\n", "hostile\n", "C\n", "left\n", "memory\n", "the end\n"} {
				if !strings.Contains(out, text) {
					t.Errorf("the console lacks %q", text)
				}
			}
			if err != nil || strings.Contains(out, "WRONG") || t.Failed() {
				t.Fatalf("%v\n%s", err, tail(out, 100))
			}
		})
	}
}

// servicesInC compiles the example and a client of all services with the C library and its stubs.
func servicesInC(repo, dir string) error {
	library, err := filepath.Glob(filepath.Join(repo, "msg", "c", "ht_*.c"))
	if err != nil {
		return err
	}
	args := []string{"-I" + filepath.Join(repo, "msg", "c")}
	for _, name := range []string{"process", "clusters", "names", "klog", "metrics"} {
		folder := filepath.Join(repo, "idl", name, "c")
		args = append(args, "-I"+folder)
		library = append(library, filepath.Join(folder, name+".c"))
	}
	args = append(args, library...)
	if err := cBuild(filepath.Join(dir, "cexample"), append(args, filepath.Join(repo, "examples", "services", "c", "services.c"))...); err != nil {
		return err
	}
	return cBuild(filepath.Join(dir, "cclient"), append(args, filepath.Join(repo, "test", "guest", "services", "c", "client.c"))...)
}
