package rootfs

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"hardtack/tool/fault"
)

// DefaultPath is PATH where nothing else sets it.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// defaultPrograms are process 1 where neither user nor image name one.
var defaultPrograms = []string{"/init", "/sbin/init", "/bin/sh"}

// DefaultProgram is the first of the usual programs that the tree has.
func (t *Tree) DefaultProgram() (string, error) {
	for _, name := range defaultPrograms {
		if n, err := t.Lookup(name, true); err == nil && n.Type() == Regular {
			return name, nil
		}
	}
	return "", fault.Bad("the root has none of %s; name a command after --", strings.Join(defaultPrograms, ", "))
}

// FindProgram is the path of a command in the tree: as given where it has a
// slash, otherwise from the directories of pathVar. What cannot run is told
// here, in one line, instead of by a guest that dies at once.
func (t *Tree) FindProgram(name, cwd, pathVar string) (string, error) {
	if name == "" {
		return "", fault.Bad("the command's name is empty")
	}
	if strings.Contains(name, "/") {
		full := name
		if !path.IsAbs(name) {
			full = path.Join(cwd, name)
		}
		return name, t.checkProgram(full, 0)
	}
	for dir := range strings.SplitSeq(pathVar, ":") {
		full := path.Join("/", dir, name)
		if n, err := t.Lookup(full, true); err == nil && n.Type() == Regular && n.Mode&0o111 != 0 {
			return full, t.checkProgram(full, 0)
		}
	}
	return "", fault.Bad("command %q is not in the root's PATH (%s)", name, pathVar)
}

// scriptMax is how many interpreters may stand behind each other, as in Linux.
const scriptMax = 4

func (t *Tree) checkProgram(name string, depth int) error {
	if depth > scriptMax {
		return fault.Bad("%s: too many interpreters", name)
	}
	clean := path.Clean("/" + name)
	n, err := t.Lookup(clean, true)
	if err != nil {
		return fault.Bad("%s is not in the root: %v", clean, err)
	}
	if n.Type() != Regular {
		return fault.Bad("%s is not a regular file", clean)
	}
	if n.Mode&0o111 == 0 {
		return fault.Bad("%s is not executable", clean)
	}
	head := make([]byte, 256)
	k, err := n.Data.Open().Read(head)
	if err != nil && err != io.EOF {
		return err
	}
	head = head[:k]
	if line, ok := strings.CutPrefix(string(head), "#!"); ok {
		line, _, _ = strings.Cut(line, "\n")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			return fault.Bad("%s names no interpreter", clean)
		}
		return t.checkProgram(fields[0], depth+1)
	}
	interp, err := checkELF(n.Data)
	if err != nil {
		return fault.Bad("%s: %v", clean, err)
	}
	if interp == "" {
		return nil
	}
	i, err := t.Lookup(interp, true)
	if err != nil || i.Type() != Regular {
		return fault.Bad("%s needs %s, which is not in the root", clean, interp)
	}
	return nil
}

// userTop is the end of user addresses.
const userTop = 1 << 47

// checkELF looks at a program as the kernel will, and returns its interpreter.
func checkELF(b Blob) (string, error) {
	magic := make([]byte, len(elf.ELFMAG))
	if _, err := io.ReadFull(b.Open(), magic); err != nil || string(magic) != elf.ELFMAG {
		return "", errors.New("neither an ELF program nor a script")
	}
	f, err := elf.NewFile(b.Open())
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "", errors.New("it ends too early")
	}
	if err != nil {
		return "", fmt.Errorf("a damaged ELF file: %w", err)
	}
	if f.Class != elf.ELFCLASS64 || f.Machine != elf.EM_X86_64 {
		return "", errors.New("a program for " + strings.TrimPrefix(f.Machine.String(), "EM_") + ", not for x86-64")
	}
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return "", errors.New("an ELF file but not a program")
	}
	interp, end, loads := "", uint64(0), 0
	for _, p := range f.Progs {
		switch p.Type {
		case elf.PT_INTERP:
			text := make([]byte, min(p.Filesz, pathMax+1))
			if _, err := p.ReadAt(text, 0); err != nil {
				return "", errors.New("its interpreter's name is damaged")
			}
			interp = strings.TrimRight(string(text), "\x00")
		case elf.PT_LOAD:
			loads++
			if p.Filesz > p.Memsz || p.Vaddr >= userTop || p.Memsz > userTop-p.Vaddr {
				return "", errors.New("a segment is larger than the address space")
			}
			if p.Off > uint64(b.Size()) || p.Filesz > uint64(b.Size())-p.Off {
				return "", errors.New("it ends too early")
			}
			if p.Vaddr < end {
				return "", errors.New("its segments overlap")
			}
			end = p.Vaddr + p.Memsz
		}
	}
	if loads == 0 {
		return "", errors.New("it has nothing to load")
	}
	return interp, nil
}
