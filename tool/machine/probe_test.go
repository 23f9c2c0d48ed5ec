package machine

import (
	"context"
	"testing"
)

func TestProbe(t *testing.T) {
	if _, err := QEMU(); err != nil {
		t.Skip(err)
	}
	if !Probe(context.Background(), TCG) {
		t.Fatal("TCG does not run the probe's guest")
	}
}
