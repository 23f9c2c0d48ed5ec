package main

import (
	"encoding/binary"
	"time"

	"hardtack/arch/amd64"
	"hardtack/driver/virtio"
	"hardtack/driver/virtio/rng"
	"hardtack/kernel/base/random"
	"hardtack/nucleus"
)

// Entropy comes from the processor's generator (RDSEED, RDRAND), at boot and later
// again, from virtio entropy devices, and where there is neither from the time at which
// sleeps end.

// stirFromProcessor adds the processor's numbers. Where it has none they are the
// jitter of the clock, which is not counted.
func stirFromProcessor() {
	var b [64]byte
	nucleus.Entropy(b[:])
	worth := 0
	if nucleus.HasRandom() {
		worth = 8 * len(b)
	}
	random.Stir(b[:], worth)
}

func stirFromDevice(b []byte) {
	var t [8]byte
	binary.LittleEndian.PutUint64(t[:], amd64.TSC())
	random.Stir(t[:], 0)
	random.Stir(b, 8*len(b))
}

// startEntropy starts a virtio entropy device.
func (k *kernel) startEntropy(t virtio.Transport) error {
	d, err := rng.New(&k.platform, t, stirFromDevice)
	if err == nil {
		k.entropy = append(k.entropy, d)
	}
	return err
}

// keepStirring adds entropy whenever the pool's is old, and before that until it is ready.
func (k *kernel) keepStirring() {
	if !nucleus.HasRandom() && len(k.entropy) == 0 {
		stirFromTime()
	}
	for range random.Stale {
		stirFromProcessor()
		for _, d := range k.entropy {
			d.Request()
		}
	}
}

// stirFromTime makes the pool ready with nothing but the clock: when sleeps end depends
// on the timer, on interrupts and on what else runs. A sleep counts as one bit, and
// only if it took another time than the one before and the change was another, too.
func stirFromTime() {
	var b [8]byte
	last, delta, change := amd64.TSC(), uint64(0), uint64(0)
	for !random.Ready() {
		time.Sleep(time.Millisecond)
		now := amd64.TSC()
		d := now - last
		c := d - delta
		worth := 0
		if c != 0 && c != change {
			worth = 1
		}
		binary.LittleEndian.PutUint64(b[:], now)
		random.Stir(b[:], worth)
		last, delta, change = now, d, c
	}
}
