package proc

//oops:stop half of the old program and half of the new

import (
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/random"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/elf"
)

// maxScripts is how many "#!" lines lead to each other.
const maxScripts = 5

// ExecArgs are the arguments of execve and execveat.
type ExecArgs struct {
	At   *vfs.File // directory, or the program itself with an empty path; nil: working directory
	Path string
	Walk vfs.WalkFlags
	// Closes says that Name goes through a descriptor that is closed on exec.
	Closes bool
	Name   string // what AT_EXECFN and a script's interpreter are told; Path if empty
	Argv   []string
	Env    []string
}

// program is a program about to be started: open files and their headers.
type program struct {
	file, interp *vfs.File
	elf, ielf    *elf.Program
	argv         []string
	name         string // AT_EXECFN
	comm         string
	unreadable   bool // the caller may run it but not read it
	lost         bool // it cannot be loaded, and there was no way back
	privileges
}

func (x *program) close() {
	if x.file != nil {
		x.file.Put()
	}
	if x.interp != nil {
		x.interp.Put()
	}
}

// Exec replaces the calling process's program. Everything that can fail is done
// in a new address space first; only then do the other threads end and is the
// old program given up.
func (t *Thread) Exec(a *ExecArgs) linux.Errno {
	// setuid does not fail for this reason, because programs that ignore the error would
	// continue as root.
	if t.tooMany = t.tooMany && t.Proc.manyThreads(t.Cred().User); t.tooMany {
		return linux.EAGAIN
	}
	x := program{argv: a.Argv, name: a.Name}
	if x.name == "" {
		x.name = a.Path
	}
	if len(x.argv) == 0 {
		x.argv = []string{""}
	}
	if e := t.findProgram(&x, a); e != 0 {
		x.close()
		return e
	}
	shared := t.beginExec()
	if !shared {
		defer t.FS.EndExec()
	}
	var e linux.Errno
	if x.privileges, e = execCred(t.Cred(), x.file, shared); e != 0 {
		x.close()
		return e
	}
	s, img, start, e := t.buildImage(&x, a.Env)
	if e != 0 {
		if x.lost {
			t.dieLoading()
		}
		x.close()
		return e
	}
	if !t.killSiblings() {
		s.Release()
		x.close()
		return linux.EAGAIN // being killed; nobody sees this
	}
	img.File, x.file = x.file, nil
	x.close()
	t.becomeProgram(&x, s, img, start)
	return 0
}

// dieLoading kills a process whose new program turned out to be unloadable at a point
// where, on Linux, the old program is already gone.
func (t *Thread) dieLoading() {
	p := t.Proc
	p.mu.Lock()
	p.beginExit(int32(linux.SIGSEGV))
	p.mu.Unlock()
}

// findProgram opens the program and follows "#!" lines and PT_INTERP.
func (t *Thread) findProgram(x *program, a *ExecArgs) linux.Errno {
	c := &t.Ctx
	f, e := vfs.OpenExec(c, t.FS, a.At, a.Path, a.Walk)
	if e != 0 {
		return e
	}
	x.file = f
	x.comm = x.name[strings.LastIndexByte(x.name, '/')+1:]
	var head [elf.ShebangSize]byte
	for depth := 0; ; depth++ {
		n, e := readFile(c, x.file, head[:], 0)
		if e != 0 {
			return e
		}
		interp, arg, ok := elf.Shebang(head[:n])
		if !ok {
			x.noteReadable(c, x.file)
			return t.findELF(x, head[:n])
		}
		if depth == maxScripts {
			return linux.ELOOP
		}
		if depth == 0 && a.Closes {
			return linux.ENOENT // the interpreter could not open the script
		}
		script := x.name
		if depth > 0 {
			script = x.argv[0]
		}
		argv := make([]string, 0, len(x.argv)+2)
		argv = append(argv, interp)
		if arg != "" {
			argv = append(argv, arg)
		}
		argv = append(argv, script)
		x.argv = append(argv, x.argv[1:]...)
		f, e := vfs.OpenExec(c, t.FS, nil, interp, vfs.FollowLast)
		if e != 0 {
			return e
		}
		x.file.Put()
		x.file = f
	}
}

