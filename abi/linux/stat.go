package linux

// Timespec is struct timespec: seconds and nanoseconds.
type Timespec struct{ Sec, Nsec int64 }

// Timeval is struct timeval: seconds and microseconds.
type Timeval struct{ Sec, Usec int64 }

// Stat is struct stat of x86-64, 144 bytes.
type Stat struct {
	Dev, Ino, Nlink     uint64
	Mode, UID, GID      uint32
	_                   uint32
	Rdev                uint64
	Size, Blksize       int64
	Blocks              int64
	Atime, Mtime, Ctime Timespec
	_                   [3]int64
}

// File types in Stat.Mode, and the other mode bits (include/uapi/linux/stat.h).
const (
	S_IFMT   = 0o170000
	S_IFSOCK = 0o140000
	S_IFLNK  = 0o120000
	S_IFREG  = 0o100000
	S_IFBLK  = 0o060000
	S_IFDIR  = 0o040000
	S_IFCHR  = 0o020000
	S_IFIFO  = 0o010000
	S_ISUID  = 0o4000
	S_ISGID  = 0o2000
	S_ISVTX  = 0o1000
)
