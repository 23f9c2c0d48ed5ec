package ext4

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestCrashSample leaves disks of crash states in the directory HARDTACK_CRASH_KEEP
// for Linux to mount (test/peer): HARDTACK_CRASH_SAMPLE of each of two kinds.
//
//	raw-N   as the crash left it; writes are whole, for Linux does not survive a
//	        super block torn in its middle
//	ours-N  torn, recovered by our mount and compared with the model
func TestCrashSample(t *testing.T) {
	dir := os.Getenv("HARDTACK_CRASH_KEEP")
	if dir == "" {
		t.Skip("leaves disks in the directory HARDTACK_CRASH_KEEP")
	}
	left, err := strconv.Atoi(os.Getenv("HARDTACK_CRASH_SAMPLE"))
	must(t, err)
	seed := uint64(1)
	if s := os.Getenv("HARDTACK_CRASH_SEED"); s != "" {
		seed, err = strconv.ParseUint(s, 10, 64)
		must(t, err)
	}
	const perRun = 5
	for n := 0; n < left; seed++ {
		bs := []int{1024, 4096, 2048}[seed%3]
		base, all := record(t, seed, 250, bs, 1)
		w := all[0]
		rng := rand.New(rand.NewPCG(seed, 4))
		for _, torn := range []bool{false, true} {
			c := &crasher{t: t, rng: rng, disk: base.clone(), rec: w.rec, all: all, file: filepath.Join(scratch(t), "disk")}
			for i := range min(perRun, left-n) {
				at := max(len(w.rec.events)*(i+1)/perRun-rng.IntN(20), 1)
				d, seen := c.state(at, torn)
				name := fmt.Sprintf("raw-%d", n+i)
				if torn {
					if err := c.check(at, seen, d); err != nil {
						t.Fatalf("seed %d, event %d: %v", seed, at, err)
					}
					name = fmt.Sprintf("ours-%d", n+i)
				}
				d.save(t, filepath.Join(dir, name))
			}
		}
		n += min(perRun, left-n)
		w.close()
		must(t, w.fs.Unmount())
	}
}
