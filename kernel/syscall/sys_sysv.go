package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/process/sysv"
)

var sysvCalls = []Call{
	{linux.SYS_semget, "semget", sysSemget, "works"},
	{linux.SYS_semop, "semop", sysSemop, "works"},
	{linux.SYS_semtimedop, "semtimedop", sysSemtimedop, "works"},
	{linux.SYS_semctl, "semctl", sysSemctl, "works"},
	{linux.SYS_msgget, "msgget", sysMsgget, "works"},
	{linux.SYS_msgsnd, "msgsnd", sysMsgsnd, "works"},
	{linux.SYS_msgrcv, "msgrcv", sysMsgrcv, "works"},
	{linux.SYS_msgctl, "msgctl", sysMsgctl, "works"},
}

// sysSemget is semget(key_t key, int nsems, int semflg).
func sysSemget(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	id, e := sysv.SemGet(&t.Ctx, a.Int(0), a.Int(1), a.Uint(2))
	return uint64(id), e
}

// sysSemop is semop(int semid, struct sembuf *sops, size_t nsops).
func sysSemop(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return semop(t, a, forever)
}

// sysSemtimedop is semtimedop(semid, sops, nsops, const struct timespec *timeout).
func sysSemtimedop(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	limit, e := limitTimespec(t, a.Addr(3))
	if e != 0 {
		return 0, e
	}
	return semop(t, a, limit)
}

func semop(t *proc.Thread, a *Args, limit timeLimit) (uint64, linux.Errno) {
	if a[2] < 1 || a.Int(0) < 0 {
		return 0, linux.EINVAL
	}
	if a[2] > uint64(settings.SemOpm.Get()) {
		return 0, linux.E2BIG
	}
	b := make([]byte, a[2]*linux.SizeofSembuf)
	if _, e := t.Mem.CopyIn(b, a.Addr(1)); e != 0 {
		return 0, e
	}
	ops := make([]linux.Sembuf, a[2])
	le := binary.LittleEndian
	for i := range ops {
		p := b[i*linux.SizeofSembuf:]
		ops[i] = linux.Sembuf{Num: le.Uint16(p), Op: int16(le.Uint16(p[2:])), Flags: int16(le.Uint16(p[4:]))}
	}
	return 0, sysv.SemOp(&t.Ctx, a.Int(0), ops, limit.deadline, limit.poll)
}