// findELF reads the headers of the program and of its interpreter.
func (t *Thread) findELF(x *program, head []byte) (e linux.Errno) {
	c := &t.Ctx
	if len(head) < elf.HeaderSize || !elf.Executable(head) {
		return linux.ENOEXEC
	}
	if x.elf, e = readELF(c, x.file, head); e != 0 {
		return e
	}
	r := x.elf.Interp
	if r.Size == 0 {
		return 0
	}
	b := make([]byte, r.Size)
	if e := readAll(c, x.file, b, int64(r.Offset)); e != 0 {
		return e
	}
	if b[len(b)-1] != 0 {
		return linux.ENOEXEC
	}
	path, _, _ := strings.Cut(string(b), "\x00")
	if x.interp, e = vfs.OpenExec(c, t.FS, nil, path, vfs.FollowLast); e != 0 {
		return e
	}
	x.noteReadable(c, x.interp)
	var ihead [elf.ShebangSize]byte
	n, e := readFile(c, x.interp, ihead[:], 0)
	if e != 0 {
		return e
	}
	if n < elf.HeaderSize {
		return linux.EIO
	}
	if x.ielf, e = readELF(c, x.interp, ihead[:n]); e == linux.ENOEXEC {
		e = linux.ELIBBAD
	}
	return e
}

// readAll is readFile of bytes that must be there.
func readAll(c *caller.Ctx, f *vfs.File, b []byte, off int64) linux.Errno {
	n, e := readFile(c, f, b, off)
	if e == 0 && n != len(b) {
		e = linux.EIO
	}
	return e
}

// noteReadable checks whether the caller may read the program's file. If not, it must not
// read it from the process either.
func (x *program) noteReadable(c *caller.Ctx, f *vfs.File) {
	if !f.Path.Zero() && vfs.Permission(c, f.Path.Inode(), vfs.MayRead) != 0 {
		x.unreadable = true
	}
}

// readELF parses a file whose beginning is head.
func readELF(c *caller.Ctx, f *vfs.File, head []byte) (*elf.Program, linux.Errno) {
	r, _, e := elf.HeadersAt(head)
	if e != 0 {
		return nil, e
	}
	var ph []byte
	if end := r.Offset + r.Size; end <= uint64(len(head)) {
		ph = head[r.Offset:end]
	} else {
		ph = make([]byte, r.Size)
		if n, e := readFile(c, f, ph, int64(r.Offset)); e != 0 || uint64(n) != r.Size {
			return nil, linux.ENOEXEC
		}
	}
	return elf.Parse(head, ph)
}

// readFile fills b from a file's offset; a short count is its end.
func readFile(c *caller.Ctx, f *vfs.File, b []byte, off int64) (int, linux.Errno) {
	done := 0
	for done < len(b) {
		c.Vec.InitBytes(b[done:])
		n, e := f.Ops.Read(c, f, &c.Vec, off+int64(done))
		if e != 0 {
			return done, e
		}
		if n == 0 {
			break
		}
		done += n
	}
	return done, 0
}

// entry is where a new program starts.
type entry struct{ rip, rsp uint64 }

// buildImage makes the new address space with program, interpreter, vDSO and
// stack in it.
func (t *Thread) buildImage(x *program, env []string) (_ *vm.Space, _ *Image, at entry, _ linux.Errno) {
	s, e := vm.New()
	if e != 0 {
		return nil, nil, at, e
	}
	img, at, e := t.fillImage(s, x, env)
	if e != 0 {
		s.Release()
		return nil, nil, at, e
	}
	return s, img, at, 0
}

