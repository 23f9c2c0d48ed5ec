package program

//oops:stop half of the old program and half of the new

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/random"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/elf"
)

// Entry is where a new program starts.
type Entry struct{ RIP, RSP uint64 }

// Env is what a program finds beside its arguments.
type Env struct {
	Strings     []string
	Personality uint32
	Limits      func(n int) uint64 // resource limits
}

// Build makes the new address space with program, interpreter, vDSO and stack in it.
func (x *Program) Build(c *caller.Ctx, env *Env) (*vm.Space, *Image, Entry, linux.Errno) {
	s, e := vm.New()
	if e != 0 {
		return nil, nil, Entry{}, e
	}
	s.SetOwner(c.User().UID)
	s.Limits = env.Limits
	img, at, e := x.fill(c, s, env)
	if e != 0 {
		s.Release()
		return nil, nil, at, e
	}
	return s, img, at, 0
}

func (x *Program) fill(c *caller.Ctx, s *vm.Space, env *Env) (img *Image, at Entry, e linux.Errno) {
	aslr := settings.RandomizeVA.Get() != 0 && env.Personality&^x.Clear&addrNoRandomize == 0
	s.PickMmapBase(aslr)
	x.Lost = true
	bias, e := loadELF(c, s, x.file, x.elf, biasFor(x, aslr))
	if e != 0 {
		return nil, at, e
	}
	start, base := x.elf.Entry+bias, uint64(0)
	if x.ielf != nil {
		if base, e = loadELF(c, s, x.interp, x.ielf, 0); e != 0 {
			return nil, at, e
		}
		start = x.ielf.Entry + base
	}
	if start >= linux.TaskSize {
		return nil, at, linux.EINVAL
	}
	x.Lost = false
	s.SetBrk(brkFor(x, bias, aslr && settings.RandomizeVA.Get() > 1))
	vdso, e := mapVDSO(c, s)
	if e != 0 {
		return nil, at, e
	}
	l := stackLayout{
		argv: x.argv, env: env.Strings, long: x.long, name: x.name, aslr: aslr,
		aux: auxiliary{
			vdso: vdso, phdr: x.elf.PHAddr + bias, phnum: uint64(x.elf.PHNum),
			base: base, entry: x.elf.Entry + bias, cred: x.Cred, secure: x.Secure,
		},
	}
	if img, at.RSP, e = l.write(c, s, x.elf.ExecStack); e != 0 {
		return nil, at, e
	}
	at.RIP = start
	img.Path = x.name
	img.Entry = start
	describe(img, x.elf, bias)
	return img, at, 0
}

// describe records where code and data are, for /proc/PID/stat, by Linux's rules.
func describe(img *Image, p *elf.Program, bias uint64) {
	for i := range p.Segments {
		g := &p.Segments[i]
		start, end := g.Addr+bias, g.Addr+bias+g.FileSize
		if g.Flags&elf.X != 0 {
			if img.CodeStart == 0 {
				img.CodeStart = start
			}
			img.CodeStart, img.CodeEnd = min(img.CodeStart, start), max(img.CodeEnd, end)
		}
		img.DataStart, img.DataEnd = max(img.DataStart, start), max(img.DataEnd, end)
	}
}

// TakeFile gives the image the reference to the program's file, which Close drops else.
func (x *Program) TakeFile(img *Image) { img.File, x.file = x.file, nil }

// dynBase is where position-independent programs with an interpreter go
// (two thirds of the address space, ELF_ET_DYN_BASE).
const dynBase = (linux.TaskSize / 3 * 2) &^ 0xfff

// biasFor chooses where a position-independent program goes; 0: anywhere.
func biasFor(x *Program, aslr bool) uint64 {
	if !x.elf.Dynamic || x.ielf == nil {
		return 0
	}
	b := uint64(dynBase)
	if aslr {
		b += random.Uint64N(1<<28) << 12
	}
	return b &^ (x.elf.Align - 1)
}

// brkFor chooses where the heap begins.
func brkFor(x *Program, bias uint64, aslr bool) uint64 {
	b := x.elf.High + bias
	if x.elf.Dynamic && x.ielf == nil {
		b = dynBase // what is above a program among the mappings is not free
	}
	if aslr {
		b += random.Uint64N(0x2000) << 12
	}
	return b
}
