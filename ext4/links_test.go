package ext4

import (
	"fmt"
	"testing"

	"hardtack/abi/linux"
)

// TestLinkLimits: a directory of more subdirectories than a count of links holds says 1
// where the disk has dir_nlink, and is full where it has not; a file has 65,000 names.
func TestLinkLimits(t *testing.T) {
	for _, feature := range []string{"dir_nlink", "^dir_nlink"} {
		dev := mke2fs(t, "160M", "-b", "1024", "-N", "66000", "-O", feature)
		fs := mount(t, dev)
		root, err := fs.Root()
		must(t, err)
		top := create(t, fs, "/top", NewInode{Mode: linux.S_IFDIR | 0o755})
		other := create(t, fs, "/other", NewInode{Mode: linux.S_IFDIR | 0o755})
		n := 0
		for ; n < maxLinks+10; n++ {
			in, err := fs.Create(top, fmt.Sprint(n), NewInode{Mode: linux.S_IFDIR | 0o755})
			if Errno(err) == linux.EMLINK {
				break
			}
			must(t, err)
			must(t, fs.Put(in))
		}
		err = fs.Rename(root, "other", top, "moved", 0)
		if feature == "dir_nlink" {
			if n != maxLinks+10 || top.links() != 1 || err != nil {
				t.Errorf("%d directories, %d links; rename: %v", n, top.links(), err)
			}
		} else if n != maxLinks-2 || top.links() != maxLinks || Errno(err) != linux.EMLINK {
			t.Errorf("%d directories, %d links; rename: %v", n, top.links(), err)
		}
		for i := range n { // all but ten go
			if i%6500 == 0 {
				continue
			}
			in, err := fs.resolve(fmt.Sprint("/top/", i))
			must(t, err)
			must(t, fs.Unlink(top, fmt.Sprint(i), in))
			must(t, fs.Put(in))
		}
		for _, in := range []*Inode{root, top, other} {
			must(t, fs.Put(in))
		}
		must(t, fs.Unmount())
		wantClean(t, dev)
	}
}

// TestNameLimit: a file has 65,000 names, and no more by a rename either.
func TestNameLimit(t *testing.T) {
	dev := mkfsMem(t, 64<<20, 4096)
	fs := mount(t, dev)
	root, err := fs.Root()
	must(t, err)
	f := newFile(t, fs, "/f")
	n := 1
	for ; n < maxLinks+10; n++ {
		if err := fs.Link(root, fmt.Sprintf("%0250d", n), f); err != nil {
			if Errno(err) != linux.EMLINK {
				t.Fatal(err)
			}
			break
		}
	}
	if n != maxLinks {
		t.Errorf("%d names", n)
	}
	must(t, fs.Rename(root, "f", root, "g", 0))
	must(t, fs.Unlink(root, "g", f))
	must(t, fs.Link(root, "h", f))
	must(t, fs.Put(f))
	must(t, fs.Put(root))
	must(t, fs.Unmount())
	wantClean(t, dev)
}

// TestSharedXattrs: files share a block of attributes, as Linux lets them. Whoever changes
// his has a block of his own, and the last one frees it.
func TestSharedXattrs(t *testing.T) {
	dev := mkfsMem(t, 16<<20, 1024)
	fs := mount(t, dev)
	root, err := fs.Root()
	must(t, err)
	var files []*Inode
	value := make([]byte, 700)
	for i := range 4 {
		files = append(files, newFile(t, fs, fmt.Sprint("/f", i)))
	}
	must(t, fs.Setxattr(files[0], "user.long", value, 0))
	for _, in := range files[1:] {
		b, err := files[0].xattrBlock()
		must(t, err)
		h, err := fs.begin(4)
		must(t, err)
		d := h.write(b)
		le.PutUint32(d[xaRefs:], le.Uint32(d[xaRefs:])+1)
		in.setFileACL(b.blk)
		in.addBlocks(1)
		must(t, in.store(h))
		h.end()
	}
	must(t, fs.Setxattr(files[1], "user.long", value[:600], 0))
	must(t, fs.Removexattr(files[2], "user.long"))
	must(t, fs.Unlink(root, "f0", files[0]))
	for i, want := range []int{700, 600, -1, 700} {
		got, err := fs.Getxattr(files[i], "user.long")
		if want < 0 && Errno(err) != linux.ENODATA || want >= 0 && len(got) != want {
			t.Errorf("file %d: %d bytes, %v", i, len(got), err)
		}
		must(t, fs.Put(files[i]))
	}
	must(t, fs.Put(root))
	must(t, fs.Unmount())
	wantClean(t, dev)
}

// TestIndexedDirectoryGoes: a directory is removed whose index has a root and inner nodes
// in memory; all its blocks are free again.
func TestIndexedDirectoryGoes(t *testing.T) {
	dev := mkfsMem(t, 32<<20, 1024)
	fs := mount(t, dev)
	root, err := fs.Root()
	must(t, err)
	var before, after linux.Statfs
	fs.Statfs(&before)
	d := create(t, fs, "/d", NewInode{Mode: linux.S_IFDIR | 0o755})
	f := newFile(t, fs, "/f")
	const names = 3000
	for i := range names {
		must(t, fs.Link(d, fmt.Sprintf("%0100d", i), f))
	}
	for i := range names {
		must(t, fs.Unlink(d, fmt.Sprintf("%0100d", i), f))
	}
	must(t, fs.Unlink(root, "d", d))
	must(t, fs.Put(d))
	must(t, fs.Put(f))
	must(t, fs.Sync())
	if fs.Statfs(&after); after.Bfree != before.Bfree {
		t.Errorf("%d blocks free, %d before", after.Bfree, before.Bfree)
	}
	must(t, fs.Put(root))
	must(t, fs.Unmount())
	wantClean(t, dev)
}
