package linux

// Operations and flags of futex(2) (include/uapi/linux/futex.h).
const (
	FUTEX_WAIT            = 0
	FUTEX_WAKE            = 1
	FUTEX_FD              = 2
	FUTEX_REQUEUE         = 3
	FUTEX_CMP_REQUEUE     = 4
	FUTEX_WAKE_OP         = 5
	FUTEX_LOCK_PI         = 6
	FUTEX_UNLOCK_PI       = 7
	FUTEX_TRYLOCK_PI      = 8
	FUTEX_WAIT_BITSET     = 9
	FUTEX_WAKE_BITSET     = 10
	FUTEX_WAIT_REQUEUE_PI = 11
	FUTEX_CMP_REQUEUE_PI  = 12
	FUTEX_LOCK_PI2        = 13

	FUTEX_PRIVATE_FLAG   = 128
	FUTEX_CLOCK_REALTIME = 256
	FUTEX_CMD_MASK       = ^(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)

	FUTEX_BITSET_MATCH_ANY = 0xffffffff

	FUTEX_WAITERS    = 0x80000000
	FUTEX_OWNER_DIED = 0x40000000
	FUTEX_TID_MASK   = 0x3fffffff

	// ROBUST_LIST_LIMIT is how many entries of a robust list are looked at.
	ROBUST_LIST_LIMIT = 2048
)
