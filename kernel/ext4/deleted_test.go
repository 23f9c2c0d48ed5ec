package ext4

import "testing"

// A deleted inode without a time of deletion is an error to e2fsck.
func TestDeletedAt(t *testing.T) {
	for now, want := range map[int64]uint32{-5e9: 1, 0: 1, 999: 1, 7e9: 7, 1<<32*1e9 - 1: 1<<32 - 1, 1 << 32 * 1e9: 1, (1<<32 + 9) * 1e9: 9} {
		if got := deletedAt(now); got != want {
			t.Errorf("at %d: %d, not %d", now, got, want)
		}
	}
}
