package main

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"sync"

	"hardtack/arch/amd64"
	"hardtack/kernel/devfs"
	"hardtack/nucleus"
)

// pool is the kernel's generator of random numbers: ChaCha8, keyed from RDRAND
// and the clock at boot and rekeyed with what the virtio entropy device sends.
var pool struct {
	mu  sync.Mutex
	gen *rand.ChaCha8 // guarded by mu
}

func seedRandom() {
	pool.gen = rand.NewChaCha8([32]byte{})
	var b [32]byte
	nucleus.Entropy(b[:])
	stirRandom(b[:])
	devfs.Random = readRandom
}

// stirRandom makes a new key of the old stream and fresh bytes.
func stirRandom(b []byte) {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	var key [32]byte
	pool.gen.Read(key[:])
	for i, x := range b {
		key[i%32] ^= x
	}
	t := binary.LittleEndian.Uint64(key[:]) ^ amd64.TSC()
	binary.LittleEndian.PutUint64(key[:], t)
	pool.gen.Seed(key)
}

// readRandom fills b.
func readRandom(b []byte) {
	pool.mu.Lock()
	pool.gen.Read(b)
	pool.mu.Unlock()
}

type randomReader struct{}

func (randomReader) Read(b []byte) (int, error) {
	readRandom(b)
	return len(b), nil
}

var _ io.Reader = randomReader{}