func (t *Thread) fillImage(s *vm.Space, x *program, env []string) (img *Image, at entry, e linux.Errno) {
	p, c := t.Proc, &t.Ctx
	s.Limits = p.limitOf
	if x.secure {
		s.Limits = p.secureLimit
	}
	aslr := settings.RandomizeVA.Get() != 0 && p.Personality()&^x.clear&addrNoRandomize == 0
	s.PickMmapBase(aslr)
	x.lost = true
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
	if start >= TaskSize {
		return nil, at, linux.EINVAL
	}
	x.lost = false
	s.SetBrk(brkFor(x, bias, aslr && settings.RandomizeVA.Get() > 1))
	vdso, e := mapVDSO(c, s)
	if e != 0 {
		return nil, at, e
	}
	l := stackLayout{
		argv: x.argv, env: env, name: x.name, aslr: aslr,
		aux: auxiliary{
			vdso: vdso, phdr: x.elf.PHAddr + bias, phnum: uint64(x.elf.PHNum),
			base: base, entry: x.elf.Entry + bias, cred: x.cred, secure: x.secure,
		},
	}
	if img, at.rsp, e = l.write(c, s, x.elf.ExecStack); e != 0 {
		return nil, at, e
	}
	at.rip = start
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

// dynBase is where position-independent programs with an interpreter go
// (two thirds of the address space, ELF_ET_DYN_BASE).
const dynBase = (TaskSize / 3 * 2) &^ 0xfff

// biasFor chooses where a position-independent program goes; 0: anywhere.
func biasFor(x *program, aslr bool) uint64 {
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
func brkFor(x *program, bias uint64, aslr bool) uint64 {
	b := x.elf.High + bias
	if x.elf.Dynamic && x.ielf == nil {
		b = dynBase // what is above a program among the mappings is not free
	}
	if aslr {
		b += random.Uint64N(0x2000) << 12
	}
	return b
}

// killSiblings ends the process's other threads. It reports false if the
// process is being killed instead.
func (t *Thread) killSiblings() bool {
	p := t.Proc
	p.mu.Lock()
	if p.exiting || p.execing != nil {
		p.mu.Unlock()
		return false
	}
	if len(p.threads) == 1 && t.TID == p.PID {
		p.mu.Unlock()
		return true
	}
	p.execing = t
	for _, u := range p.threads {
		if u != t {
			u.notify(workExit)
		}
	}
	for len(p.threads) > 1 && !p.exiting {
		t.Arm()
		p.mu.Unlock()
		t.SleepUninterruptible(wait.NoDeadline)
		p.mu.Lock()
	}
	p.execing = nil
	alone := !p.exiting
	p.mu.Unlock()
	if alone && t.TID != p.PID {
		t.becomeLeader()
	}
	return alone
}

// becomeLeader gives the last thread the number of the leader, which has ended.
func (t *Thread) becomeLeader() {
	p := t.Proc
	treeMu.Lock()
	slotOf(t.TID).thread.Store(nil)
	dropPID(t.TID)
	p.mu.Lock()
	t.TID = p.PID
	p.leader, p.first = t, t
	p.uncharge() // for the old leader
	p.mu.Unlock()
	slotOf(p.PID).thread.Store(t)
	treeMu.Unlock()
}

// becomeProgram is the point of no return: the thread, now alone, replaces the old
// program with the new one. Descriptors are adjusted before that, while they still belong
// to the old program.
func (t *Thread) becomeProgram(x *program, s *vm.Space, img *Image, at entry) {
	p := t.Proc
	if t.Space != nil {
		t.Futex.Exit(t.Space)
		t.Futex.Reset()
	}
	t.restart = nil
	t.leavePartner()
	if t.FDs.Users() > 1 {
		fds := t.FDs
		own, e := fds.Fork()
		if e != 0 { // as on Linux, it is too late to go back
			own = vfs.NewFDTable(t.Cred())
			p.SendSignal(linux.SIGKILL)
		}
		p.mu.Lock()
		t.FDs = own
		p.mu.Unlock()
		fds.Release(&t.Ctx)
	}
	t.FDs.CloseExec(&t.Ctx)
	t.SetName(x.comm)
	old, prev := t.assume(x, s, img)
	t.FDs.SetOwner(x.cred)
	t.sig.alt = linux.StackT{}
	if old != nil {
		p.noteRSS(old)
		t.vforkDone()
		old.Release()
	}
	if prev != nil && prev.File != nil {
		prev.File.Put()
	}
	Execed.Call(t)
	u := &t.User
	u.Reset()
	u.RIP, u.RSP = at.rip, at.rsp
}
