// Package blockdev declares what the driver of a disk controller supplies to
// kernel/disk/block, which queues, merges, retries and counts. It is made of plain types
// only. Sectors are always 512 bytes, whatever the disk's blocks are.
package blockdev

import "hardtack/abi/linux"

// SectorSize and SectorShift describe the unit of places and lengths.
const (
	SectorSize  = 512
	SectorShift = 9
)

// Op is what a command does.
type Op uint8

// Operations.
const (
	Read Op = iota
	Write
	// Flush makes every write that had completed before it was submitted durable.
	Flush
	// Discard says that the content is not needed any more.
	Discard
	// WriteZeroes makes the content zeros; the device may drop the blocks.
	WriteZeroes
)

func (o Op) String() string {
	return [...]string{"read", "write", "flush", "discard", "write zeroes"}[o]
}

// Segment is a piece of physically contiguous memory.
type Segment struct {
	Phys uint64
	Len  uint32 // bytes; a multiple of SectorSize
}

// Command is one request to the device. It and the memory that it names are the
// device's from Submit until its completion, or the end of a Reset.
type Command struct {
	Op      Op
	FUA     bool   // of a write: durable when it completes; only where Limits.FUA
	NoUnmap bool   // of WriteZeroes: the blocks stay allocated
	Sector  uint64 // where it begins
	Sectors uint32 // how many; the sum of Data for Read and Write
	Data    []Segment

	// Err is the result, set before completion: 0, EIO, EOPNOTSUPP, ENOSPC, or
	// ENODEV when the device is gone.
	Err linux.Errno
	// Tag is the driver's.
	Tag int32
	// Index is kernel/disk/block's.
	Index int32
}

// Limits says what a device can do.
type Limits struct {
	Sectors       uint64 // capacity
	LogicalBlock  int    // bytes; the unit that it addresses
	PhysicalBlock int    // bytes; smaller writes cost a read
	OptimalIO     int    // bytes, 0 if it has no wish
	ReadOnly      bool
	Rotational    bool
	Removable     bool

	Queues      int // how many may be submitted to at a time
	Depth       int // commands that a queue holds at most
	MaxSectors  uint32
	MaxSegments int
	// MaxSegment bounds one segment's bytes, 0: no bound.
	MaxSegment uint32
	// PageLists: a segment that is not the first begins at a page border, and one
	// that is not the last ends at one (NVMe's PRP).
	PageLists bool

	WriteCache bool // volatile: Flush is needed
	FUA        bool // Command.FUA works

	MaxDiscard     uint32 // sectors a Discard; 0: it cannot
	DiscardGrain   int    // bytes
	MaxWriteZeroes uint32 // sectors a WriteZeroes; 0: it cannot
}

// Device is a disk behind a controller.
type Device interface {
	// Limits says what it can do; immutable.
	Limits() Limits
	// Model and Serial are for people; immutable.
	Model() string
	Serial() string
	// Start names who hears of completions, before the first Submit. The device
	// calls done from its interrupt goroutine, one at a time a queue, without
	// locks that Submit takes. The slice is the device's again when done returns.
	Start(done func(queue int, batch []*Command))
	// Submit hands commands to a queue and returns how many of them, from the
	// first on, it took: fewer when the queue is full, none while the device is
	// being reset or gone. It rings the doorbell once a call and never sleeps.
	// It may be called by several goroutines at once.
	Submit(queue int, cmds []*Command) int
	// Abort is called for a command that has not come back for too long. It
	// returns true when the device gave up that command alone: it completes,
	// with an error, soon. False: Reset is needed. It may sleep.
	Abort(queue int, c *Command) bool
	// Reset makes the device forget all commands; when it returns none is being
	// completed, none will be, and their memory is not accessed any more. What
	// they have done is unknown. An error: the device is lost, and may still
	// access the memory of commands. It may sleep, and is called by one goroutine
	// at a time.
	Reset() error
}
