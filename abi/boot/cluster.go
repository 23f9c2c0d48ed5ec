package boot

// Further clusters: other kernels in the same machine, each with memory and processors of
// its own (docs/decisions/0196-clusters.md).

// Mailboxes is where the start-up code of a processor finds what to do: 32 bytes for each
// local APIC ID: the page table root, where to go with it, what goes to RDI, and 1 if the
// processor is parked. A page below 1 MiB.
const (
	Mailboxes    = 0x9000
	MailboxSize  = 32
	MaxMailboxes = 128
)

// MaxClusters bounds the clusters of a machine.
const MaxClusters = 16

// MaxRuns bounds the runs of pieces that a cluster's memory consists of at its start.
const MaxRuns = 32

// ClusterFlag in StartInfo.Flags says that the information begins a ClusterInfo.
const ClusterFlag = 1 << 31

// What lies at the start of a cluster's memory. The first cluster maps the pages up to
// ClusterTables; the cluster itself owns them.
const (
	ClusterStatus = 0x1000 // offset of the status page
	ClusterLog    = 0x2000 // offset of the log ring
	ClusterLogLen = 0x8000
	ClusterRoot   = 0xa000 // offset of the first page table root; other tables follow
)

// AreaPages is the size of an area that two clusters share.
const AreaPages = 13

// NetPages is the size of the wire between the networks of two clusters: a page of words, and
// a ring of 256 KiB for each direction. SharedPages is all that another cluster shares with
// the first one: two areas, one for each direction of calls, and the wire.
const (
	NetPages    = 1 + 2*64
	SharedPages = 2*AreaPages + NetPages
)

// ClusterInfo is what the first cluster tells another one at its start.
type ClusterInfo struct {
	Start      StartInfo
	Index      uint32
	CPUs       uint32
	Processors uint32 // in the whole machine
	_          uint32
	APIC       [64]uint32 // the local APIC IDs of its processors
	First      uint32     // the local APIC ID of the first cluster's first processor
	AreaPages  uint32
	Areas      uint64 // memory that both map, physical: SharedPages
	Base, End  uint64 // its memory by the plan, physical; Map says what it has of that
	Top        uint64 // end of the machine's memory
	DataShift  uint64 // its image's data are so much above where the linker put them
	ClockHz    uint64
	ClockBase  uint64 // the TSC at time 0
	Realtime   uint64 // CLOCK_REALTIME at time 0, in nanoseconds
	Seed       [64]byte
	Devices    [32]Range // registers that are the cluster's
	Map        [MaxRuns]MemMapEntry
	Archive    Module
	Cmdline    [2048]byte
}

// Range is physical memory.
type Range struct{ Start, Size uint64 }

// ClusterState is what a cluster tells the first one, at the start of its status page.
// The first cluster trusts none of it.
type ClusterState struct {
	State  uint32 // one of the states below
	Status uint32 // of an end
	Beat   uint64 // grows while the cluster lives
	Logged uint64 // bytes that were ever written to the log ring
}

// States of a cluster.
const (
	ClusterStarting = iota
	ClusterRunning
	ClusterExited   // it ended by itself
	ClusterPanicked // its kernel did
	ClusterHangs    // one of its processors does
)
