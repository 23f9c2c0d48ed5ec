package devfs

import "testing"

// Whoever reads on behind messages that have gone waits if only an open one is left.
func TestNextOfAnOpenMessage(t *testing.T) {
	l := &Log{first: 7, list: []message{{text: "not ended", open: true}}}
	if text, some := l.take(100); some {
		t.Errorf("%q", text)
	}
	l.Add(6, "ended\n")
	if text, some := l.take(100); !some || text == "" {
		t.Errorf("%q, %v", text, some)
	}
}
