// Package nvme drives NVMe controllers (NVM Express 1.4) over PCI. Each active
// namespace is a Disk, which implements kernel/disk/blockdev.Device.
//
// A controller has one admin queue, polled by one goroutine at a time, and a queue pair
// per CPU with its own message interrupt. Each command has a slot with a page for its PRP
// list, used when the data spans more than two pages. A command copies and allocates
// nothing.
//
// Memory of a queue pair of depth commands: depth × (64 + 16 + 4096) bytes.
//
// Lock order: Controller.admin; pair.bh; what the receiver of completions takes;
// pair.mu. The admin queue's own state is under Controller.admin.
package nvme

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"hardtack/driver"
	"hardtack/driver/pci"
	"hardtack/kernel/disk/blockdev"
)

// Registers (section 3.1).
const (
	regCAP  = 0x00
	regVS   = 0x08
	regINTM = 0x0c // interrupt mask set
	regCC   = 0x14
	regCSTS = 0x1c
	regAQA  = 0x24
	regASQ  = 0x28
	regACQ  = 0x30
	regDoor = 0x1000

	ccEnable = 1 << 0
	// Entries of 64 and 16 bytes, pages of 4 KiB, NVM command set.
	ccEntries = 6<<16 | 4<<20

	statusReady = 1 << 0
	statusFatal = 1 << 1
)

// Commands (sections 5 and 6).
const (
	adminDeleteSQ  = 0x00
	adminCreateSQ  = 0x01
	adminDeleteCQ  = 0x04
	adminCreateCQ  = 0x05
	adminIdentify  = 0x06
	adminAbort     = 0x08
	adminSet       = 0x09
	ioFlush        = 0x00
	ioWrite        = 0x01
	ioRead         = 0x02
	ioWriteZeroes  = 0x08
	ioManagement   = 0x09 // dataset management
	flagFUA        = 1 << 30
	flagDealloc    = 1 << 25 // of write zeroes
	flagDeallocate = 1 << 2  // of dataset management

	featureQueues = 0x07
)

const (
	adminDepth  = 16
	maxDepth    = 64
	maxQueues   = 16
	adminTime   = 5 * time.Second
	sqeSize     = 64
	cqeSize     = 16
	listEntries = driver.PageSize / 8
	classNVMe   = 0x010802
)

// Controller is an NVMe controller.
type Controller struct {
	platform driver.Platform // immutable
	f        *pci.Function   // immutable
	regs     driver.MMIO     // immutable
	stride   uint64          // immutable; bytes between doorbells
	ready    time.Duration   // immutable; how long enabling may take
	maxPages int             // immutable; of a command's data
	model    string          // immutable
	serial   string          // immutable
	cache    bool            // immutable; volatile write cache
	oncs     uint16          // immutable; optional commands
	depth    int             // immutable
	pairs    []*pair         // immutable
	disks    []*Disk         // immutable

	admin    sync.Mutex
	adminQ   ring       // guarded by admin
	page     driver.DMA // guarded by admin
	nextID   uint16     // guarded by admin
	resetGen int        // guarded by admin; how often the controller was reset
}

// ring is a submission and its completion queue in memory.
type ring struct {
	sq, cq       driver.DMA
	sqDoor       uint64
	cqDoor       uint64
	size         uint32
	tail, head   uint32
	phase        uint16
	sqID, vector uint16
}

// Is reports whether a PCI function is an NVMe controller.
func Is(f *pci.Function) bool {
	return uint32(f.Class)<<16|uint32(f.Subclass)<<8|uint32(f.Programming) == classNVMe
}

// New initializes a controller with at most a number of queue pairs. More than one per
// CPU is no use.
func New(p driver.Platform, f *pci.Function, queues int) (*Controller, error) {
	c := &Controller{platform: p, f: f}
	f.Enable(false)
	var err error
	if c.regs, err = f.Map(0, 0, 0); err != nil {
		return nil, err
	}
	if err := c.open(queues); err != nil {
		c.regs.Write32(regCC, 0)
		return nil, fmt.Errorf("NVMe %v: %w", f.Address, err)
	}
	return c, nil
}

// Disks returns the namespaces.
func (c *Controller) Disks() []*Disk { return c.disks }

