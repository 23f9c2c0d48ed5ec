package ext4

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"hardtack/abi/linux"
)

// A directory of 20,000 names, or HARDTACK_NAMES of them (1,000,000 take a minute and
// 1.5 GiB): made, looked up, listed, renamed and removed in part, and right afterwards
// for e2fsck. Blocks of 1 KiB make its tree deep: with large_dir three levels.
func TestManyNames(t *testing.T) {
	n := 20000
	if s := os.Getenv("HARDTACK_NAMES"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	for _, bs := range []int{4096, 1024} {
		t.Run(fmt.Sprint(bs), func(t *testing.T) {
			var m *memDisk
			size := 64<<20 + int64(n)*int64(bs)*5/4>>20<<20
			if bs == 1024 && n > 100000 { // two levels do not hold them
				m = mke2fs(t, fmt.Sprint(size>>10), "-b", "1024", "-O", "large_dir", "-N", fmt.Sprint(n+1000))
			} else {
				m = newMemDisk(size)
				must(t, Mkfs(m, MkfsOptions{BlockSize: bs, Zeroed: true, BytesPerInode: int64(bs)}))
			}
			manyNames(t, m, n)
		})
	}
}

func manyNames(t *testing.T, m *memDisk, n int) {
	fs := mount(t, m)
	dir := create(t, fs, "/many", NewInode{Mode: linux.S_IFDIR | 0o755})
	name := func(i int) string { return fmt.Sprintf("a-name-%d", i) }
	lap := time.Now()
	done := func(what string, n int) {
		t.Logf("%s: %v each", what, (time.Since(lap) / time.Duration(n)).Round(10*time.Nanosecond))
		lap = time.Now()
	}
	for i := range n {
		in, err := fs.Create(dir, name(i), NewInode{Mode: linux.S_IFREG | 0o644})
		must(t, err)
		must(t, fs.Put(in))
	}
	done("create", n)
	rng := rand.New(rand.NewPCG(1, 1))
	for range n {
		i := rng.IntN(2 * n)
		ino, err := fs.Lookup(dir, name(i))
		must(t, err)
		if (ino != 0) != (i < n) {
			t.Fatalf("%s leads to inode %d", name(i), ino)
		}
	}
	done("lookup", n)
	seen := make([]bool, n)
	list := func(want int) {
		t.Helper()
		clear(seen)
		pos, count, more := int64(0), 0, true
		for more {
			k := 0
			more = false
			must(t, fs.ReadDir(dir, pos, func(d Dirent) bool {
				pos = d.Next
				if i, err := strconv.Atoi(d.Name[min(len(d.Name), 7):]); err == nil {
					if i < 0 || i >= n || seen[i] {
						t.Fatalf("%s is there twice, or should not be", d.Name)
					}
					seen[i] = true
					count++
				}
				k++
				more = k == 1000
				return !more
			}))
		}
		if count != want {
			t.Fatalf("%d names of %d", count, want)
		}
	}
	list(n)
	done("readdir", n)
	left := n
	for range n / 10 {
		i := rng.IntN(n)
		ino, err := fs.Lookup(dir, name(i))
		must(t, err)
		if ino == 0 {
			continue
		}
		in, err := fs.Get(ino)
		must(t, err)
		must(t, fs.Unlink(dir, name(i), in))
		must(t, fs.Put(in))
		left--
	}
	done("lookup and unlink", n/10)
	list(left)
	lap = time.Now()
	for range n / 10 {
		i, j := rng.IntN(n), rng.IntN(n)
		err := fs.Rename(dir, name(i), dir, name(j), linux.RENAME_NOREPLACE)
		if e := Errno(err); e != 0 && e != linux.ENOENT && e != linux.EEXIST {
			t.Fatal(err)
		}
	}
	done("rename", n/10)
	list(left)
	must(t, fs.Put(dir))
	must(t, fs.Unmount())
	wantClean(t, m)
}
