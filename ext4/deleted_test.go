package ext4

import "testing"

// A deleted inode without a time of deletion is an error to e2fsck, and one whose time
// is the number of an inode, too.
func TestDeletedAt(t *testing.T) {
	s := super{inodes: 4096}
	for now, want := range map[int64]uint32{-5e9: 4096, 0: 4096, 999: 4096, 7e9: 4096, 5000e9: 5000,
		1<<32*1e9 - 1: 1<<32 - 1, 1 << 32 * 1e9: 4096, (1<<32 + 9000) * 1e9: 9000} {
		if got := s.deletedAt(now); got != want {
			t.Errorf("at %d: %d, not %d", now, got, want)
		}
	}
}
