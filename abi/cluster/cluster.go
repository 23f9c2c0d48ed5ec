// Package cluster is how programs talk to the kernels of other clusters of the machine: by
// a device, which is there if the machine has several.
//
// An open Device is nothing yet. Connect makes it a channel, a stream of bytes to a process
// of another cluster, and Listen makes it what such channels arrive at. read, write and
// poll are those of a stream socket; a channel whose other cluster ended fails with
// ECONNRESET.
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
)

// Address is a name in a cluster. The name ends at the first zero.
type Address struct {
	Cluster uint32
	Name    [64]byte
}

// Sizes of the structures.
const (
	AddressSize = 68
	PeerSize    = 20
)

// Peer is what WhoIs tells.
type Peer struct {
	Own     uint32 // the number of the caller's cluster
	Cluster uint32
	PID     uint32
	UID     uint32
	GID     uint32
}
