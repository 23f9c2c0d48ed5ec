package trace

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/process/proc"
)

var le = binary.LittleEndian

// How much of what is in memory is shown.
const (
	textShown  = 32 // bytes of a buffer
	pathShown  = 256
	wordsShown = 16 // strings of an argument list
	itemsShown = 8  // iovecs, pollfds, events
)

// call is one call of a thread while it is written down; on the goroutine's stack. It is
// passed to no function value and no interface, so that it stays there.
type call struct {
	line
	t    *proc.Thread
	args [6]uint64 // as they were when the call began: it may change them
	ret  uint64
	err  linux.Errno
}

// load copies at most the thread's scratch from user memory; nil if that is not there.
func (c *call) load(addr uint64, n int) []byte {
	b := c.t.Scratch[:min(n, len(c.t.Scratch))]
	if addr == 0 || c.t.Mem == nil {
		return nil
	}
	if _, e := c.t.Mem.CopyIn(b, uio.Addr(addr)); e != 0 {
		return nil
	}
	return b
}

// length returns how many bytes or items an argument has.
func (c *call) length(a *arg) uint64 {
	switch {
	case a.ref == lengthResult:
		if c.err != 0 {
			return 0
		}
		return c.ret
	case a.ref >= 0:
		return c.args[a.ref]
	}
	return 0
}

// arguments writes those from one to another.
func (c *call) arguments(f *form, from, to int) {
	for i := from; i < min(to, c.count(f)); i++ {
		if f.args[i].op == opSkip {
			continue
		}
		if i > 0 {
			c.text(", ")
		}
		if c.full() {
			c.text("...")
			return
		}
		c.argument(f, i)
	}
}

// count returns how many arguments the call has: for some it depends on the others.
func (c *call) count(f *form) int {
	n := f.n
	for i := range n {
		switch v := c.args[i]; f.args[i].op {
		case opControl:
			switch c.args[i-1] {
			case linux.F_GETFD, linux.F_GETFL, linux.F_GETOWN, linux.F_GETSIG, linux.F_GETLEASE, linux.F_GETPIPE_SZ, linux.F_GET_SEALS:
				return i
			}
		case opProcessControl:
			if c.args[i-1] == setName {
				return i + 1
			}
		case opDevice:
			if t := c.args[i-1] & linux.S_IFMT; t != linux.S_IFCHR && t != linux.S_IFBLK {
				return i
			}
		case opNewMode:
			if c.args[i-1]&(linux.O_CREAT|linux.O_TMPFILE&^linux.O_DIRECTORY) == 0 {
				return i
			}
		case opNewPlace:
			if c.args[i-1]&^1 == 0 { // only MREMAP_MAYMOVE
				return i
			}
		case opFutex:
			switch v & 0x7f {
			case linux.FUTEX_WAIT, linux.FUTEX_LOCK_PI:
				return i + 3
			case linux.FUTEX_WAKE:
				return i + 2
			case linux.FUTEX_UNLOCK_PI, linux.FUTEX_TRYLOCK_PI:
				return i + 1
			}
		}
	}
	return n
}

func (c *call) argument(f *form, i int) {
	a, v := &f.args[i], c.args[i]
	switch a.op {
	case opFlags:
		c.flags(v, a.names)
		return
	case opChoice:
		c.choice(uint64(uint32(v)), a.names)
		return
	}
	if a.op >= opStat {
		if a.after && c.err != 0 && a.op != opInt && a.op != opRemains {
			c.pointer(v) // the call has filled in nothing
		} else {
			c.structure(a, i, v)
		}
		return
	}
	c.scalar(a, v)
}

// scalar writes an argument that is no structure.
func (c *call) scalar(a *arg, v uint64) {
	switch a.op {
	case opDecimal, opDescriptor:
		c.signed(int64(int32(v)))
	case opLong:
		c.signed(int64(v))
	case opUnsigned:
		c.unsigned(v)
	case opHex:
		c.hex(v)
	case opPointer, opNewPlace:
		c.pointer(v)
	case opDirectory:
		if int32(v) == linux.AT_FDCWD {
			c.text("AT_FDCWD")
		} else {
			c.signed(int64(int32(v)))
		}
	case opMode, opNewMode:
		c.octal(v)
	case opPath:
		c.path(v, pathShown)
	case opText:
		if a.after && c.err != 0 {
			c.pointer(v)
		} else {
			c.path(v, pathShown)
		}
	case opBuffer:
		if a.after && c.err != 0 {
			c.pointer(v)
		} else {
			c.buffer(v, c.length(a))
		}
	default:
		c.special(a, v)
	}
}

