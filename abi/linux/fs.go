package linux

// Arguments of the *at calls (include/uapi/linux/fcntl.h).
const (
	AT_FDCWD            = -100
	AT_SYMLINK_NOFOLLOW = 0x100
	AT_REMOVEDIR        = 0x200
	AT_EACCESS          = 0x200
	AT_SYMLINK_FOLLOW   = 0x400
	AT_NO_AUTOMOUNT     = 0x800
	AT_EMPTY_PATH       = 0x1000
	AT_STATX_SYNC_TYPE  = 0x6000
)

// Flags of openat2 (include/uapi/linux/openat2.h).
const (
	RESOLVE_NO_XDEV       = 0x01
	RESOLVE_NO_MAGICLINKS = 0x02
	RESOLVE_NO_SYMLINKS   = 0x04
	RESOLVE_BENEATH       = 0x08
	RESOLVE_IN_ROOT       = 0x10
	RESOLVE_CACHED        = 0x20
)

// Commands of fcntl (include/uapi/asm-generic/fcntl.h, include/uapi/linux/fcntl.h).
const (
	F_DUPFD         = 0
	F_GETFD         = 1
	F_SETFD         = 2
	F_GETFL         = 3
	F_SETFL         = 4
	F_GETLK         = 5
	F_SETLK         = 6
	F_SETLKW        = 7
	F_SETOWN        = 8
	F_GETOWN        = 9
	F_SETSIG        = 10
	F_GETSIG        = 11
	F_SETOWN_EX     = 15
	F_GETOWN_EX     = 16
	F_GETOWNER_UIDS = 17
	F_OFD_GETLK     = 36
	F_OFD_SETLK     = 37
	F_OFD_SETLKW    = 38
	F_SETLEASE      = 1024
	F_GETLEASE      = 1025
	F_NOTIFY        = 1026
	DN_ACCESS       = 1 // of F_NOTIFY
	DN_MODIFY       = 2
	DN_CREATE       = 4
	DN_DELETE       = 8
	DN_RENAME       = 0x10
	DN_ATTRIB       = 0x20
	DN_MULTISHOT    = 0x80000000
	F_DUPFD_CLOEXEC = 1030
	F_ADD_SEALS     = 1033
	F_GET_SEALS     = 1034
	F_GET_RW_HINT   = 1035
	F_SET_RW_HINT   = 1036

	FD_CLOEXEC = 1

	F_RDLCK = 0
	F_WRLCK = 1
	F_UNLCK = 2

	F_SEAL_SEAL         = 0x01
	F_SEAL_SHRINK       = 0x02
	F_SEAL_GROW         = 0x04
	F_SEAL_WRITE        = 0x08
	F_SEAL_FUTURE_WRITE = 0x10
	F_SEAL_EXEC         = 0x20

	F_OWNER_TID  = 0
	F_OWNER_PID  = 1
	F_OWNER_PGRP = 2

	LOCK_SH = 1
	LOCK_EX = 2
	LOCK_NB = 4
	// LOCK_MAND was a kind of lock that Linux has given up.
	LOCK_MAND = 32
	LOCK_UN   = 8
)

// Whence of lseek.
const (
	SEEK_SET  = 0
	SEEK_CUR  = 1
	SEEK_END  = 2
	SEEK_DATA = 3
	SEEK_HOLE = 4
)

// Access modes of access(2).
const (
	R_OK = 4
	W_OK = 2
	X_OK = 1
)

// File types of directory entries (S_IFMT >> 12).
const (
	DT_UNKNOWN = 0
	DT_FIFO    = 1
	DT_CHR     = 2
	DT_DIR     = 4
	DT_BLK     = 6
	DT_REG     = 8
	DT_LNK     = 10
	DT_SOCK    = 12
)

// Flags of renameat2.
const (
	RENAME_NOREPLACE = 1
	RENAME_EXCHANGE  = 2
	RENAME_WHITEOUT  = 4
)

// Flags of fallocate.
const (
	FALLOC_FL_KEEP_SIZE      = 0x01
	FALLOC_FL_PUNCH_HOLE     = 0x02
	FALLOC_FL_ZERO_RANGE     = 0x10
	FALLOC_FL_COLLAPSE_RANGE = 0x8
	FALLOC_FL_INSERT_RANGE   = 0x20
	FALLOC_FL_UNSHARE_RANGE  = 0x40
)

