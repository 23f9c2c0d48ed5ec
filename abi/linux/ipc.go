package linux

import "encoding/binary"

// System V IPC (include/uapi/linux/ipc.h, shm.h).
const (
	IPC_PRIVATE = 0
	IPC_CREAT   = 0o1000
	IPC_EXCL    = 0o2000
	IPC_NOWAIT  = 0o4000

	IPC_RMID = 0
	IPC_SET  = 1
	IPC_STAT = 2
	IPC_INFO = 3

	SHM_LOCK     = 11
	SHM_UNLOCK   = 12
	SHM_STAT     = 13
	SHM_INFO     = 14
	SHM_STAT_ANY = 15

	SHM_RDONLY    = 0o10000
	SHM_RND       = 0o20000
	SHM_REMAP     = 0o40000
	SHM_EXEC      = 0o100000
	SHM_HUGETLB   = 0o4000
	SHM_NORESERVE = 0o10000

	SHM_DEST   = 0o1000 // mode: goes with the last detach
	SHM_LOCKED = 0o2000
)

// IPCPerm is struct ipc64_perm.
type IPCPerm struct {
	Key                  int32
	UID, GID, CUID, CGID uint32
	Mode                 uint32
	Seq                  uint16
}

// Set changes owner and permissions, as IPC_SET does; EINVAL for no user or group.
func (p *IPCPerm) Set(uid, gid, mode uint32) Errno {
	if uid == ^uint32(0) || gid == ^uint32(0) {
		return EINVAL
	}
	p.UID, p.GID = uid, gid
	p.Mode = p.Mode&^0o777 | mode&0o777
	return 0
}

// SizeofIPCPerm is the size of struct ipc64_perm.
const SizeofIPCPerm = 48

func (p *IPCPerm) put(b []byte) {
	le := binary.LittleEndian
	le.PutUint32(b[0:], uint32(p.Key))
	le.PutUint32(b[4:], p.UID)
	le.PutUint32(b[8:], p.GID)
	le.PutUint32(b[12:], p.CUID)
	le.PutUint32(b[16:], p.CGID)
	le.PutUint32(b[20:], p.Mode)
	le.PutUint16(b[24:], p.Seq)
}

// ShmidDS is struct shmid64_ds.
type ShmidDS struct {
	Perm                IPCPerm
	Size                uint64
	ATime, DTime, CTime int64
	CPID, LPID          int32
	Attached            uint64
}

// SizeofShmidDS is the size of struct shmid64_ds.
const SizeofShmidDS = 112

// Bytes returns the structure as the ABI has it.
func (d *ShmidDS) Bytes() []byte {
	b := make([]byte, SizeofShmidDS)
	le := binary.LittleEndian
	d.Perm.put(b)
	le.PutUint64(b[48:], d.Size)
	le.PutUint64(b[56:], uint64(d.ATime))
	le.PutUint64(b[64:], uint64(d.DTime))
	le.PutUint64(b[72:], uint64(d.CTime))
	le.PutUint32(b[80:], uint32(d.CPID))
	le.PutUint32(b[84:], uint32(d.LPID))
	le.PutUint64(b[88:], d.Attached)
	return b
}