func (c *Controller) open(queues int) error {
	capability := c.regs.Read64(regCAP)
	if capability == ^uint64(0) {
		return errors.New("the device is gone")
	}
	if capability>>37&1 == 0 {
		return errors.New("no NVM command set")
	}
	if capability>>48&15 != 0 {
		return errors.New("no pages of 4 KiB")
	}
	c.stride = 4 << (capability >> 32 & 15)
	c.ready = max(time.Duration(capability>>24&0xff)*500*time.Millisecond, time.Second)
	c.depth = min(int(capability&0xffff)+1, maxDepth)
	if c.depth < 2 {
		return errors.New("queues of one entry")
	}
	queues = min(max(queues, 1), maxQueues)
	if err := c.allocate(queues); err != nil {
		return err
	}
	c.admin.Lock()
	defer c.admin.Unlock()
	if err := c.enable(); err != nil {
		return err
	}
	if err := c.identify(); err != nil {
		return err
	}
	granted, err := c.setQueues(len(c.pairs))
	if err != nil {
		return err
	}
	c.pairs = c.pairs[:min(len(c.pairs), granted)]
	if err := c.connect(); err != nil {
		return err
	}
	if err := c.createPairs(); err != nil {
		return err
	}
	return c.namespaces()
}

// allocate allocates the queues' memory.
func (c *Controller) allocate(queues int) error {
	var ok bool
	if c.page, ok = c.platform.AllocDMA(1); !ok {
		return errNoMemory
	}
	if !c.adminQ.alloc(c.platform, adminDepth) {
		return errNoMemory
	}
	c.adminQ.sqDoor, c.adminQ.cqDoor = regDoor, regDoor+c.stride
	for i := range queues {
		q := &pair{c: c, index: i}
		if !q.alloc(c.platform, c.depth) {
			return errNoMemory
		}
		q.r.sqID = uint16(i + 1)
		q.r.sqDoor = regDoor + uint64(2*(i+1))*c.stride
		q.r.cqDoor = q.r.sqDoor + c.stride
		c.pairs = append(c.pairs, q)
	}
	return nil
}

var errNoMemory = errors.New("no memory")

func (r *ring) alloc(p driver.Platform, n int) (ok bool) {
	r.size = uint32(n)
	if r.sq, ok = p.AllocDMA(driver.Pages(n * sqeSize)); !ok {
		return false
	}
	r.cq, ok = p.AllocDMA(driver.Pages(n * cqeSize))
	return ok
}

// empty puts a ring into the state that the controller expects of a new one.
func (r *ring) empty() {
	clear(r.cq.Virt)
	r.tail, r.head, r.phase = 0, 0, 1
}

// enable resets the controller and starts it with the admin queue. admin is held.
func (c *Controller) enable() error {
	if err := c.disable(); err != nil {
		return err
	}
	c.adminQ.empty()
	c.regs.Write32(regAQA, (adminDepth-1)<<16|(adminDepth-1))
	c.write64(regASQ, c.adminQ.sq.Phys)
	c.write64(regACQ, c.adminQ.cq.Phys)
	c.regs.Write32(regCC, ccEntries|ccEnable)
	return c.waitReady(statusReady)
}

// disable stops the controller. If it returns no error, the controller no longer
// accesses memory.
func (c *Controller) disable() error {
	c.regs.Write32(regCC, c.regs.Read32(regCC)&^ccEnable)
	return c.waitReady(0)
}

func (c *Controller) waitReady(want uint32) error {
	for deadline := time.Now().Add(c.ready); ; time.Sleep(100 * time.Microsecond) {
		s := c.regs.Read32(regCSTS)
		switch {
		case s == ^uint32(0):
			return errors.New("the device is gone")
		case s&statusReady == want:
			return nil
		case want != 0 && s&statusFatal != 0:
			return errors.New("the controller reports a fatal error")
		case time.Now().After(deadline):
			return fmt.Errorf("status %#x after %v", s, c.ready)
		}
	}
}

func (c *Controller) write64(off, v uint64) {
	c.regs.Write32(off, uint32(v))
	c.regs.Write32(off+4, uint32(v>>32))
}

// do executes an admin command and waits for it. admin is held.
func (c *Controller) do(e *entry) (result uint32, err error) {
	r := &c.adminQ
	c.nextID++
	e.id(c.nextID)
	copy(r.sq.Virt[r.tail*sqeSize:], e[:])
	if r.tail++; r.tail == r.size {
		r.tail = 0
	}
	c.regs.Write32(r.sqDoor, r.tail)
	for deadline := time.Now().Add(adminTime); ; time.Sleep(20 * time.Microsecond) {
		x := r.cq.Virt[r.head*cqeSize:][:cqeSize]
		status := loadStatus(x)
		if status&1 == r.phase {
			if r.head++; r.head == r.size {
				r.head = 0
				r.phase ^= 1
			}
			c.regs.Write32(r.cqDoor, r.head)
			if binary.LittleEndian.Uint16(x[12:]) != c.nextID {
				continue // of an abandoned command
			}
			if status>>1 != 0 {
				return 0, fmt.Errorf("admin command %#x: status %#x", e[0], status>>1)
			}
			return binary.LittleEndian.Uint32(x), nil
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("admin command %#x: no answer", e[0])
		}
		if c.regs.Read32(regCSTS) == ^uint32(0) {
			return 0, errors.New("the device is gone")
		}
	}
}

