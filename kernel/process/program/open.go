package program

//oops:stop half of the old program and half of the new

import (
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/elf"
)

// maxScripts is how many "#!" lines lead to each other.
const maxScripts = 5

// Args are the arguments of execve and execveat.
type Args struct {
	At   *vfs.File // directory, or the program itself with an empty path; nil: working directory
	Path string
	Walk vfs.WalkFlags
	// Closes says that Name goes through a descriptor that is closed on exec.
	Closes bool
	Name   string // what AT_EXECFN and a script's interpreter are told; Path if empty
	Argv   []string
	Env    []string
	// Long has what follows Argv and Env if that is too long for the kernel's heap: where
	// it has arguments, all of the environment. Nil if there is nothing.
	Long *ArgPages
}

// Program is a program about to be started: open files and their headers.
type Program struct {
	file, interp *vfs.File
	elf, ielf    *elf.Program
	argv         []string
	long         *ArgPages
	name         string // AT_EXECFN

	Comm       string // the last part of its name
	Unreadable bool   // the caller may run it but not read it
	Lost       bool   // it cannot be loaded, and there was no way back
	Privileges
}

// Close drops the files.
func (x *Program) Close() {
	if x.file != nil {
		x.file.Put()
	}
	if x.interp != nil {
		x.interp.Put()
	}
}

// Open opens the program and follows "#!" lines and PT_INTERP. The caller closes x even if
// it fails.
func (x *Program) Open(c *caller.Ctx, fs *vfs.FSContext, a *Args) linux.Errno {
	x.argv, x.long, x.name = a.Argv, a.Long, a.Name
	if x.name == "" {
		x.name = a.Path
	}
	if len(x.argv) == 0 {
		x.argv = []string{""}
	}
	f, e := vfs.OpenExec(c, fs, a.At, a.Path, a.Walk)
	if e != 0 {
		return e
	}
	x.file = f
	x.Comm = x.name[strings.LastIndexByte(x.name, '/')+1:]
	var head [elf.ShebangSize]byte
	for depth := 0; ; depth++ {
		n, e := readFile(c, x.file, head[:], 0)
		if e != 0 {
			return e
		}
		interp, arg, ok := elf.Shebang(head[:n])
		if !ok {
			x.noteReadable(c, x.file)
			return x.openELF(c, fs, head[:n])
		}
		if interp == "" {
			return linux.EACCES // as of a directory
		}
		if depth == maxScripts {
			return linux.ELOOP
		}
		if depth == 0 && a.Closes {
			return linux.ENOENT // the interpreter could not open the script
		}
		x.interpret(interp, arg, depth)
		f, e := vfs.OpenExec(c, fs, nil, interp, vfs.FollowLast)
		if e != 0 {
			return e
		}
		x.file.Put()
		x.file = f
	}
}

// interpret puts a script's interpreter and its argument before the arguments.
func (x *Program) interpret(interp, arg string, depth int) {
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
}

// Decide sets the privileges of a program started by old; shared says that another process
// shares directories with the caller.
func (x *Program) Decide(old *creds.Cred, shared bool) (e linux.Errno) {
	x.Privileges, e = execCred(old, x.file, shared)
	return e
}

// openELF reads the headers of the program and of its interpreter.
func (x *Program) openELF(c *caller.Ctx, fs *vfs.FSContext, head []byte) (e linux.Errno) {
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
	if x.interp, e = vfs.OpenExec(c, fs, nil, path, vfs.FollowLast); e != 0 {
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
func (x *Program) noteReadable(c *caller.Ctx, f *vfs.File) {
	if !f.Path.Zero() && vfs.Permission(c, f.Path.Inode(), vfs.MayRead) != 0 {
		x.Unreadable = true
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