// Flags of memfd_create.
const (
	MFD_CLOEXEC       = 0x1
	MFD_ALLOW_SEALING = 0x2
	MFD_HUGETLB       = 0x4
	MFD_NOEXEC_SEAL   = 0x8
	MFD_EXEC          = 0x10
)

// Flags of mount and statfs (include/uapi/linux/mount.h, include/linux/statfs.h).
const (
	MS_RDONLY      = 0x1
	MS_NOSUID      = 0x2
	MS_NODEV       = 0x4
	MS_NOEXEC      = 0x8
	MS_SYNCHRONOUS = 0x10
	MS_REMOUNT     = 0x20
	MS_MANDLOCK    = 0x40
	MS_DIRSYNC     = 0x80
	MS_NOSYMFOLLOW = 0x100
	MS_NOATIME     = 0x400
	MS_NODIRATIME  = 0x800
	MS_BIND        = 0x1000
	MS_MOVE        = 0x2000
	MS_REC         = 0x4000
	MS_SILENT      = 0x8000
	MS_UNBINDABLE  = 1 << 17
	MS_PRIVATE     = 1 << 18
	MS_SLAVE       = 1 << 19
	MS_SHARED      = 1 << 20
	MS_RELATIME    = 1 << 21
	MS_STRICTATIME = 1 << 24
	MS_LAZYTIME    = 1 << 25

	MNT_FORCE       = 1
	MNT_DETACH      = 2
	MNT_EXPIRE      = 4
	UMOUNT_NOFOLLOW = 8

	ST_VALID = 0x20
)

// Super block magic numbers (include/uapi/linux/magic.h).
const (
	TMPFS_MAGIC        = 0x01021994
	EXT4_SUPER_MAGIC   = 0xef53
	PROC_SUPER_MAGIC   = 0x9fa0
	NSFS_MAGIC         = 0x6e736673
	SYSFS_MAGIC        = 0x62656572
	DEVPTS_SUPER_MAGIC = 0x1cd1
	ANON_INODE_MAGIC   = 0x09041934
	PIPEFS_MAGIC       = 0x50495045
	SOCKFS_MAGIC       = 0x534F434B
)

// Statfs is struct statfs of x86-64, 120 bytes.
type Statfs struct {
	Type, Bsize            int64
	Blocks, Bfree, Bavail  uint64
	Files, Ffree           uint64
	Fsid                   [2]int32
	Namelen, Frsize, Flags int64
	_                      [4]int64
}

// StatxTime is struct statx_timestamp.
type StatxTime struct {
	Sec  int64
	Nsec uint32
	_    int32
}

// Statx is struct statx, 256 bytes.
type Statx struct {
	Mask, Blksize              uint32
	Attributes                 uint64
	Nlink, UID, GID            uint32
	Mode                       uint16
	_                          uint16
	Ino, Size, Blocks          uint64
	AttributesMask             uint64
	Atime, Btime, Ctime, Mtime StatxTime
	RdevMajor, RdevMinor       uint32
	DevMajor, DevMinor         uint32
	MntID                      uint64
	DioMemAlign, DioOffAlign   uint32
	_                          [12]uint64
}

// Mask bits of statx.
const (
	STATX_BASIC_STATS = 0x7ff
	STATX_BTIME       = 0x800
	STATX_MNT_ID      = 0x1000
	STATX__RESERVED   = 0x80000000

	STATX_ATTR_COMPRESSED = 0x4
	STATX_ATTR_IMMUTABLE  = 0x10
	STATX_ATTR_APPEND     = 0x20
	STATX_ATTR_NODUMP     = 0x40
	STATX_ATTR_ENCRYPTED  = 0x800
	STATX_ATTR_AUTOMOUNT  = 0x1000
	STATX_ATTR_MOUNT_ROOT = 0x2000
	STATX_ATTR_VERITY     = 0x100000
	STATX_ATTR_DAX        = 0x200000
)

// Nanosecond marks of utimensat.
const (
	UTIME_NOW  = 1<<30 - 1
	UTIME_OMIT = 1<<30 - 2
)

// Limits (include/uapi/linux/limits.h).
const (
	PATH_MAX       = 4096
	NAME_MAX       = 255
	XATTR_NAME_MAX = 255
	XATTR_SIZE_MAX = 65536
	XATTR_LIST_MAX = 65536
	XATTR_CREATE   = 1
	XATTR_REPLACE  = 2

	POSIX_ACL_XATTR_VERSION = 2

	ACL_USER_OBJ  = 0x01
	ACL_USER      = 0x02
	ACL_GROUP_OBJ = 0x04
	ACL_GROUP     = 0x08
	ACL_MASK      = 0x10
	ACL_OTHER     = 0x20
	IOV_MAX       = 1024
)

