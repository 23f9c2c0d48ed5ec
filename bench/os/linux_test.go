package osbench

import (
	"os"
	"testing"
	"time"
)

// TestLinux boots Debian's kernel and measures the rows: the reference itself
// is under test. It downloads packages, so it runs only when asked for.
func TestLinux(t *testing.T) {
	if os.Getenv("HARDTACK_BENCH") == "" {
		t.Skip("downloads Debian's kernel and servers; set HARDTACK_BENCH=1")
	}
	d, err := FindDirs()
	if err != nil {
		t.Fatal(err)
	}
	linux, err := Linux(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, commands := range []string{MicroCommands, ServerCommands} {
		root, err := Programs(d, commands)
		if err != nil {
			t.Fatal(err)
		}
		if commands == ServerCommands {
			servers, err := Servers(d)
			if err != nil {
				t.Fatal(err)
			}
			root.Merge(servers)
		}
		m, err := Boot{OS: OnLinux, Root: root, CPUs: 1, Memory: "512M", ICount: true,
			Machine: "microvm", Timeout: 5 * time.Minute}.Start(d, linux)
		if err != nil {
			t.Fatal(err)
		}
		results, err := m.Wait()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%v\n%s", results, m.Output())
	}
}
