package ext4

import (
	"bytes"
	"testing"

	"hardtack/abi/linux"
)

// TestFullTree: where no block is free for the nodes of a tree, space that was set
// aside takes what is written to it all the same: within the file, and behind its end,
// whether all was accepted before the first is written or not.
func TestFullTree(t *testing.T) {
	const blocks = 2000
	for _, kind := range []string{"within", "behind", "accepted"} {
		for _, order := range []string{"up", "down", "mixed"} {
			dev := mkfsMem(t, 16<<20, 1024)
			fs := mount(t, dev)
			f := newFile(t, fs, "/f")
			mode := uint32(0)
			if kind != "within" {
				mode = linux.FALLOC_FL_KEEP_SIZE
			}
			must(t, fs.Fallocate(f, mode, 0, blocks*1024))
			all := fs.free.Load()
			must(t, fs.promise(all)) // nobody gets any more
			want := make([]byte, blocks*1024)
			size, refused := f.Size(), 0
			for i := range blocks / 2 {
				n := i
				switch order {
				case "down":
					n = blocks/2 - 1 - i
				case "mixed":
					n = i * 377 % (blocks / 2)
				}
				at := int64(2*n) * 1024
				p := bytes.Repeat([]byte{byte(n%255 + 1)}, 1024)
				copy(want[at:], p)
				if size = max(size, at+1024); kind == "accepted" {
					size = blocks * 1024
				}
				if holes, err := fs.Holes(f, at, 1024); kind == "behind" && holes > 0 && err == nil {
					clear(want[at : at+1024]) // given to nodes: it would not be accepted
					refused++
					continue
				}
				if err := fs.WritePages(f, &Out{Pages: [][]byte{p}, Off: at, Size: size}); err != nil {
					t.Fatalf("%s, %s: write %d at block %d: %v", kind, order, i, 2*n, err)
				}
			}
			zeroed := 0
			for i := uint32(1); i < blocks; i += 2 {
				if m, err := fs.MapBlock(f, i); err == nil && m.Phys != 0 && !m.Unwritten {
					zeroed++
				}
			}
			if kind != "behind" && zeroed == 0 || refused > blocks/20 {
				t.Errorf("%s, %s: %d blocks got zeros, %d writes were refused", kind, order, zeroed, refused)
			}
			got := make([]byte, size)
			if _, err := fs.ReadAt(f, got, 0); err != nil || !bytes.Equal(got, want[:size]) {
				t.Errorf("%s, %s: other bytes are there: %v", kind, order, err)
			}
			fs.free.Add(all)
			must(t, fs.Put(f))
			must(t, fs.Unmount())
			wantClean(t, dev)
		}
	}
}
