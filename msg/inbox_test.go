package msg

import (
	"errors"
	"os"
	"testing"
)

// A peer that announces descriptors without their messages gets no further than the
// bound, and all are closed.
func TestCapsWithoutMessages(t *testing.T) {
	a, _ := pairFor(t, inprocOnly)
	before := openFiles(t)
	var err error
	n := 0
	for ; err == nil && n < 2*maxFilesQueued; n++ {
		f, oerr := os.Open(os.DevNull)
		if oerr != nil {
			t.Fatal(oerr)
		}
		frame, files, cerr := capsFrame(uint64(1000+n), []Cap{{File: f}})
		if cerr != nil {
			t.Fatal(cerr)
		}
		var last byte
		if err = a.frame(a.cur, frame, files, &last); err != nil {
			f.Close() // on an error they are the caller's
		}
	}
	var wrong *PeerError
	if !errors.As(err, &wrong) || n != maxFilesQueued+1 {
		t.Fatalf("after %d: %v", n, err)
	}
	a.fail(err)
	a.Close()
	if after := openFiles(t); after > before {
		t.Errorf("%d files open, %d before", after, before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
