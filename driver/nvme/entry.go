package nvme

import "encoding/binary"

// entry is a command as it is in a submission queue (section 4.2).
type entry [sqeSize]byte

func newEntry(opcode uint8, namespace uint32) *entry {
	e := new(entry)
	e.begin(opcode, namespace)
	return e
}

func (e *entry) begin(opcode uint8, namespace uint32) {
	*e = entry{opcode}
	e.dword(1, namespace)
}

func (e *entry) id(n uint16)           { binary.LittleEndian.PutUint16(e[2:], n) }
func (e *entry) dword(n int, v uint32) { binary.LittleEndian.PutUint32(e[4*n:], v) }
func (e *entry) data(phys uint64)      { binary.LittleEndian.PutUint64(e[24:], phys) }
func (e *entry) second(phys uint64)    { binary.LittleEndian.PutUint64(e[32:], phys) }
func (e *entry) quad(n int, v uint64)  { binary.LittleEndian.PutUint64(e[4*n:], v) }
