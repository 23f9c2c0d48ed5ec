// Package bpf checks and runs classic BPF programs: the filters of
// SO_ATTACH_FILTER. A program is checked once, when it is attached; running it
// then always ends, for jumps go forward only.
package bpf

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/ledger"
)

// MaxLen is the greatest number of instructions (BPF_MAXINSNS).
const MaxLen = 4096

// memWords is the size of a program's scratch memory.
const memWords = 16

// Extensions is what SO_BPF_EXTENSIONS answers: how many ancillary loads there are.
const Extensions = 64

// Classes, sizes, modes and operations of an instruction's code.
const (
	classLD, classLDX, classST, classSTX   = 0, 1, 2, 3
	classALU, classJMP, classRET, classMSC = 4, 5, 6, 7

	sizeH, sizeB                      = 0x08, 0x10
	modeIMM, modeABS, modeIND         = 0x00, 0x20, 0x40
	modeMEM, modeLEN, modeMSH         = 0x60, 0x80, 0xa0
	srcX                              = 0x08
	opAdd, opSub, opMul, opDiv        = 0x00, 0x10, 0x20, 0x30
	opOr, opAnd, opLsh, opRsh         = 0x40, 0x50, 0x60, 0x70
	opNeg, opMod, opXor               = 0x80, 0x90, 0xa0
	jumpA, jumpEq, jumpGt             = 0x00, 0x10, 0x20
	jumpGe, jumpSet                   = 0x30, 0x40
	retA                              = 0x10
	miscTAX, miscTXA                  = 0x00, 0x80
	ancillary                  uint32 = 0xfffff000 // SKF_AD_OFF
	network                    uint32 = 0xfff00000 // SKF_NET_OFF
	link                       uint32 = 0xffe00000 // SKF_LL_OFF
)

// Ancillary loads that are answered.
const (
	adProtocol, adPktType, adIfIndex = 0, 4, 8
	adMark, adHaType, adCPU          = 20, 28, 36
	adPayOffset, adRandom            = 52, 56
	adVlanTag, adVlanPresent         = 44, 48
	adQueue, adRxHash, adVlanProto   = 24, 32, 60
	adAluXorX                        = 40
	adNlAttr, adNlAttrNest           = 12, 16
)

type instruction struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

// Program is a checked program; immutable.
type Program struct {
	code []instruction
	text []byte
}

// Size returns what the program takes of the kernel's heap.
func (p *Program) Size() int64 {
	return ledger.Of[Program]() + ledger.Array[instruction](cap(p.code)) + ledger.Size(int64(cap(p.text)))
}

// New checks a program of struct sock_filter elements.
func New(text []byte) (*Program, linux.Errno) {
	p := &Program{text: text, code: make([]instruction, len(text)/linux.SizeofSockFilter)}
	for i := range p.code {
		b := text[i*linux.SizeofSockFilter:]
		p.code[i] = instruction{binary.LittleEndian.Uint16(b), b[2], b[3], binary.LittleEndian.Uint32(b[4:])}
	}
	if len(p.code) == 0 || len(p.code) > MaxLen || !p.valid() || !p.stored() {
		return nil, linux.EINVAL
	}
	return p, 0
}

// Len returns the number of instructions, Bytes what New was given.
func (p *Program) Len() int      { return len(p.code) }
func (p *Program) Bytes() []byte { return p.text }

// valid checks each instruction and that the last one returns.
func (p *Program) valid() bool {
	for pc := range p.code {
		if !p.code[pc].valid(len(p.code) - pc - 1) {
			return false
		}
	}
	last := p.code[len(p.code)-1].code
	return last == classRET || last == classRET|retA
}

// valid checks one instruction behind which there are so many others.
func (i *instruction) valid(behind int) bool {
	switch i.code & 7 {
	case classLD:
		return i.validLoad()
	case classLDX:
		switch i.code &^ 7 {
		case modeIMM, modeLEN, modeMSH | sizeB:
			return true
		case modeMEM:
			return i.k < memWords
		}
		return false
	case classST, classSTX:
		return i.code <= classSTX && i.k < memWords
	case classALU:
		return i.validALU()
	case classJMP:
		switch op := i.code & 0xf0; {
		case i.code == classJMP|jumpA:
			return i.k < uint32(behind)
		case op < jumpEq || op > jumpSet || i.code > 0xff:
			return false
		}
		return int(i.jt) < behind && int(i.jf) < behind
	case classRET:
		return i.code == classRET || i.code == classRET|retA
	}
	return i.code == classMSC|miscTAX || i.code == classMSC|miscTXA
}

func (i *instruction) validLoad() bool {
	if i.code > 0xff {
		return false
	}
	switch i.code & 0xe0 {
	case modeIMM, modeLEN:
		return i.code&0x18 == 0
	case modeMEM:
		return i.code&0x18 == 0 && i.k < memWords
	case modeIND:
		return i.code&0x18 != 0x18
	case modeABS:
		if i.code&0x18 == 0x18 {
			return false
		}
		return i.k < ancillary || i.k-ancillary <= adVlanProto && i.k&3 == 0
	}
	return false
}

func (i *instruction) validALU() bool {
	switch op := i.code & 0xf0; {
	case i.code > 0xff || op > opXor || op == opNeg && i.code&srcX != 0:
		return false
	case i.code&srcX != 0:
		return true
	case op == opDiv || op == opMod:
		return i.k != 0
	case op == opLsh || op == opRsh:
		return i.k < 32
	}
	return true
}