// sysSemctl is semctl(int semid, int semnum, int cmd, union semun arg).
func sysSemctl(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	c, id, num, cmd, arg := &t.Ctx, a.Int(0), a.Int(1), a.Int(2), a.Addr(3)
	if id < 0 {
		return 0, linux.EINVAL
	}
	switch cmd {
	case linux.GETVAL, linux.GETPID, linux.GETNCNT, linux.GETZCNT, linux.SETVAL:
		v, e := sysv.SemCtl(c, id, num, cmd, a.Int(3))
		return uint64(v), e
	case linux.GETALL:
		values, e := sysv.SemValues(c, id)
		if e != 0 {
			return 0, e
		}
		b := make([]byte, 0, 2*len(values))
		for _, v := range values {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
		_, e = t.Mem.CopyOut(arg, b)
		return 0, e
	case linux.SETALL:
		n, e := sysv.SemCount(c, id)
		if e != 0 {
			return 0, e
		}
		b := make([]byte, 2*n)
		if _, e := t.Mem.CopyIn(b, arg); e != 0 {
			return 0, e
		}
		values := make([]uint16, n)
		for i := range values {
			values[i] = binary.LittleEndian.Uint16(b[2*i:])
		}
		return 0, sysv.SemSetAll(c, id, values)
	case linux.IPC_RMID:
		return 0, sysv.SemRemove(c, id)
	case linux.IPC_SET:
		p, e := readPerm(t, arg)
		if e != 0 {
			return 0, e
		}
		return 0, sysv.SemChange(c, id, p.UID, p.GID, p.Mode)
	case linux.IPC_STAT:
		d, e := sysv.SemStat(c, id)
		if e != 0 {
			return 0, e
		}
		_, e = t.Mem.CopyOut(arg, d.Bytes())
		return 0, e
	case linux.SEM_STAT, linux.SEM_STAT_ANY:
		id, d, e := sysv.SemStatIndex(c, id, cmd == linux.SEM_STAT_ANY)
		if e != 0 {
			return 0, e
		}
		_, e = t.Mem.CopyOut(arg, d.Bytes())
		return uint64(id), e
	case linux.IPC_INFO, linux.SEM_INFO:
		sets, highest, n := sysv.SemUsage()
		info := []int32{int32(settings.SemMns.Get()), int32(settings.SemMni.Get()), int32(settings.SemMns.Get()), int32(settings.SemMns.Get()), int32(settings.SemMsl.Get()), int32(settings.SemOpm.Get()),
			int32(settings.SemOpm.Get()), 20, linux.SEMVMX, linux.SEMVMX}
		if cmd == linux.SEM_INFO {
			info[7], info[9] = int32(sets), int32(n)
		}
		return uint64(highest), writeInts(t, arg, info)
	}
	return 0, linux.EINVAL
}

// readPerm reads what IPC_SET may change.
func readPerm(t *proc.Thread, addr uio.Addr) (linux.IPCPerm, linux.Errno) {
	b, e := readUser(t, addr, linux.SizeofIPCPerm)
	if e != 0 {
		return linux.IPCPerm{}, e
	}
	le := binary.LittleEndian
	return linux.IPCPerm{UID: le.Uint32(b[4:]), GID: le.Uint32(b[8:]), Mode: le.Uint32(b[20:])}, 0
}

func writeInts(t *proc.Thread, addr uio.Addr, ints []int32) linux.Errno {
	var b []byte
	for _, v := range ints {
		//maxlive:len 128 because no structure has more than 32 integers
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	_, e := t.Mem.CopyOut(addr, b)
	return e
}

// sysMsgget is msgget(key_t key, int msgflg).
func sysMsgget(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	id, e := sysv.MsgGet(&t.Ctx, a.Int(0), a.Uint(1))
	return uint64(id), e
}

// sysMsgsnd is msgsnd(int msqid, const void *msgp, size_t msgsz, int msgflg).
func sysMsgsnd(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if a[2] > uint64(settings.MsgMax.Get()) || a.Int(0) < 0 {
		return 0, linux.EINVAL
	}
	b := make([]byte, 8+a[2])
	if _, e := t.Mem.CopyIn(b, a.Addr(1)); e != 0 {
		return 0, e
	}
	kind := int64(binary.LittleEndian.Uint64(b))
	return 0, sysv.MsgSend(&t.Ctx, a.Int(0), kind, b[8:], a.Uint(3)&linux.IPC_NOWAIT != 0)
}

// sysMsgrcv is msgrcv(int msqid, void *msgp, size_t msgsz, long msgtyp, int msgflg).
// As on Linux a message is gone even if it cannot be copied out.
func sysMsgrcv(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	kind, text, e := sysv.MsgReceive(&t.Ctx, a.Int(0), a[2], int64(a[3]), a.Uint(4))
	if e != 0 {
		return 0, e
	}
	if e := writeWords(t, a.Addr(1), kind); e != 0 {
		return 0, e
	}
	_, e = t.Mem.CopyOut(a.Addr(1)+8, text)
	return uint64(len(text)), e
}

// sysMsgctl is msgctl(int msqid, int cmd, struct msqid_ds *buf).
func sysMsgctl(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	c, id, cmd, buf := &t.Ctx, a.Int(0), a.Int(1), a.Addr(2)
	if id < 0 {
		return 0, linux.EINVAL
	}
	switch cmd {
	case linux.IPC_RMID:
		return 0, sysv.MsgRemove(c, id)
	case linux.IPC_SET:
		var b [linux.SizeofMsqidDS]byte
		if _, e := t.Mem.CopyIn(b[:], buf); e != 0 {
			return 0, e
		}
		le := binary.LittleEndian
		return 0, sysv.MsgChange(c, id, le.Uint32(b[4:]), le.Uint32(b[8:]), le.Uint32(b[20:]), le.Uint64(b[88:]))
	case linux.IPC_STAT:
		d, e := sysv.MsgStat(c, id)
		if e != 0 {
			return 0, e
		}
		_, e = t.Mem.CopyOut(buf, d.Bytes())
		return 0, e
	case linux.MSG_STAT, linux.MSG_STAT_ANY:
		id, d, e := sysv.MsgStatIndex(c, id, cmd == linux.MSG_STAT_ANY)
		if e != 0 {
			return 0, e
		}
		_, e = t.Mem.CopyOut(buf, d.Bytes())
		return uint64(id), e
	case linux.IPC_INFO, linux.MSG_INFO:
		n, highest, messages, bytes := sysv.MsgUsage()
		info := []int32{0, 0, int32(settings.MsgMax.Get()), int32(settings.MsgMnb.Get()), int32(settings.MsgMni.Get()), 16, int32(settings.MsgMnb.Get()), 0xffff}
		if cmd == linux.MSG_INFO {
			info[0], info[1], info[6] = int32(n), int32(messages), int32(bytes)
		}
		return uint64(highest), writeInts(t, buf, info)
	}
	return 0, linux.EINVAL
}
