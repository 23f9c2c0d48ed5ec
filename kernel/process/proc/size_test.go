package proc

import (
	"reflect"
	"testing"
)

// TestSize: a new process is one object of the 3,456-byte size class, with the collector's header
// of 8 bytes. Each fork clears it: one class more took 2 % more instructions.
func TestSize(t *testing.T) {
	if n := reflect.TypeFor[newborn]().Size() + 8; n > 3456 {
		t.Errorf("a new process takes %d bytes", n)
	}
}
