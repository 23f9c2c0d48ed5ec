package disk

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/ext4"
)

// overlayUnit is what an overlay keeps of a disk at a time, in bytes.
const overlayUnit = 4096

// Overlay makes a device that reads as dev does and keeps what is written in
// memory: so a disk that was not unmounted can be recovered to look at it, and
// stays as it is.
func Overlay(dev ext4.BlockDevice) ext4.BlockDevice {
	return &overlay{BlockDevice: dev, units: map[int64][]byte{}}
}

type overlay struct {
	ext4.BlockDevice // below

	mu    sync.RWMutex
	units map[int64][]byte // what was written, by number; guarded by mu
}

// each calls f with the pieces of the units that a transfer covers.
func each(t ext4.Transfer, f func(unit int64, off int, piece []byte) error) error {
	for at := 0; at < len(t.Buf); {
		pos := t.Off + int64(at)
		off := int(pos % overlayUnit)
		n := min(overlayUnit-off, len(t.Buf)-at)
		if err := f(pos/overlayUnit, off, t.Buf[at:at+n]); err != nil {
			return err
		}
		at += n
	}
	return nil
}

func (o *overlay) ReadAt(batch []ext4.Transfer) error {
	if err := o.BlockDevice.ReadAt(batch); err != nil {
		return err
	}
	o.mu.RLock()
	defer o.mu.RUnlock()
	for _, t := range batch {
		_ = each(t, func(unit int64, off int, piece []byte) error {
			if u := o.units[unit]; u != nil {
				copy(piece, u[off:])
			}
			return nil
		})
	}
	return nil
}

func (o *overlay) WriteAt(batch []ext4.Transfer, _ bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range batch {
		if t.Off < 0 || t.Off > o.Size() || int64(len(t.Buf)) > o.Size()-t.Off {
			return linux.EIO
		}
		err := each(t, func(unit int64, off int, piece []byte) error {
			u := o.units[unit]
			if u == nil {
				u = make([]byte, overlayUnit)
				n := min(overlayUnit, o.Size()-unit*overlayUnit)
				if err := o.BlockDevice.ReadAt([]ext4.Transfer{{Off: unit * overlayUnit, Buf: u[:n]}}); err != nil {
					return err
				}
				o.units[unit] = u
			}
			copy(u[off:], piece)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (o *overlay) Flush() error               { return nil }
func (o *overlay) Discard(off, n int64) error { return nil }
