package program

//oops:stop half of the old program and half of the new

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/random"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/signals"
)

// Entries of the auxiliary vector (include/uapi/linux/auxvec.h).
const (
	atNull        = 0
	atPhdr        = 3
	atPhent       = 4
	atPhnum       = 5
	atPagesz      = 6
	atBase        = 7
	atFlags       = 8
	atEntry       = 9
	atUID         = 11
	atEUID        = 12
	atGID         = 13
	atEGID        = 14
	atPlatform    = 15
	atHWCap       = 16
	atClkTck      = 17
	atSecure      = 23
	atRandom      = 25
	atHWCap2      = 26
	atExecfn      = 31
	atSysinfoEHDR = 33
	atMinSigStk   = 51
)

// hwCap is AT_HWCAP; written before the first program starts.
var hwCap uint64

// SetHWCap tells the package what AT_HWCAP is to be: EDX of CPUID leaf 1.
func SetHWCap(features uint64) { hwCap = features }

// hwCap2 is AT_HWCAP2: programs may use the instructions of FSGSBASE, without which this
// kernel does not start.
const hwCap2 = 1 << 1

// auxiliary is what the auxiliary vector says about a program.
type auxiliary struct {
	vdso, phdr, phnum, base, entry uint64
	cred                           *creds.Cred
	secure                         bool
}

// stackLayout is the initial stack of a program. From the top downwards: an end
// marker of 8 bytes, the program's name, the environment's and the arguments'
// strings, of which the last may be in pages; the platform's name and 16 random bytes; the auxiliary vector,
// envp, argv, argc.
type stackLayout struct {
	argv, env []string
	long      *ArgPages // nil for none
	name      string
	aslr      bool
	aux       auxiliary
}

const platform = "x86_64"

// stackRoom is mapped below the strings at first; the rest grows.
const stackRoom = 128 << 10

// A stackImage is the initial stack as bytes: the strings at the top and, below
// a random gap, the words that point at them. What is in pages is left out.
type stackImage struct {
	stringsAt, sp  uint64
	strings, words []byte

	short          int // bytes of the strings before those in pages
	argCut, envCut int // bytes of the words before those that point to pages
}

// build returns the stack that ends at top, and fills in img.
func (l *stackLayout) build(top uint64, random [16]byte, gap uint64, img *Image) (x stackImage) {
	n := len(l.name) + 1 + 8
	for _, s := range l.argv {
		n += len(s) + 1
	}
	for _, s := range l.env {
		n += len(s) + 1
	}
	long := l.long
	if long == nil {
		long = &noPages
	}
	x.strings = make([]byte, n)
	x.stringsAt = top - uint64(n+long.size)
	// 16 random bytes, 16 with the platform's name, and above them the gap.
	end := (x.stringsAt - gap) &^ 15
	platformAt, randomAt := end-16, end-32
	var auxRoom [maxAux]uint64
	aux := l.auxv(auxRoom[:0], platformAt, randomAt, top-8-uint64(len(l.name)+1))
	words := 1 + len(l.argv) + 1 + len(l.env) + 1 + len(aux)
	inPages := long.args + long.envs
	x.sp = (randomAt - uint64(8*(words+inPages))) &^ 15
	x.words = make([]byte, int(end-x.sp)-8*inPages)
	x.argCut, x.envCut = 8*(1+len(l.argv)), 8*(2+len(l.argv)+len(l.env))

	w := x.words
	word := func(v uint64) {
		binary.LittleEndian.PutUint64(w, v)
		w = w[8:]
	}
	used := 0
	put := func(s string) uint64 {
		a := x.stringsAt + uint64(used)
		copy(x.strings[used:], s)
		used += len(s) + 1
		return a
	}
	word(uint64(len(l.argv) + long.args))
	img.ArgStart = x.stringsAt
	for _, s := range l.argv {
		word(put(s))
	}
	word(0)
	img.ArgEnd = x.stringsAt + uint64(used+long.argSize)
	img.EnvStart = img.ArgEnd
	for _, s := range l.env {
		word(put(s))
	}
	word(0)
	x.short = used
	img.EnvEnd = x.stringsAt + uint64(used+long.size)
	put(l.name)
	for _, v := range aux {
		word(v)
	}
	copy(x.words[len(x.words)-32:], random[:])
	copy(x.words[len(x.words)-16:], platform)
	img.aux = auxRoom
	img.auxLen = len(aux)
	img.StackTop = x.sp
	return x
}

