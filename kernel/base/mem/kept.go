package mem

import "sync/atomic"

// kept counts the frames that the end of no process gives back: those of files in memory
// and of System V segments.
var kept atomic.Int64

// Keep counts one more kept frame for a user who has own of a kind. It reports false where
// programs need what is left: root could not even start one that removes files.
func Keep(root bool, own int64) bool {
	n := kept.Add(1)
	return n <= plenty.Load() || keepLate(n, root, own)
}

// plenty is how many frames may be kept by anybody.
var plenty atomic.Int64

// keepable is how many frames were free when the first program started, and keptFirst how
// many were kept: the boot archive's, immutable once programs run.
var (
	keepable  atomic.Int64
	keptFirst int64
)

// SetKeepable says that programs are about to start: they share with kept frames what is
// free now besides the kernel's reserve. What the kernel's heap has so far is not theirs.
func SetKeepable() {
	keepable.Store(int64(Spare()))
	keptFirst = kept.Load()
	plenty.Store(keptFirst + keepable.Load()/2)
}

func keepLate(n int64, root bool, own int64) bool {
	if n <= keepMost(root, own) {
		return true
	}
	kept.Add(-1)
	return false
}

// Kept returns how many frames are kept.
func Kept() int64 { return kept.Load() }

// keepMost is how many frames may be kept. A quarter is for programs and for what the
// kernel needs to run them. Who has little gets more than who has much, and root most.
func keepMost(root bool, own int64) int64 {
	keepable := keepable.Load()
	switch {
	case keepable == 0:
		return 1 << 62 // the system starts, or this is a test
	case root:
		return keptFirst + keepable/4*3
	case own <= keepable/64:
		return keptFirst + keepable/16*11
	}
	return keptFirst + keepable/8*5
}

// KeepGiven counts n frames of the boot archive that became files.
func KeepGiven(n int) { kept.Add(int64(n)) }

// Unkeep counts n kept frames less.
func Unkeep(n int) { kept.Add(-int64(n)) }
