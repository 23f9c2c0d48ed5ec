package linux

// Flags of personality(2) (include/uapi/linux/personality.h).
const (
	READ_IMPLIES_EXEC = 0x0400000
	STICKY_TIMEOUTS   = 0x4000000
)
