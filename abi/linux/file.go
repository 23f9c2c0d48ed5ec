package linux

// Flags of preadv2 and pwritev2 (include/uapi/linux/fs.h).
const (
	RWF_HIPRI  = 0x1
	RWF_DSYNC  = 0x2
	RWF_SYNC   = 0x4
	RWF_NOWAIT = 0x8
	RWF_APPEND = 0x10
)

// Flags of close_range.
const (
	CLOSE_RANGE_UNSHARE = 2
	CLOSE_RANGE_CLOEXEC = 4
)

// Requests of ioctl that every file has (include/uapi/asm-generic/ioctls.h).
const (
	FIONBIO  = 0x5421
	FIONCLEX = 0x5450
	FIOCLEX  = 0x5451
	FIOASYNC = 0x5452
	FIGETBSZ = 2
)

// OPEN_HOW_SIZE_VER0 is the size of struct open_how.
const OPEN_HOW_SIZE_VER0 = 24
