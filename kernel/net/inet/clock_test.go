package inet

import (
	"testing"
	"time"
	"unsafe"

	"gvisor.dev/gvisor/pkg/tcpip"
)

// monotonic relies on how netstack lays its time out.
func TestMonotonicLayout(t *testing.T) {
	const ns = 1234567890123
	if unsafe.Sizeof(tcpip.MonotonicTime{}) != 8 {
		t.Fatal(unsafe.Sizeof(tcpip.MonotonicTime{}))
	}
	if got, want := monotonic(ns), (tcpip.MonotonicTime{}).Add(ns*time.Nanosecond); got != want {
		t.Fatal(got, want)
	}
}