// stored reports whether every load from scratch memory finds a word that was
// stored before, whichever way the program went.
func (p *Program) stored() bool {
	masks := make([]uint16, len(p.code))
	for i := range masks {
		masks[i] = 0xffff
	}
	var have uint16
	for pc, i := range p.code {
		have &= masks[pc]
		switch {
		case i.code == classST || i.code == classSTX:
			have |= 1 << i.k
		case i.code == classLD|modeMEM || i.code == classLDX|modeMEM:
			if have>>i.k&1 == 0 {
				return false
			}
		case i.code == classJMP|jumpA:
			masks[pc+1+int(i.k)] &= have
			have = 0xffff
		case i.code&7 == classJMP:
			masks[pc+1+int(i.jt)] &= have
			masks[pc+1+int(i.jf)] &= have
			have = 0xffff
		}
	}
	return true
}

// Packet is what a program looks at.
type Packet struct {
	Data    []byte // from where the socket's protocol begins
	Network []byte // from the network header
	Link    []byte // from the link header
	// Protocol is the Ethernet type, Type a PACKET_*, HaType an ARPHRD_*.
	Protocol uint16
	Type     uint8
	HaType   uint16
	IfIndex  int32
	Mark     uint32
	Random   uint32
}

// load reads an absolute offset; false ends the program.
func (k *Packet) load(at uint32, size int) (uint32, bool) {
	b := k.Data
	switch {
	case at >= ancillary:
		return k.ancillary(at - ancillary), true
	case at >= network:
		b, at = k.Network, at-network
	case at >= link:
		b, at = k.Link, at-link
	}
	if uint64(at)+uint64(size) > uint64(len(b)) {
		return 0, false
	}
	b = b[at:]
	switch size {
	case 1:
		return uint32(b[0]), true
	case 2:
		return uint32(binary.BigEndian.Uint16(b)), true
	}
	return binary.BigEndian.Uint32(b), true
}

func (k *Packet) ancillary(what uint32) uint32 {
	switch what {
	case adProtocol:
		return uint32(k.Protocol)
	case adPktType:
		return uint32(k.Type)
	case adIfIndex:
		return uint32(k.IfIndex)
	case adHaType:
		return uint32(k.HaType)
	case adMark:
		return k.Mark
	case adRandom:
		return k.Random
	}
	return 0
}

// width is how many bytes a load reads.
func width(code uint16) int {
	switch code & 0x18 {
	case sizeH:
		return 2
	case sizeB:
		return 1
	}
	return 4
}

// Run returns how many bytes of the packet to keep: 0 to drop it.
func (p *Program) Run(k *Packet) uint32 {
	var a, x uint32
	var mem [memWords]uint32
	for pc := 0; pc < len(p.code); pc++ {
		i := &p.code[pc]
		ok := true
		switch i.code & 7 {
		case classLD:
			switch i.code & 0xe0 {
			case modeIMM:
				a = i.k
			case modeLEN:
				a = uint32(len(k.Data))
			case modeMEM:
				a = mem[i.k]
			case modeABS:
				if i.k == ancillary+adAluXorX {
					a ^= x
				} else {
					a, ok = k.load(i.k, width(i.code))
				}
			case modeIND:
				a, ok = k.load(i.k+x, width(i.code))
			}
		case classLDX:
			switch i.code &^ 7 {
			case modeIMM:
				x = i.k
			case modeLEN:
				x = uint32(len(k.Data))
			case modeMEM:
				x = mem[i.k]
			default:
				if x, ok = k.load(i.k, 1); ok {
					x = x & 0xf << 2
				}
			}
		case classST:
			mem[i.k] = a
		case classSTX:
			mem[i.k] = x
		case classALU:
			a, ok = i.alu(a, x)
		case classJMP:
			pc += i.jump(a, x)
		case classRET:
			if i.code&retA != 0 {
				return a
			}
			return i.k
		case classMSC:
			if i.code&miscTXA != 0 {
				a = x
			} else {
				x = a
			}
		}
		if !ok {
			return 0
		}
	}
	return 0
}

// alu computes; false for a division by zero.
func (i *instruction) alu(a, x uint32) (uint32, bool) {
	v := i.k
	if i.code&srcX != 0 {
		v = x
	}
	switch i.code & 0xf0 {
	case opAdd:
		return a + v, true
	case opSub:
		return a - v, true
	case opMul:
		return a * v, true
	case opDiv, opMod:
		if v == 0 {
			return 0, false
		}
		if i.code&0xf0 == opMod {
			return a % v, true
		}
		return a / v, true
	case opOr:
		return a | v, true
	case opAnd:
		return a & v, true
	case opLsh:
		return a << (v & 31), true
	case opRsh:
		return a >> (v & 31), true
	case opNeg:
		return -a, true
	}
	return a ^ v, true
}

// jump returns how many instructions are passed over.
func (i *instruction) jump(a, x uint32) int {
	v := i.k
	if i.code&srcX != 0 {
		v = x
	}
	var yes bool
	switch i.code & 0xf0 {
	case jumpA:
		return int(i.k)
	case jumpEq:
		yes = a == v
	case jumpGt:
		yes = a > v
	case jumpGe:
		yes = a >= v
	case jumpSet:
		yes = a&v != 0
	}
	if yes {
		return int(i.jt)
	}
	return int(i.jf)
}
