package netlink

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/net/inet"
)

// TestBytecode shows which filters are refused: those that go on in the middle of an
// operation, backwards, nowhere, or that end too early.
func TestBytecode(t *testing.T) {
	for _, c := range []struct {
		name string
		code []byte
		good bool
	}{
		{"nothing", nil, false},
		{"half an operation", []byte{bcNop, 4}, false},
		{"goes on at once", []byte{bcNop, 0, 0, 0}, false},
		{"nop", []byte{bcNop, 4, 0, 0}, true},
		{"unknown", []byte{99, 4, 4, 0}, false},
		{"port", []byte{bcLocalEQ, 8, 12, 0, 0, 0, 22, 0}, true},
		{"port without its number", []byte{bcLocalEQ, 4, 8, 0}, false},
		{"refuses two operations beyond the end", []byte{bcLocalEQ, 8, 16, 0, 0, 0, 22, 0}, false},
		{"goes to the next if not", []byte{bcLocalEQ, 8, 8, 0, 0, 0, 22, 0, bcNop, 4, 0, 0}, true},
		{"goes to its operand if not", []byte{bcLocalEQ, 8, 4, 0, 0, 0, 22, 0}, false},
		{"goes to the next one's operand if not", []byte{bcLocalEQ, 8, 12, 0, 0, 0, 22, 0, bcLocalEQ, 8, 12, 0, 0, 0, 22, 0}, false},
		{"odd", []byte{bcLocalEQ, 8, 9, 0, 0, 0, 22, 0, bcNop, 4, 0, 0}, false},
		{"a prefix longer than the address", []byte{bcLocalCond, 16, 20, 0, linux.AF_INET, 33, 0, 0, 0xff, 0xff, 0xff, 0xff, 127, 0, 0, 1}, false},
		{"a prefix", []byte{bcLocalCond, 16, 20, 0, linux.AF_INET, 32, 0, 0, 0xff, 0xff, 0xff, 0xff, 127, 0, 0, 1}, true},
	} {
		if got := bytecode(c.code).valid(); got != c.good {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// FuzzBytecode runs what is valid: it ends, and reads nothing that is not there.
func FuzzBytecode(f *testing.F) {
	f.Add([]byte{bcLocalEQ, 8, 8, 0, 0, 0, 22, 0, bcNop, 4, 0, 0}, false)
	f.Add([]byte{bcPeerCond, 16, 20, 0, linux.AF_INET, 9, 0, 0, 0xff, 0xff, 0xff, 0xff, 127, 0, 0, 1}, true)
	f.Fuzz(func(t *testing.T, code []byte, v6 bool) {
		if c := bytecode(code); c.valid() {
			c.matches(&inet.Info{V6: v6})
		}
	})
}