func (c *Controller) identify() error {
	e := newEntry(adminIdentify, 0)
	e.data(c.page.Phys)
	e.dword(10, 1) // the controller
	if _, err := c.do(e); err != nil {
		return err
	}
	b := c.page.Virt
	text := func(b []byte) string { return string(bytes.TrimSpace(b)) }
	c.serial, c.model = text(b[4:24]), text(b[24:64])
	c.maxPages = listEntries
	if mdts := b[77]; mdts != 0 {
		c.maxPages = 1 << min(mdts, 9)
	}
	c.oncs = binary.LittleEndian.Uint16(b[520:])
	c.cache = b[525]&1 != 0
	return nil
}

// setQueues requests queue pairs and returns how many the controller grants.
func (c *Controller) setQueues(n int) (int, error) {
	e := newEntry(adminSet, 0)
	e.dword(10, featureQueues)
	e.dword(11, uint32(n-1)<<16|uint32(n-1))
	v, err := c.do(e)
	return int(min(v&0xffff, v>>16)) + 1, err
}

// connect sets up the interrupts: MSI-X with a message for each queue pair, as far as
// there are enough, or else the pin.
func (c *Controller) connect() error {
	m, err := c.f.MSIX()
	if err != nil {
		gsi, err := c.f.GSI()
		if err != nil {
			return err
		}
		c.f.Enable(true)
		return c.platform.Interrupt(gsi, true, false, func() {
			c.regs.Write32(regINTM, 1)
			for _, q := range c.pairs {
				q.completed()
			}
			c.regs.Write32(regINTM+4, 1)
		})
	}
	// Message 0 belongs to the admin queue, which is polled.
	if m.Len() < 2 {
		c.pairs = c.pairs[:1]
	}
	c.pairs = c.pairs[:min(len(c.pairs), max(m.Len()-1, 1))]
	for i, q := range c.pairs {
		addr, data, err := c.platform.MSI(i, q.completed)
		if err != nil {
			if i == 0 {
				return err
			}
			c.pairs = c.pairs[:i]
			break
		}
		q.r.vector = uint16(min(i+1, m.Len()-1))
		if err := m.Set(int(q.r.vector), addr, data); err != nil {
			return err
		}
	}
	return nil
}

// createPairs creates the queue pairs in the controller, empty. admin is held, and the
// pairs are not in use.
func (c *Controller) createPairs() error {
	for _, q := range c.pairs {
		q.r.empty()
		e := newEntry(adminCreateCQ, 0)
		e.data(q.r.cq.Phys)
		e.dword(10, (q.r.size-1)<<16|uint32(q.r.sqID))
		e.dword(11, uint32(q.r.vector)<<16|3) // contiguous, with interrupts
		if _, err := c.do(e); err != nil {
			return err
		}
		e = newEntry(adminCreateSQ, 0)
		e.data(q.r.sq.Phys)
		e.dword(10, (q.r.size-1)<<16|uint32(q.r.sqID))
		e.dword(11, uint32(q.r.sqID)<<16|1)
		if _, err := c.do(e); err != nil {
			return err
		}
	}
	return nil
}

// namespaces makes a disk of each active namespace that can be used.
func (c *Controller) namespaces() error {
	e := newEntry(adminIdentify, 0)
	e.data(c.page.Phys)
	e.dword(10, 2) // the active ones
	if _, err := c.do(e); err != nil {
		return err
	}
	var ids []uint32
	for i := 0; i < driver.PageSize; i += 4 {
		id := binary.LittleEndian.Uint32(c.page.Virt[i:])
		if id == 0 {
			break
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		e := newEntry(adminIdentify, id)
		e.data(c.page.Phys)
		if _, err := c.do(e); err != nil {
			return err
		}
		if d := c.newDisk(id, c.page.Virt); d != nil {
			c.disks = append(c.disks, d)
		}
	}
	return nil
}

var _ blockdev.Device = (*Disk)(nil)
