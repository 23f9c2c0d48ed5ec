package ahci

import (
	"errors"
	"fmt"

	"hardtack/abi/linux"
	"hardtack/kernel/disk/blockdev"
)

// recover handles an error in its own goroutine. It resets the port, then reissues all
// commands; if there was only one, that one fails.
func (d *Disk) recover() {
	d.bh.Lock()
	defer d.bh.Unlock()
	d.mu.Lock()
	defer d.hand()
	defer d.mu.Unlock()
	if d.state != recovering {
		return // Reset was faster
	}
	d.collect()
	err := d.restart()
	var left []*blockdev.Command
	for slot, c := range d.cmds {
		if c != nil {
			left = append(left, c)
			d.cmds[slot] = nil
		}
	}
	d.ncq, d.plain = 0, 0
	if err != nil {
		// Pending commands time out, and their Reset tries harder. A disk that has
		// been removed fails them at once.
		if errors.Is(err, errGone) {
			d.state = gone
			for _, c := range append(left, d.replay...) {
				c.Err = linux.ENODEV
				d.batch = append(d.batch, c)
			}
			d.replay = nil
			return
		}
		d.replay = append(left, d.replay...)
		d.state = resetting
		return
	}
	if len(left) == 1 {
		left[0].Err = linux.EIO
		d.batch = append(d.batch, left[0])
		left = nil
	}
	d.replay = append(left, d.replay...)
	d.state = replaying
	d.next()
}

// next reissues one command, or ends the replay; bh and mu are held.
func (d *Disk) next() {
	if d.ncq|d.plain != 0 {
		return
	}
	if len(d.replay) == 0 {
		d.state = working
		return
	}
	c := d.replay[0]
	d.replay = d.replay[1:]
	if d.put(0, c) {
		d.issue(1, 0)
	} else {
		d.issue(0, 1)
	}
}

var errGone = errors.New("the disk is gone")

// restart stops the port, resets the link and starts it again; mu is held.
func (d *Disk) restart() error {
	if d.c.regs.Read32(regCAP) == ^uint32(0) {
		return errGone
	}
	d.write(portIE, 0)
	if err := d.stop(); err != nil {
		return err
	}
	d.comreset()
	if d.read(portSSTS)&0xf == 0 {
		return errGone
	}
	return d.start()
}

// Abort implements blockdev.Device. A single command of a disk's queue cannot be
// aborted. If the interrupt was lost, Abort finds the completion.
func (d *Disk) Abort(_ int, c *blockdev.Command) bool {
	d.bh.Lock()
	d.mu.Lock()
	d.collect()
	if d.state == replaying {
		d.next()
	}
	found := true
	for _, o := range d.cmds {
		if o == c {
			found = false
		}
	}
	for _, o := range d.replay {
		if o == c {
			found = false
		}
	}
	d.mu.Unlock()
	d.hand()
	d.bh.Unlock()
	return found
}

// Reset implements blockdev.Device.
func (d *Disk) Reset() error {
	d.bh.Lock()
	defer d.bh.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == gone {
		return fmt.Errorf("AHCI %v port %d: %w", d.c.f.Address, d.port, errGone)
	}
	d.state = resetting
	if err := d.restart(); err != nil {
		d.state = gone
		return fmt.Errorf("AHCI %v port %d: %w", d.c.f.Address, d.port, err)
	}
	clear(d.cmds[:])
	d.ncq, d.plain, d.replay = 0, 0, nil
	d.state = working
	return nil
}
