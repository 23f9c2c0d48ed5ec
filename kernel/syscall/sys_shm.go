package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/process/sysv"
)

var shmCalls = []Call{
	{linux.SYS_shmget, "shmget", sysShmget, "works except SHM_HUGETLB"},
	{linux.SYS_shmat, "shmat", sysShmat, "works"},
	{linux.SYS_shmdt, "shmdt", sysShmdt, "works"},
	{linux.SYS_shmctl, "shmctl", sysShmctl, "works"},
}

// sysShmget is shmget(key_t key, size_t size, int shmflg).
func sysShmget(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	id, e := sysv.ShmGet(&t.Ctx, a.Int(0), a[1], a.Uint(2))
	return uint64(id), e
}

// sysShmat is shmat(int shmid, const void *shmaddr, int shmflg).
func sysShmat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return sysv.ShmAt(&t.Ctx, t.Space, a.Int(0), a[1], a.Uint(2))
}

// sysShmdt is shmdt(const void *shmaddr).
func sysShmdt(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return 0, sysv.ShmDt(&t.Ctx, t.Space, a[0])
}

// sysShmctl is shmctl(int shmid, int cmd, struct shmid_ds *buf).
func sysShmctl(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	id, cmd, buf := a.Int(0), a.Int(1), a.Addr(2)
	if id < 0 {
		return 0, linux.EINVAL
	}
	switch cmd {
	case linux.IPC_RMID:
		return 0, sysv.ShmRemove(&t.Ctx, id)
	case linux.IPC_SET:
		var b [linux.SizeofIPCPerm]byte
		if _, e := t.Mem.CopyIn(b[:], buf); e != 0 {
			return 0, e
		}
		le := binary.LittleEndian
		return 0, sysv.ShmChange(&t.Ctx, id, le.Uint32(b[4:]), le.Uint32(b[8:]), le.Uint32(b[20:]))
	case linux.IPC_STAT:
		d, e := sysv.ShmStat(&t.Ctx, id)
		if e != 0 {
			return 0, e
		}
		_, e = t.Mem.CopyOut(buf, d.Bytes())
		return 0, e
	case linux.SHM_STAT, linux.SHM_STAT_ANY:
		id, d, e := sysv.ShmStatIndex(&t.Ctx, id, cmd == linux.SHM_STAT_ANY)
		if e != 0 {
			return 0, e
		}
		_, e = t.Mem.CopyOut(buf, d.Bytes())
		return uint64(id), e
	case linux.SHM_LOCK, linux.SHM_UNLOCK:
		return 0, sysv.ShmLock(&t.Ctx, id, cmd == linux.SHM_LOCK)
	case linux.IPC_INFO:
		return shmInfo(t, buf)
	case linux.SHM_INFO:
		return shmUsage(t, buf)
	}
	return 0, linux.EINVAL
}

// shmInfo writes struct shminfo64.
func shmInfo(t *proc.Thread, buf uio.Addr) (uint64, linux.Errno) {
	var b [9 * 8]byte
	size, segments, all := sysv.ShmLimits()
	for i, v := range []uint64{size, 1, segments, segments, all} {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	_, e := t.Mem.CopyOut(buf, b[:])
	_, highest, _, _ := sysv.ShmUsage()
	return uint64(highest), e
}

// shmUsage writes struct shm_info.
func shmUsage(t *proc.Thread, buf uio.Addr) (uint64, linux.Errno) {
	var b [6 * 8]byte
	used, highest, pages, resident := sysv.ShmUsage()
	for i, v := range []uint64{uint64(used), pages, resident} {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	_, e := t.Mem.CopyOut(buf, b[:])
	return uint64(highest), e
}
