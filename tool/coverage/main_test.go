package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	host := file("host", `mode: set
hardtack/kernel/a/x.go:1.1,2.2 3 1
hardtack/kernel/a/x.go:1.1,2.2 3 0
hardtack/kernel/a/x.go:3.1,4.2 1 0
hardtack/kernel/process/proctest/world.go:3.1,4.2 10 1
hardtack/cmd/kernel/main.go:3.1,4.2 10 1
`)
	guest := file("guest", `mode: atomic
hardtack/kernel/a/x.go:3.1,4.2 1 70000
hardtack/nucleus/y.go:3.1,4.2 4 0
`)
	tab, err := read([]string{"host=" + host, "guest=" + guest})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	tab.print(&b)
	want := `package                  statements       host      guest   together
kernel/a                          4     75.0 %     25.0 %    100.0 %
nucleus                           4      0.0 %      0.0 %      0.0 %
total                             8     37.5 %     12.5 %     50.0 %
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if page := tab.page(); !strings.Contains(page, "| **total** | 8 | 37.5 % | 12.5 % | 50.0 % |\n") {
		t.Error(page)
	}
	if _, err := read([]string{"x=" + file("bad", "mode: set\na b\n")}); err == nil {
		t.Error("a bad profile was read")
	}
}
