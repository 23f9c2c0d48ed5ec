package ext4

import (
	"runtime"
	"sync"
	"testing"

	"hardtack/abi/linux"
)

// TestRemount goes to read-only and back, with a clean disk in between.
func TestRemount(t *testing.T) {
	dev := mkfsMem(t, 32<<20, 1024)
	for _, first := range []bool{false, true} {
		fs := mountWith(t, dev, Options{ReadOnly: first})
		for i := range 3 {
			must(t, fs.Remount(false))
			root, err := fs.Root()
			must(t, err)
			name := string(rune('a'+i)) + map[bool]string{true: "1", false: "2"}[first]
			in, err := fs.Create(root, name, NewInode{Mode: linux.S_IFREG | 0o644})
			must(t, err)
			_, err = fs.WriteAt(in, []byte("content"), 0)
			must(t, err)
			must(t, fs.Unlink(root, name, in))
			if err := fs.Remount(true); Errno(err) != linux.EBUSY {
				t.Fatalf("with an open file without a name: %v", err)
			}
			must(t, fs.Put(in))
			in, err = fs.Create(root, name, NewInode{Mode: linux.S_IFREG | 0o644})
			must(t, err)
			must(t, fs.Remount(true))
			if err := fs.Fsync(in, false); err != nil {
				t.Fatalf("fsync when all is on the disk: %v", err)
			}
			must(t, fs.Put(in))
			if _, err := fs.Create(root, "x", NewInode{Mode: linux.S_IFREG}); Errno(err) != linux.EROFS {
				t.Fatalf("read-only: %v", err)
			}
			must(t, fs.Put(root))
			if n, err := Check(dev, func(s string) { t.Log(s) }); n != 0 || err != nil {
				t.Fatalf("%d problems, %v", n, err)
			}
		}
		must(t, fs.Unmount())
	}
}

// Files without names come and go while the file system becomes read-only: none is left on the disk.
func TestRemountRace(t *testing.T) {
	dev := mkfsMem(t, 32<<20, 1024)
	fs := mountWith(t, dev, Options{})
	root, err := fs.Root()
	must(t, err)
	stop, done := make(chan struct{}), make(chan struct{})
	var back sync.RWMutex // nothing changes while it becomes writable
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			back.RLock()
			in, err := fs.Tmpfile(root, NewInode{Mode: linux.S_IFREG | 0o644})
			back.RUnlock()
			if err != nil {
				runtime.Gosched() // read-only
				continue
			}
			if err := fs.Put(in); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 100 {
		for err = linux.EBUSY; Errno(err) == linux.EBUSY; {
			err = fs.Remount(true)
		}
		must(t, err)
		if n, err := Check(dev, func(s string) { t.Log(s) }); n != 0 || err != nil {
			t.Errorf("%d problems, %v", n, err)
			break
		}
		back.Lock()
		err = fs.Remount(false)
		back.Unlock()
		must(t, err)
	}
	close(stop)
	<-done
	must(t, fs.Put(root))
	must(t, fs.Unmount())
}
