package syscall

import (
	"strings"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/reserve"
)

// TestPlanted: an allocation that no bound has is found.
func TestPlanted(t *testing.T) {
	fillOnce(t)
	b := reserve.Table[linux.SYS_getpid]
	if !b.Known || b.Transient+b.Lasting != 0 {
		t.Fatalf("getpid is bounded by %+v", b)
	}
	if !noteBytes(linux.SYS_getpid, 0) {
		t.Error("getpid may allocate nothing")
	}
	if noteBytes(linux.SYS_getpid, 16) {
		t.Error("getpid may allocate 16 bytes")
	}
	if !noteBytes(linux.SYS_execve, 1<<30) {
		t.Error("execve has a bound")
	}
	for _, want := range []string{"getpid 2 16 0 0\n", "execve 1 1073741824 unbounded: " + reserve.Unbounded[linux.SYS_execve] + "\n"} {
		if !strings.Contains(string(BoundsText()), want) {
			t.Errorf("no %q in\n%s", want, BoundsText())
		}
	}
}

// TestReserveTable: the table has a row for each call, and for no other number.
func TestReserveTable(t *testing.T) {
	fillOnce(t)
	calls := 0
	for nr := range table {
		switch {
		case table[nr] != nil:
			calls++
		case reserve.Table[nr].Known:
			t.Errorf("there is no call %d", nr)
		case reserve.Unbounded[nr] != "":
			t.Errorf("call %d is none, and has no bound", nr)
		}
		if table[nr] != nil && reserve.Table[nr].Known == (reserve.Unbounded[nr] != "") {
			t.Errorf("%s: known is %v, and the reason that it has no bound %q", table[nr].Name, reserve.Table[nr].Known, reserve.Unbounded[nr])
		}
	}
	if len(reserve.Table) != TableSize || calls != reserve.Calls {
		t.Errorf("the table has %d calls of %d numbers, there are %d of %d: renew it (kernel/reserve)", reserve.Calls, len(reserve.Table), calls, TableSize)
	}
}

func fillOnce(t *testing.T) {
	t.Helper()
	if table[linux.SYS_getpid] == nil {
		fillTable()
	}
}
