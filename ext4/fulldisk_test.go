package ext4

import (
	"bytes"
	"fmt"
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

// TestLateBlocks: what Reserve has accepted can be written, in the order that takes the
// most nodes: backwards, so that leaves stay half full, or into a tree whose leaves are
// full, one block for each of them at a time. Names take what they get before.
func TestLateBlocks(t *testing.T) {
	for _, kind := range []string{"backwards", "full leaves"} {
		dev := mkfsMem(t, 32<<20, 1024)
		fs := mount(t, dev)
		f := newFile(t, fs, "/f")
		block := make([]byte, 1024)
		write := func(at int64, reserved int64) error {
			return fs.WritePages(f, &Out{Pages: [][]byte{block}, Off: at * 1024, Size: (at + 1) * 1024, Reserved: reserved})
		}
		before := int64(0)
		if kind == "full leaves" {
			before = int64(fs.s.blocks) / 2
			for i := range before {
				must(t, write(3*i, 0))
			}
		}
		n, free := int64(0), fs.free.Load()
		for ; ; n++ {
			if err := fs.Reserve(1); err != nil {
				if Errno(err) != linux.ENOSPC {
					t.Fatal(err)
				}
				break
			}
		}
		root, err := fs.resolve("/")
		must(t, err)
		for i := 0; err == nil; i++ {
			var in *Inode
			name := fmt.Sprintf("%0200d", i)
			if in, err = fs.Create(root, name, NewInode{Mode: linux.S_IFREG | 0o644}); err == nil {
				must(t, fs.Put(in))
			}
		}
		if Errno(err) != linux.ENOSPC {
			t.Fatal(err)
		}
		must(t, fs.Put(root))
		if n < free*9/10 {
			t.Errorf("%s: %d blocks were accepted of %d", kind, n, free)
		}
		leaf := int64(fs.s.nodeRoom())
		for i := range n {
			at := 2 * (n - 1 - i)
			if kind == "full leaves" {
				at = 3*((i*leaf)%before+i*leaf/before) + 1
			}
			if err := write(at, 1); err != nil {
				t.Fatalf("%s: block %d of %d: %v", kind, i, n, err)
			}
		}
		if late := fs.late.Load(); late != 0 {
			t.Errorf("%s: %d blocks are late after all were written", kind, late)
		}
		must(t, fs.Put(f))
		must(t, fs.Unmount())
		wantClean(t, dev)
	}
}
