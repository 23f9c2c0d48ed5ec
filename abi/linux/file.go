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
	FIOQSIZE = 0x5460 // the bytes that a file takes
	FIFREEZE = 0xc0045877
	FITHAW   = 0xc0045878

	FS_IOC_FIEMAP = 0xc020660b
)

// Requests of ioctl that regular files and directories have (include/uapi/linux/fs.h).
const (
	FIBMAP            = 1
	FS_IOC_GETFLAGS   = 0x80086601
	FS_IOC_SETFLAGS   = 0x40086602
	FS_IOC_FSGETXATTR = 0x801c581f
	FS_IOC_FSSETXATTR = 0x401c5820
	FICLONE           = 0x40049409
	FICLONERANGE      = 0x4020940d
	FIDEDUPERANGE     = 0xc0189436
)

// Flags of an inode (chattr).
const (
	FS_SYNC_FL      = 0x8
	FS_IMMUTABLE_FL = 0x10
	FS_APPEND_FL    = 0x20
	FS_NODUMP_FL    = 0x40
	FS_NOATIME_FL   = 0x80
	FS_DIRSYNC_FL   = 0x10000
)

// OPEN_HOW_SIZE_VER0 is the size of struct open_how.
const OPEN_HOW_SIZE_VER0 = 24

// Flags of FIEMAP requests and of the extents that they give.
const (
	FIEMAP_FLAG_SYNC  = 1
	FIEMAP_FLAG_XATTR = 2
	FIEMAP_FLAG_CACHE = 4

	FIEMAP_EXTENT_LAST      = 0x1
	FIEMAP_EXTENT_UNWRITTEN = 0x800
)
