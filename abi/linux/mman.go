package linux

// Memory mapping (include/uapi/asm-generic/mman-common.h, linux/mman.h).
const (
	PROT_NONE      = 0
	PROT_READ      = 1
	PROT_WRITE     = 2
	PROT_EXEC      = 4
	PROT_SEM       = 8
	PROT_GROWSDOWN = 0x01000000
	PROT_GROWSUP   = 0x02000000

	MAP_SHARED          = 0x01
	MAP_PRIVATE         = 0x02
	MAP_SHARED_VALIDATE = 0x03
	MAP_TYPE            = 0x0f
	MAP_FIXED           = 0x10
	MAP_ANONYMOUS       = 0x20
	MAP_32BIT           = 0x40
	MAP_GROWSDOWN       = 0x100
	MAP_DENYWRITE       = 0x800
	MAP_EXECUTABLE      = 0x1000
	MAP_LOCKED          = 0x2000
	MAP_NORESERVE       = 0x4000
	MAP_POPULATE        = 0x8000
	MAP_NONBLOCK        = 0x10000
	MAP_STACK           = 0x20000
	MAP_HUGETLB         = 0x40000
	MAP_SYNC            = 0x80000
	MAP_FIXED_NOREPLACE = 0x100000

	MREMAP_MAYMOVE   = 1
	MREMAP_FIXED     = 2
	MREMAP_DONTUNMAP = 4

	MS_ASYNC      = 1
	MS_INVALIDATE = 2
	MS_SYNC       = 4

	MCL_CURRENT   = 1
	MCL_FUTURE    = 2
	MCL_ONFAULT   = 4
	MLOCK_ONFAULT = 1

	MADV_NORMAL          = 0
	MADV_RANDOM          = 1
	MADV_SEQUENTIAL      = 2
	MADV_WILLNEED        = 3
	MADV_DONTNEED        = 4
	MADV_FREE            = 8
	MADV_REMOVE          = 9
	MADV_DONTFORK        = 10
	MADV_DOFORK          = 11
	MADV_MERGEABLE       = 12
	MADV_UNMERGEABLE     = 13
	MADV_HUGEPAGE        = 14
	MADV_NOHUGEPAGE      = 15
	MADV_DONTDUMP        = 16
	MADV_DODUMP          = 17
	MADV_WIPEONFORK      = 18
	MADV_KEEPONFORK      = 19
	MADV_COLD            = 20
	MADV_PAGEOUT         = 21
	MADV_POPULATE_READ   = 22
	MADV_POPULATE_WRITE  = 23
	MADV_DONTNEED_LOCKED = 24
)

// TaskSize is where user addresses end; no page is above.
const TaskSize = 1<<47 - 4096
