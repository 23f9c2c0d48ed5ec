package fuzz

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestCalls: the fuzzer makes every call that the kernel has (docs/syscalls.md, which
// another test compares with the table), or says why not.
func TestCalls(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository(t), "docs", "syscalls.md"))
	if err != nil {
		t.Fatal(err)
	}
	names, err := callNames()
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| (\w+) \| (\w+) \| (.+) \|$`)
	there := map[uint64]bool{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseUint(m[1], 0, 64)
		if err != nil || m[3] == "ENOSYS" {
			continue // the head of a table, or a call that is absent
		}
		there[n] = true
		if names[n] != m[2] {
			t.Errorf("call %d is %s in the kernel and %q in calls.def", n, m[2], names[n])
		}
	}
	if len(there) < 290 {
		t.Errorf("only %d calls in docs/syscalls.md", len(there))
	}
	for n, name := range names {
		if !there[n] {
			t.Errorf("calls.def has %s (%d), and the kernel does not", name, n)
		}
	}
}

// TestLastCalls finds the rings of workers in a machine's memory.
func TestLastCalls(t *testing.T) {
	var r ring
	copy(r.Magic[:], magic)
	r.Seed, r.Child, r.Worker, r.PID, r.UID = 7, 42, 1, 99, 1000
	r.Count = ringCalls + 2
	r.Call[0].Number, r.Call[0].Result = 3, -9
	r.Call[1].Number, r.Call[1].Result, r.Call[1].Args[0] = ownBase+2, notYet, 0x28
	b := new(bytes.Buffer)
	b.Write(make([]byte, 3*pageSize))
	if err := binary.Write(b, binary.LittleEndian, &r); err != nil {
		t.Fatal(err)
	}
	if b.Len() != 4*pageSize {
		t.Fatalf("a ring has %d bytes", b.Len()-3*pageSize)
	}
	b.Write(make([]byte, pageSize))
	file := filepath.Join(t.TempDir(), "ram")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := lastCalls(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"seed 7, child 42, worker 1, pid 99, uid 1000, 65 calls\n", "close(0x0, 0x0, 0x0, 0x0, 0x0, 0x0) = -9\n", "call(0x28, 0x0, 0x0, 0x0, 0x0, 0x0) = …\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
