package trace

import (
	"os"
	"testing"

	"hardtack/kernel/syscall"
)

func TestMain(m *testing.M) {
	syscall.Init()
	os.Exit(m.Run())
}

// Every row of formats is right, and nearly every call has one.
func TestFormats(t *testing.T) {
	forms, err := parse(syscall.NumberOf)
	if err != nil {
		t.Fatal(err)
	}
	without := 0
	for nr := range syscall.TableSize {
		c := syscall.Lookup(uint64(nr))
		f := forms[nr]
		switch {
		case c == nil:
		case f == nil:
			without++
			t.Log("no form:", c.Name)
		case f.split > f.n:
			t.Errorf("%s: %d arguments, but split at %d", c.Name, f.n, f.split)
		default:
			for i := range f.n {
				if r := int(f.args[i].ref); r >= f.n {
					t.Errorf("%s: argument %d has its length in argument %d", c.Name, i, r)
				}
			}
		}
	}
	if without > 3 {
		t.Errorf("%d calls have no form", without)
	}
}

// A line is cut where it is full.
func TestLine(t *testing.T) {
	var l line
	for range 2 * room {
		l.quoted([]byte("a\x001\n\x7f\""), false)
	}
	if l.n != room || string(l.b[:14]) != `"a\0001\n\177\""`[:14] {
		t.Errorf("%d bytes, %q", l.n, l.b[:14])
	}
	l = line{}
	l.signed(-1 << 63)
	l.byte(' ')
	l.octal(0)
	l.byte(' ')
	l.octal(0o4755)
	l.byte(' ')
	l.fraction(12_000_034, 1e6, 6)
	l.byte(' ')
	l.flags(0x80000|0x4000000, descriptorNames)
	if got := string(l.b[:l.n]); got != "-9223372036854775808 000 04755 12.000034 O_CLOEXEC|0x4000000" {
		t.Error(got)
	}
}

// A call is either in the table or missing.
func TestMissing(t *testing.T) {
	for nr, name := range missing {
		if c := syscall.Lookup(uint64(nr)); c != nil {
			t.Errorf("%s (%d) is in the table", name, nr)
		}
	}
}
