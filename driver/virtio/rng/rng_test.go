package rng_test

import (
	"bytes"
	"testing"

	"hardtack/driver/virtio"
	"hardtack/driver/virtio/rng"
	"hardtack/driver/virtio/softdev"
)

func TestEntropy(t *testing.T) {
	m := softdev.NewMachine()
	tr := &softdev.Transport{M: m, DeviceType: virtio.TypeRNG, Offer: virtio.FeatureEventIndex, Sizes: []int{8}}
	var got []byte
	calls := 0
	d, err := rng.New(m, tr, func(b []byte) { got = append(got, b...); calls++ })
	if err != nil {
		t.Fatal(err)
	}
	for round := range 1000 {
		got = nil
		d.Request() // a request is under way already
		tr.Interrupt(0)
		r := tr.Ring(0)
		q, ok := r.Next()
		if !ok || len(q.Out) != 0 {
			t.Fatalf("round %d: no request", round)
		}
		if _, ok := r.Next(); ok {
			t.Fatal("two requests")
		}
		want := bytes.Repeat([]byte{byte(round)}, 1+round%256)
		r.Push(q.Head, q.Fill(want))
		if !r.Flush() {
			t.Fatal("no interrupt wanted")
		}
		tr.Interrupt(0)
		tr.Interrupt(0)
		if !bytes.Equal(got, want) || calls != round+1 {
			t.Fatalf("round %d: %d bytes in %d calls", round, len(got), calls)
		}
		d.Request()
	}
}

func TestNoMemory(t *testing.T) {
	m := softdev.NewMachine()
	m.Limit = 1
	tr := &softdev.Transport{M: m, DeviceType: virtio.TypeRNG, Sizes: []int{8}}
	if _, err := rng.New(m, tr, nil); err == nil || tr.Status() != virtio.StatusFailed {
		t.Errorf("%v, status %d", err, tr.Status())
	}
}
