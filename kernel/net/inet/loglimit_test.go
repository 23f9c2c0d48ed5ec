package inet

import (
	"bytes"
	"strings"
	"testing"
)

// TestLogLimit logs as a flood of packets does.
func TestLogLimit(t *testing.T) {
	var out bytes.Buffer
	l := &logLimit{to: &out}
	for range 1000 {
		if n, err := l.Write([]byte("a packet\n")); n != 9 || err != nil {
			t.Fatal(n, err)
		}
	}
	if n := strings.Count(out.String(), "a packet"); n != logBurst {
		t.Errorf("%d of 1000 messages are logged, want %d", n, logBurst)
	}
	out.Reset()
	l.since -= logInterval
	l.Write([]byte("another\n"))
	if got, want := out.String(), "net: 990 messages suppressed\nanother\n"; got != want {
		t.Errorf("later: %q, want %q", got, want)
	}
}
