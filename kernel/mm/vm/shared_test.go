package vm

import (
	"testing"

	"hardtack/abi/linux"
)

// TestSharedEnds maps an object that its owner has just given up.
func TestSharedEnds(t *testing.T) {
	o := NewShared(1)
	o.Detach()
	o.Attach()
	if _, e := o.Page(0, true); e != linux.EFAULT {
		t.Errorf("a page of it: %v, want EFAULT", e)
	}
	if _, ok := o.Cached(0); ok {
		t.Error("it has a page")
	}
	o.Detach()
}