// maxAux is how many words the auxiliary vector may have.
const maxAux = 48

// auxv appends the auxiliary vector to v.
func (l *stackLayout) auxv(v []uint64, platformAt, randomAt, execfn uint64) []uint64 {
	a := &l.aux
	if a.vdso != 0 {
		v = append(v, atSysinfoEHDR, a.vdso)
	}
	secure := uint64(0)
	if a.secure {
		secure = 1
	}
	return append(v,
		atMinSigStk, signals.MinStack,
		atHWCap, hwCap,
		atPagesz, 4096,
		atClkTck, 100,
		atPhdr, a.phdr,
		atPhent, 56,
		atPhnum, a.phnum,
		atBase, a.base,
		atFlags, 0,
		atEntry, a.entry,
		atUID, uint64(a.cred.UID),
		atEUID, uint64(a.cred.EUID),
		atGID, uint64(a.cred.GID),
		atEGID, uint64(a.cred.EGID),
		atSecure, secure,
		atRandom, randomAt,
		atHWCap2, hwCap2,
		atExecfn, execfn,
		atPlatform, platformAt,
		atNull, 0)
}

// write maps the stack and fills it; it returns the stack pointer.
func (l *stackLayout) write(c *caller.Ctx, s *vm.Space, exec bool) (*Image, uint64, linux.Errno) {
	top, gap := uint64(linux.TaskSize), uint64(0)
	if l.aslr {
		top -= random.Uint64N(1<<22) << 12
		gap = random.Uint64N(8192) &^ 15
	}
	var seed [16]byte
	random.Read(seed[:])
	img := new(Image)
	x := l.build(top, seed, gap, img)
	m := vm.MapArgs{
		Prot:  linux.PROT_READ | linux.PROT_WRITE,
		Flags: linux.MAP_PRIVATE | linux.MAP_ANONYMOUS | linux.MAP_FIXED | linux.MAP_GROWSDOWN | linux.MAP_STACK,
		Name:  "[stack]",
	}
	if exec {
		m.Prot |= linux.PROT_EXEC
	}
	m.Length = (top - x.sp + stackRoom + 4095) &^ 4095
	m.Addr = top - m.Length
	if _, e := s.Mmap(c, &m); e != 0 {
		return nil, 0, e
	}
	if l.long != nil {
		e := x.writeLong(c, s, l.long)
		return img, x.sp, e
	}
	if _, e := s.CopyOut(uio.Addr(x.stringsAt), x.strings); e != 0 {
		return nil, 0, linux.ENOMEM
	}
	if _, e := s.CopyOut(uio.Addr(x.sp), x.words); e != 0 {
		return nil, 0, linux.ENOMEM
	}
	return img, x.sp, 0
}

// writeLong fills a stack of which a part is in pages.
func (x *stackImage) writeLong(c *caller.Ctx, s *vm.Space, a *ArgPages) linux.Errno {
	at := x.sp
	bad := linux.Errno(0)
	put := func(b []byte) {
		if _, e := s.CopyOut(uio.Addr(at), b); e != 0 {
			bad = linux.ENOMEM
		}
		at += uint64(len(b))
	}
	p := pointers{ArgPages: a, base: x.stringsAt + uint64(x.short)}
	point := func(n int) {
		if e := p.copyOut(s, at, n); e != 0 {
			bad = linux.ENOMEM
		}
		at += uint64(8 * n)
	}
	put(x.words[:x.argCut])
	point(a.args)
	put(x.words[x.argCut:x.envCut])
	point(a.envs)
	put(x.words[x.envCut:])
	at = x.stringsAt
	put(x.strings[:x.short])
	end := at + uint64(a.size)
	if e := a.moveOut(c, s, at); e != 0 {
		bad = linux.ENOMEM
	}
	at = end
	put(x.strings[x.short:])
	return bad
}

var zeroPage [4096]byte

// zeroOut clears n bytes, less than a page, if there is one: the file may be shorter.
func zeroOut(s *vm.Space, addr, n uint64) linux.Errno {
	if _, e := s.CopyOut(uio.Addr(addr), zeroPage[:n]); e == linux.ENOMEM {
		return e
	}
	return 0
}
