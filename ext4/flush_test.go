package ext4

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// fuaDisk notes the order of writes and flushes, and calls at before a write that is
// to be durable at once: the end of a commit.
type fuaDisk struct {
	*memDisk
	at func()

	mu  sync.Mutex
	log []string // guarded by mu: "flush", or the first byte of a block of data
}

func (d *fuaDisk) note(s string) {
	d.mu.Lock()
	d.log = append(d.log, s)
	d.mu.Unlock()
}

func (d *fuaDisk) Flush() error {
	d.note("flush")
	return d.memDisk.Flush()
}

func (d *fuaDisk) WriteAt(batch []Transfer, fua bool) error {
	if fua && d.at != nil {
		d.at()
	}
	err := d.memDisk.WriteAt(batch, fua)
	if len(batch) == 1 && batch[0].Buf[0] == '!' {
		d.note("!")
	}
	return err
}

// TestFsyncOver: data that is written in place after the flush of a commit is not
// durable by that commit, though its file's last change is in it.
func TestFsyncOver(t *testing.T) {
	d := &fuaDisk{memDisk: newMemDisk(32 << 20)}
	must(t, Mkfs(d, MkfsOptions{Zeroed: true}))
	fs := mount(t, d)
	in := create(t, fs, "/f", NewInode{Mode: 0o100644})
	data := make([]byte, 4096)
	_, err := fs.WriteAt(in, data, 0)
	must(t, err)
	var late sync.WaitGroup
	d.at = func() {
		d.at = nil
		data[0] = '!'
		if done, err := fs.Overwrite(in, [][]byte{data}, 0); !done || err != nil {
			t.Errorf("Overwrite: %v, %v", done, err)
		}
		late.Go(func() {
			if err := fs.Fsync(in, true); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(50 * time.Millisecond) // it waits for the commit by now, mostly
	}
	must(t, fs.Fsync(in, true))
	late.Wait()
	if at := slices.Index(d.log, "!"); at < 0 || !slices.Contains(d.log[at:], "flush") {
		t.Errorf("fdatasync returned without a flush behind the data: %v", d.log)
	}
	must(t, fs.Put(in))
	must(t, fs.Unmount())
	wantClean(t, d.memDisk)
}