// Makedev packs a device number the way user programs see it in st_dev.
func Makedev(major, minor uint32) uint64 {
	return uint64(major&0xfff)<<8 | uint64(minor&0xff) | uint64(minor&^0xff)<<12 | uint64(major&^0xfff)<<32
}

// Major and Minor unpack a device number.
func Major(dev uint64) uint32 { return uint32(dev>>8)&0xfff | uint32(dev>>32)&^0xfff }

// Minor returns the other half.
func Minor(dev uint64) uint32 { return uint32(dev)&0xff | uint32(dev>>12)&^0xff }

// Advice of posix_fadvise.
const (
	POSIX_FADV_NORMAL = iota
	POSIX_FADV_RANDOM
	POSIX_FADV_SEQUENTIAL
	POSIX_FADV_WILLNEED
	POSIX_FADV_DONTNEED
	POSIX_FADV_NOREUSE
)

// RWH_WRITE_LIFE_EXTREME is the greatest hint of F_SET_RW_HINT.
const RWH_WRITE_LIFE_EXTREME = 5

// The mount calls of Linux 5.2 (include/uapi/linux/mount.h).
const (
	OPEN_TREE_CLONE   = 1
	OPEN_TREE_CLOEXEC = O_CLOEXEC
	AT_RECURSIVE      = 0x8000

	MOVE_MOUNT_F_SYMLINKS   = 0x1
	MOVE_MOUNT_F_AUTOMOUNTS = 0x2
	MOVE_MOUNT_F_EMPTY_PATH = 0x4
	MOVE_MOUNT_T_SYMLINKS   = 0x10
	MOVE_MOUNT_T_AUTOMOUNTS = 0x20
	MOVE_MOUNT_T_EMPTY_PATH = 0x40
	MOVE_MOUNT_SET_GROUP    = 0x100

	FSOPEN_CLOEXEC = 1

	FSPICK_CLOEXEC          = 1
	FSPICK_SYMLINK_NOFOLLOW = 2
	FSPICK_NO_AUTOMOUNT     = 4
	FSPICK_EMPTY_PATH       = 8

	FSCONFIG_SET_FLAG        = 0
	FSCONFIG_SET_STRING      = 1
	FSCONFIG_SET_BINARY      = 2
	FSCONFIG_SET_PATH        = 3
	FSCONFIG_SET_PATH_EMPTY  = 4
	FSCONFIG_SET_FD          = 5
	FSCONFIG_CMD_CREATE      = 6
	FSCONFIG_CMD_RECONFIGURE = 7

	FSMOUNT_CLOEXEC = 1

	MOUNT_ATTR_RDONLY      = 0x1
	MOUNT_ATTR_NOSUID      = 0x2
	MOUNT_ATTR_NODEV       = 0x4
	MOUNT_ATTR_NOEXEC      = 0x8
	MOUNT_ATTR__ATIME      = 0x70
	MOUNT_ATTR_RELATIME    = 0x0
	MOUNT_ATTR_NOATIME     = 0x10
	MOUNT_ATTR_STRICTATIME = 0x20
	MOUNT_ATTR_NODIRATIME  = 0x80
	MOUNT_ATTR_IDMAP       = 0x100000
	MOUNT_ATTR_NOSYMFOLLOW = 0x200000

	MOUNT_ATTR_SIZE_VER0 = 32
)

// What syslog(2) does (include/linux/syslog.h).
const (
	SYSLOG_ACTION_CLOSE         = 0
	SYSLOG_ACTION_OPEN          = 1
	SYSLOG_ACTION_READ          = 2
	SYSLOG_ACTION_READ_ALL      = 3
	SYSLOG_ACTION_READ_CLEAR    = 4
	SYSLOG_ACTION_CLEAR         = 5
	SYSLOG_ACTION_CONSOLE_OFF   = 6
	SYSLOG_ACTION_CONSOLE_ON    = 7
	SYSLOG_ACTION_CONSOLE_LEVEL = 8
	SYSLOG_ACTION_SIZE_UNREAD   = 9
	SYSLOG_ACTION_SIZE_BUFFER   = 10
)