// special writes an argument whose meaning depends on its call.
func (c *call) special(a *arg, v uint64) {
	switch a.op {
	case opWord:
		if c.length(a) != 4 {
			c.buffer(v, c.length(a))
		} else {
			c.int32At(v)
		}
	case opStrings:
		c.list(v)
	case opOpen:
		c.text([4]string{"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"}[v&3])
		c.rest(v&^3, openNames)
	case opAccess:
		c.flags(v, accessNames)
	case opFileMode:
		c.choice(v&linux.S_IFMT, kindNames)
		c.byte('|')
		c.octal(v &^ linux.S_IFMT)
	case opSocketType:
		c.choice(v&0xf, typeNames)
		c.rest(v&^0xf, socketFlagNames)
	case opClone:
		c.cloneFlags(v)
	case opProtocol:
		if f := c.args[0]; f == linux.AF_INET || f == linux.AF_INET6 {
			c.choice(v, protocolNames)
		} else {
			c.unsigned(v)
		}
	case opControl:
		switch c.args[1] {
		case linux.F_SETFL:
			c.text([4]string{"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"}[v&3])
			c.rest(v&^3, openNames)
		case linux.F_SETFD:
			c.choice(v, []name{{0, "0"}, {1, "FD_CLOEXEC"}})
		case linux.F_DUPFD, linux.F_DUPFD_CLOEXEC, linux.F_SETOWN, linux.F_SETPIPE_SZ:
			c.signed(int64(int32(v)))
		default:
			c.hex(v)
		}
	case opProcessControl:
		if c.args[0] == setName {
			c.path(v, 16)
		} else {
			c.hex(v)
		}
	case opDevice:
		c.text("makedev(")
		c.hex(uint64(linux.Major(v)))
		c.text(", ")
		c.hex(uint64(linux.Minor(v)))
		c.byte(')')
	case opOffset:
		c.hex(v)
	case opTimeout:
		switch op := c.args[1] & 0x7f; {
		case v == 0:
			c.text("NULL")
		case op == linux.FUTEX_WAIT || op == linux.FUTEX_WAIT_BITSET || op == linux.FUTEX_LOCK_PI:
			c.timespecs(v, 1, "tv_nsec")
		default:
			c.unsigned(v)
		}
	}
}

// rest writes the flags behind a choice.
func (c *call) rest(v uint64, names []name) {
	if v != 0 {
		c.byte('|')
		c.flags(v, names)
	}
}

func (c *call) cloneFlags(v uint64) {
	sig := v & 0xff
	if v &^= 0xff; v != 0 {
		c.flags(v, cloneNames)
		if sig != 0 {
			c.byte('|')
		}
	}
	if sig != 0 || v == 0 {
		c.signal(sig)
	}
}

func (c *call) signal(n uint64) {
	switch {
	case n < uint64(len(signalNames)) && signalNames[n] != "":
		c.text(signalNames[n])
	case n >= 32 && n <= 64:
		c.text("SIGRT_")
		c.unsigned(n - 32)
	default:
		c.signed(int64(int32(n)))
	}
}

// path writes a string that ends with a zero, as far as it can be read.
func (c *call) path(addr uint64, most int) {
	if addr == 0 {
		c.text("NULL")
		return
	}
	// Up to the end of the page, and then one more page: the string may end before a hole.
	first := min(int(4096-addr&4095), most)
	b := c.load(addr, first)
	if b == nil {
		c.pointer(addr)
		return
	}
	if n := zero(b); n >= 0 {
		c.quoted(b[:n], false)
		return
	}
	if first < most {
		if b := c.load(addr, most); b != nil {
			n := zero(b)
			if n < 0 {
				c.quoted(b, true)
			} else {
				c.quoted(b[:n], false)
			}
			return
		}
	}
	c.quoted(b, true)
}

func zero(b []byte) int {
	for i, x := range b {
		if x == 0 {
			return i
		}
	}
	return -1
}

// buffer writes the beginning of so many bytes.
func (c *call) buffer(addr, n uint64) {
	b := c.load(addr, int(min(n, textShown)))
	if b == nil {
		c.pointer(addr)
		return
	}
	c.quoted(b, n > textShown)
}

// list writes a null-terminated array of strings.
func (c *call) list(addr uint64) {
	if addr == 0 {
		c.text("NULL")
		return
	}
	c.byte('[')
	for i := range uint64(wordsShown) {
		b := c.load(addr+8*i, 8)
		if b == nil {
			c.text("...")
			break
		}
		p := le.Uint64(b)
		if p == 0 {
			break
		}
		if i > 0 {
			c.text(", ")
		}
		if i == wordsShown-1 || c.full() {
			c.text("...")
			break
		}
		c.path(p, textShown)
	}
	c.byte(']')
}

func (c *call) int32At(addr uint64) {
	b := c.load(addr, 4)
	if b == nil {
		c.pointer(addr)
		return
	}
	c.byte('[')
	c.signed(int64(int32(le.Uint32(b))))
	c.byte(']')
}
