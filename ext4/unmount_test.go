package ext4

import (
	"fmt"
	"testing"

	"hardtack/abi/linux"
)

// badSectors is a disk some of whose blocks cannot be written; the others of a request
// are.
type badSectors struct {
	*memDisk
	from, to int64
}

func (d *badSectors) WriteAt(batch []Transfer, fua bool) (err error) {
	for _, x := range batch {
		if x.Off < d.to && x.Off+int64(len(x.Buf)) > d.from {
			err = fmt.Errorf("a bad sector: %w", linux.EIO)
		} else if e := d.memDisk.WriteAt([]Transfer{x}, fua); e != nil {
			return e
		}
	}
	return err
}

// TestUnmountBad: an unmount that cannot write a block home fails, and leaves the disk
// as one whose log must be replayed; so nothing that was synced is lost.
func TestUnmountBad(t *testing.T) {
	for _, what := range []string{"table", "bitmap", "directory"} {
		t.Run(what, func(t *testing.T) {
			d := &badSectors{memDisk: mkfsMem(t, 16<<20, 4096)}
			fs := mount(t, d)
			in := newFile(t, fs, "/f")
			_, err := fs.WriteAt(in, []byte("synced"), 0)
			must(t, err)
			must(t, fs.Fsync(in, false))
			root, err := fs.Root()
			must(t, err)
			blk := in.blk
			switch what {
			case "bitmap":
				blk = fs.groups[0].blockBitmap
			case "directory":
				blk, err = root.dirPhys(0)
				must(t, err)
			}
			fs.Put(root)
			fs.Put(in)
			d.from, d.to = fs.byteOf(blk), fs.byteOf(blk+1)
			if err := fs.Unmount(); Errno(err) != linux.EIO {
				t.Errorf("unmount: %v", err)
			}
			d.from, d.to = 0, 0
			s, _, err := readSuper(d)
			must(t, err)
			if s.incompat&incompatRecover == 0 {
				t.Error("the disk is marked clean")
			}
			fs = mount(t, d)
			in, err = fs.resolve("/f")
			must(t, err)
			p := make([]byte, 10)
			if n, err := fs.ReadAt(in, p, 0); err != nil || string(p[:n]) != "synced" {
				t.Errorf("%q, %v", p[:n], err)
			}
			fs.Put(in)
			must(t, fs.Unmount())
			wantClean(t, d.memDisk)
		})
	}
}

// TestCheckLive: a disk that is marked clean while its log holds changes is not clean.
func TestCheckLive(t *testing.T) {
	m := damageBase(t, true)
	raw := make([]byte, superSize)
	must(t, m.ReadAt([]Transfer{{superOffset, raw}}))
	le.PutUint32(raw[sbIncompat:], le.Uint32(raw[sbIncompat:])&^incompatRecover)
	sealSuper(raw)
	must(t, m.WriteAt([]Transfer{{superOffset, raw}}, false))
	fs := mountWith(t, m, Options{ReadOnly: true, NoLoad: true})
	if !fs.Info().Recover {
		t.Error("nothing to replay")
	}
	if n, err := Check(m, func(string) {}); n == 0 || err != nil {
		t.Errorf("%d problems, %v", n, err)
	}
}
