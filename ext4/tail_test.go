package ext4

import (
	"bytes"
	"testing"
)

// A write that was cut short by a crash, or whose commit failed, leaves bytes in the
// last block behind the end of the file. Nobody sees them when the file grows.
func TestTailIsZeros(t *testing.T) {
	for name, grow := range map[string]func(fs *FS, in *Inode) error{
		"pages":     func(fs *FS, in *Inode) error { return fs.WriteOut(in, [][]byte{make([]byte, 4096)}, 8192, 12288) },
		"bytes":     func(fs *FS, in *Inode) error { _, err := fs.WriteAt(in, []byte("x"), 9000); return err },
		"truncate":  func(fs *FS, in *Inode) error { return fs.Truncate(in, 9000) },
		"fallocate": func(fs *FS, in *Inode) error { return fs.Fallocate(in, 0, 8192, 100) },
	} {
		t.Run(name, func(t *testing.T) {
			m := mkfsMem(t, 16<<20, 4096)
			fs := mount(t, m)
			in := newFile(t, fs, "/f")
			_, err := fs.WriteAt(in, bytes.Repeat([]byte{1}, 100), 0)
			must(t, err)
			p, err := fs.MapBlock(in, 0)
			must(t, err)
			must(t, m.WriteAt([]Transfer{{fs.byteOf(p.Phys), bytes.Repeat([]byte{2}, 4096)}}, false))
			if name == "pages" {
				must(t, fs.Reserve(1))
			}
			must(t, grow(fs, in))
			got := make([]byte, 4096)
			_, err = fs.ReadAt(in, got, 0)
			must(t, err)
			if i := bytes.IndexFunc(got[100:], func(r rune) bool { return r != 0 }); i >= 0 {
				t.Errorf("byte %d is %d", 100+i, got[100+i])
			}
			must(t, fs.Put(in))
			must(t, fs.Unmount())
			wantClean(t, m)
		})
	}
}
