package ext4

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"hardtack/abi/linux"
)

func init() { strictCredits = true }

func TestMkfs(t *testing.T) {
	for _, x := range []struct {
		size int64
		bs   int
	}{{8 << 20, 1024}, {64 << 20, 1024}, {300 << 20, 1024}, {64 << 20, 2048}, {64 << 20, 4096}, {1 << 30, 4096}, {129<<20 + 12345, 4096}} {
		t.Run(fmt.Sprint(x), func(t *testing.T) {
			m := mkfsMem(t, x.size, x.bs)
			wantClean(t, m)
			fs := mount(t, m)
			must(t, fs.Unmount())
			wantClean(t, m)
		})
	}
}

func TestMke2fsDisks(t *testing.T) {
	for _, args := range [][]string{nil, {"-b", "1024"}, {"-b", "4096"}, {"-O", "^64bit"}, {"-O", "^metadata_csum"},
		{"-O", "^metadata_csum,uninit_bg"}, {"-O", "metadata_csum_seed,orphan_file"}, {"-O", "^flex_bg"}, {"-O", "large_dir"}} {
		t.Run(fmt.Sprint(args), func(t *testing.T) {
			m := mke2fs(t, "64M", args...)
			wantClean(t, m)
			fs := mount(t, m)
			workout(t, fs)
			must(t, fs.Unmount())
			wantClean(t, m)
			fs = mount(t, m)
			must(t, fs.Unmount())
			wantClean(t, m)
		})
	}
}

// workout makes, changes and removes some of everything.
func workout(t *testing.T, fs *FS) {
	t.Helper()
	root, err := fs.Root()
	must(t, err)
	defer fs.Put(root)
	dir, err := fs.Create(root, "dir", NewInode{Mode: linux.S_IFDIR | 0o755})
	must(t, err)
	defer fs.Put(dir)
	rng := rand.New(rand.NewPCG(1, 2))
	want := map[string][]byte{}
	for i := range 300 {
		name := fmt.Sprintf("file-%d-%s", i, bytes.Repeat([]byte{'x'}, i%50))
		in, err := fs.Create(dir, name, NewInode{Mode: linux.S_IFREG | 0o644})
		must(t, err)
		data := make([]byte, rng.IntN(20000))
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		_, err = fs.WriteAt(in, data, 0)
		must(t, err)
		want[name] = data
		must(t, fs.Put(in))
	}
	for i := range 5 {
		target := string(bytes.Repeat([]byte{'t'}, 10+30*i))
		in, err := fs.Create(dir, fmt.Sprint("link", i), NewInode{Mode: linux.S_IFLNK | 0o777, Target: target})
		must(t, err)
		if got, err := fs.Readlink(in); got != target || err != nil {
			t.Fatalf("link %d: %q, %v", i, got, err)
		}
		must(t, fs.Put(in))
	}
	for name, data := range want {
		ino, err := fs.Lookup(dir, name)
		must(t, err)
		in, err := fs.Get(ino)
		must(t, err)
		got := make([]byte, len(data)+10)
		n, err := fs.ReadAt(in, got, 0)
		must(t, err)
		if !bytes.Equal(got[:n], data) {
			t.Fatalf("%s differs", name)
		}
		switch rng.IntN(4) {
		case 0:
			must(t, fs.Unlink(dir, name, in))
		case 1:
			must(t, fs.Truncate(in, int64(rng.IntN(30000))))
		case 2:
			must(t, fs.Rename(dir, name, root, name+"+", 0))
		}
		must(t, fs.Put(in))
	}
}
