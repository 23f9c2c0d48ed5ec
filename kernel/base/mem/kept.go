package mem

import "sync/atomic"

// kept counts the frames that the end of no process gives back: those of files in memory
// and of System V segments.
var kept atomic.Int64

// Keep counts one more kept frame for a user who has own of a kind. It reports false where
// programs need what is left: root could not even start one that removes files.
func Keep(root bool, own int64) bool {
	n := kept.Add(1)
	return n <= plenty || keepLate(n, root, own)
}

// plenty is how many frames may be kept by anybody; immutable once programs run.
var plenty int64

func keepLate(n int64, root bool, own int64) bool {
	if n <= keepMost(root, own) {
		return true
	}
	kept.Add(-1)
	return false
}

// Kept returns how many frames are kept.
func Kept() int64 { return kept.Load() }

// keepMost is how many frames may be kept. A quarter of what did not come with the boot
// archive is for programs. Who has little gets a part of that, and root half.
func keepMost(root bool, own int64) int64 {
	all, more := int64(total-given), int64(given)
	switch {
	case total == 0:
		return 1 << 62 // no machine: a test
	case root:
		return more + all/8*7
	case own <= all/64:
		return more + all/16*13
	}
	return more + all/4*3
}

// KeepGiven counts n frames of the boot archive that became files.
func KeepGiven(n int) { kept.Add(int64(n)) }

// Unkeep counts n kept frames less.
func Unkeep(n int) { kept.Add(-int64(n)) }
