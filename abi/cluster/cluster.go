// Package cluster is how programs talk to the kernels of other clusters of the machine: by
// a device, which is there if the machine has several.
//
// An open Device is nothing yet. Connect makes it a channel, a stream of bytes to a process
// of another cluster, and Listen makes it what such channels arrive at. read, write and
// poll are those of a stream socket; a channel whose other cluster ended fails with
// ECONNRESET.
//
// A channel may have rings beside the stream: memory that the processes at both ends map, and a
// doorbell. Rings returns their file. It is mapped as a whole, with MAP_SHARED: the first half is
// the ring that the end writes that has connected. A write to the file rings for the other end,
// and never waits; a read takes the rings that have come, as one byte, and returns 0 at the
// channel's end. The memory stays while it is mapped.
package cluster

// Device is the device's path.
const Device = "/dev/cluster"

// Spawn is the name that only CAP_SYS_ADMIN may listen or connect to: who listens there
// starts programs.
const Spawn = "spawn"

// Requests of ioctl(2) on the device.
const (
	// Connect takes an Address. ENODEV: there is no such cluster, or it does not run;
	// ENOENT: nobody there listens by that name; EAGAIN: too many wait for him.
	Connect = 0x40444801
	// Listen takes an Address, whose cluster is not used; EADDRINUSE if the name is taken.
	Listen = 0x40444802
	// Accept returns a descriptor of the next channel that has come. The argument is 0 or
	// of O_NONBLOCK and O_CLOEXEC.
	Accept = 0x4803
	// WhoIs fills in a Peer: who has the other end of a channel, as his kernel says. Of
	// other files it tells the own cluster alone.
	WhoIs = 0x80144804
	// ConnectRings takes a RingAddress. It is Connect, for a channel with rings, if there is
	// memory for them.
	ConnectRings = 0x40484805
	// RingPages returns how many pages each of a channel's rings has: 0 if it has none.
	RingPages = 0x4806
	// Rings returns the descriptor of a channel's rings, once. The argument is that of Accept.
	// ENODATA: it has none; EBUSY: somebody has it.
	Rings = 0x4807
	// Await, of the file of the rings, is a read that waits, but at most for its argument, in
	// nanoseconds: ETIMEDOUT. EINTR: a signal came; EPIPE is the channel's end. While somebody waits so, rings are
	// his alone, and the file does not become readable for others.
	Await = 0x4808
	// Rouse, of the file of the rings, ends an Await, the next one if there is none.
	Rouse = 0x4809
)

// MaxRingPages is the size of the largest rings.
const MaxRingPages = 4

// Address is a name in a cluster. The name ends at the first zero.
type Address struct {
	Cluster uint32
	Name    [64]byte
}

// RingAddress is an Address, and how large the rings should be.
type RingAddress struct {
	Address
	Pages uint32 // 1 to MaxRingPages
}

// Sizes of the structures.
const (
	AddressSize     = 68
	RingAddressSize = 72
	PeerSize        = 20
)

// Peer is what WhoIs tells.
type Peer struct {
	Own     uint32 // the number of the caller's cluster
	Cluster uint32
	PID     uint32
	UID     uint32
	GID     uint32
}
