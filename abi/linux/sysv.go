package linux

import "encoding/binary"

// System V semaphores and messages (include/uapi/linux/sem.h, msg.h).
// IPCMNI is the most objects of a kind.
const IPCMNI = 32768

const (
	SEM_UNDO = 0x1000

	GETPID       = 11
	GETVAL       = 12
	GETALL       = 13
	GETNCNT      = 14
	GETZCNT      = 15
	SETVAL       = 16
	SETALL       = 17
	SEM_STAT     = 18
	SEM_INFO     = 19
	SEM_STAT_ANY = 20

	SEMMNI = 32000
	SEMMSL = 32000
	SEMMNS = SEMMNI * SEMMSL
	SEMOPM = 500
	SEMVMX = 32767

	MSG_NOERROR = 0o10000
	MSG_EXCEPT  = 0o20000
	MSG_COPY    = 0o40000

	MSG_STAT     = 11
	MSG_INFO     = 12
	MSG_STAT_ANY = 13

	MSGMNI = 32000
	MSGMAX = 8192
	MSGMNB = 16384
)

// Sembuf is struct sembuf.
type Sembuf struct {
	Num   uint16
	Op    int16
	Flags int16
}

// SizeofSembuf is the size of struct sembuf.
const SizeofSembuf = 6

// SemidDS is struct semid64_ds.
type SemidDS struct {
	Perm         IPCPerm
	OTime, CTime int64
	NSems        uint64
}

// Bytes returns the structure as the ABI has it.
func (d *SemidDS) Bytes() []byte {
	b := make([]byte, 104)
	le := binary.LittleEndian
	d.Perm.put(b)
	le.PutUint64(b[48:], uint64(d.OTime))
	le.PutUint64(b[64:], uint64(d.CTime))
	le.PutUint64(b[80:], d.NSems)
	return b
}

// SizeofMsqidDS is the size of struct msqid64_ds.
const SizeofMsqidDS = 120

// MsqidDS is struct msqid64_ds.
type MsqidDS struct {
	Perm                IPCPerm
	STime, RTime, CTime int64
	Used, Num, MaxSize  uint64
	LSPID, LRPID        int32
}

// Bytes returns the structure as the ABI has it.
func (d *MsqidDS) Bytes() []byte {
	b := make([]byte, SizeofMsqidDS)
	le := binary.LittleEndian
	d.Perm.put(b)
	le.PutUint64(b[48:], uint64(d.STime))
	le.PutUint64(b[56:], uint64(d.RTime))
	le.PutUint64(b[64:], uint64(d.CTime))
	le.PutUint64(b[72:], d.Used)
	le.PutUint64(b[80:], d.Num)
	le.PutUint64(b[88:], d.MaxSize)
	le.PutUint32(b[96:], uint32(d.LSPID))
	le.PutUint32(b[100:], uint32(d.LRPID))
	return b
}
