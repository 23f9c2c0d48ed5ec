package procnet

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"hardtack/kernel/base/sysctl"
)

var update = flag.Bool("update", false, "write docs/sysctl.md")

const ctlFile = "../../../docs/sysctl.md"

const ctlHead = `# /proc/sys

<!-- Written by go test ./kernel/pseudofs/procnet -run TestCtlText -update. -->

Files follow Linux's rules for reading and writing (kernel/base/sysctl.c there): several
numbers, blanks, hexadecimal, ranges (EINVAL), offsets, and permissions. A number without
a remark takes effect. One marked *kept* can be set but has no effect, for the reason
given; one marked *always* refuses other values (EINVAL). conf/eth0 stands for every
interface.

| name | mode | remark |
|---|---|---|
`

func ctlText() string {
	var b strings.Builder
	b.WriteString(ctlHead)
	for _, f := range sysctl.All() {
		if strings.Contains(f.Name, "/conf/all/") || strings.Contains(f.Name, "/conf/default/") {
			f := *f
			f.Name = strings.Replace(strings.Replace(f.Name, "/conf/all/", "/conf/eth0/", 1), "/conf/default/", "/conf/eth0/", 1)
			if strings.Contains(b.String(), "`"+f.Name+"`") {
				continue
			}
			fmt.Fprintf(&b, "| `%s` | %o | %s |\n", f.Name, f.Mode, f.Note)
			continue
		}
		if strings.Contains(f.Name, "/conf/") {
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %o | %s |\n", f.Name, f.Mode, f.Note)
	}
	return b.String()
}

// TestCtlText: docs/sysctl.md tells of every file.
func TestCtlText(t *testing.T) {
	want := ctlText()
	if *update {
		if err := os.WriteFile(ctlFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(ctlFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/sysctl.md differs from the files; run go test ./kernel/pseudofs/procnet -run TestCtlText -update")
	}
}
