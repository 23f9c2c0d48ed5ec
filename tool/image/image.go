// Package image makes the kernel image. The stock Go toolchain links cmd/kernel into the
// upper half of the address space, then rewrites the ELF headers so that a PVH loader
// (QEMU -kernel) puts it at its physical address and enters it through a 32-bit stub. The
// same source gives the same bytes.
package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"hardtack/abi/boot"
	"hardtack/overlay"
	"hardtack/tool/fault"
)

// Options say what to build.
type Options struct {
	Out     string   // the image's path
	Dir     string   // a directory inside the module; "" is the working directory
	Tags    string   // build tags
	Control string   // the nucleus's concurrency control: none, big, queue, fine or rtm; "" is big
	Args    []string // more arguments for go build

	// Stock leaves Go's runtime as it is: without the overlay's topics for the
	// kernel, which so does not know what its system calls allocate.
	Stock bool

	// CheckLocks has the kernel check the order in which it takes locks; for tests.
	CheckLocks bool

	// CheckBounds has the kernel compare what each system call allocates with its static
	// bound; for tests.
	CheckBounds bool

	// Cover has the kernel count which of its statements run; for tests.
	Cover bool

	// Debug is where to keep the linked program, with symbols for gdb; "" nowhere.
	Debug string
}

// entrySymbol is where 64-bit code begins.
const entrySymbol = "hardtack/arch/amd64.bootEntry"

// controlTags are the build tags of the concurrency controls (nucleus/control).
var controlTags = map[string]string{"": "", "none": "nucleus_none", "big": "", "queue": "nucleus_queue", "fine": "nucleus_fine", "rtm": "nucleus_rtm"}

// ControlTag is the build tag of a concurrency control.
func ControlTag(control string) (string, error) {
	tag, ok := controlTags[control]
	if !ok {
		return "", fault.Bad("concurrency control %q: want none, big, queue, fine or rtm", control)
	}
	return tag, nil
}

// tableCalls keeps the compiler from having each system call compared with the one
// that the profile saw most before it is looked up in the table.
const tableCalls = "hardtack/kernel/syscall=-d=pgodevirtualize=1"

// coverFlags have the kernel's packages note which statements run. A note is one plain
// store; counting takes a locked instruction for each block.
var coverFlags = []string{"-cover", "-covermode=set", "-coverpkg=hardtack/cmd/kernel,hardtack/kernel/...,hardtack/nucleus/..."}

// Build makes the image at o.Out.
func Build(o Options) error {
	tag, err := ControlTag(o.Control)
	if err != nil {
		return err
	}
	if o.Stock && o.CheckLocks {
		return fault.Bad("--check-locks patches the Go runtime, so --stock excludes it")
	}
	if o.Stock && o.CheckBounds {
		return fault.Bad("--check-bounds counts by a patch of the Go runtime, so --stock excludes it")
	}
	tags := strings.Trim(o.Tags+","+tag, ",")
	tmp, err := os.MkdirTemp("", "hardtack-image-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	linked := filepath.Join(tmp, "kernel")
	text := uint64(boot.TextBase)
	// The linker takes -T as a signed number.
	ldflags := fmt.Sprintf("-T %d -E %s -checklinkname=0 -buildid=", int64(text), entrySymbol)
	env := append(os.Environ(), Env()...)
	list, err := o.overlays(tmp, env)
	if err != nil {
		return err
	}
	if o.CheckBounds {
		tags = strings.Trim(tags+",hardtack_bounds", ",")
		if list, err = o.pointFiles(tmp, list, env); err != nil {
			return err
		}
	}
	flags := []string{"-trimpath", "-buildvcs=false", "-overlay", list, "-gcflags", tableCalls, "-tags", tags}
	if o.Cover {
		o.Args = append(slices.Clone(o.Args), coverFlags...)
		tags = strings.Trim(tags+",hardtack_cover", ",")
	}
	if list, err = o.lockLines(tmp, list, env, flags); err != nil {
		return err
	}
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-overlay", list, "-gcflags", tableCalls, "-ldflags", ldflags, "-tags", tags, "-o", linked}, o.Args...)
	cmd := exec.Command("go", append(args, "hardtack/cmd/kernel")...)
	cmd.Dir, cmd.Env = o.Dir, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	in, err := os.ReadFile(linked)
	if err != nil {
		return err
	}
	if o.Debug != "" {
		if err := os.WriteFile(o.Debug, in, 0o755); err != nil {
			return err
		}
	}
	out, err := convert(in)
	if err != nil {
		return err
	}
	return os.WriteFile(o.Out, out, 0o644)
}

// Env is the environment, beside the process's own, that the kernel is built in.
func Env() []string {
	return []string{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOAMD64=v1", "GOFLAGS=" + moduleFlags()}
}

// Overlay makes below dir the list of replaced files that the kernel is built with, for
// tools that read its source.
func (o *Options) Overlay(dir string) (string, error) {
	return o.overlays(dir, append(os.Environ(), Env()...))
}

// runtimeTopics are the overlay's topics that the kernel is built with.
var runtimeTopics = []string{"allocated", "collector", "ran", "turns"}

// overlays makes the patched files of the TCP/IP stack and of Go's runtime below
// dir and gives the list for "go build -overlay".
func (o *Options) overlays(dir string, env []string) (string, error) {
	// A download tells where a module is, and has it if nothing needed it yet.
	var module struct{ Dir, Version string }
	var root struct{ Dir string }
	var tools struct{ GOVERSION, GOROOT string }
	for _, q := range []struct {
		arg []string
		to  any
	}{
		{[]string{"mod", "download", "-json", overlay.NetstackModule}, &module},
		{[]string{"list", "-m", "-json"}, &root},
		{[]string{"env", "-json", "GOVERSION", "GOROOT"}, &tools},
	} {
		cmd := exec.Command("go", q.arg...)
		cmd.Dir, cmd.Env = o.Dir, env
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, q.to)
		}
		if err != nil {
			return "", fmt.Errorf("go %s: %w\n%s", strings.Join(q.arg, " "), err, bytes.TrimSpace(out))
		}
	}
	if err := overlay.Match(filepath.Join(root.Dir, "overlay")); err != nil {
		return "", err
	}
	netstack, err := overlay.Netstack(filepath.Join(dir, "netstack"), root.Dir, module.Dir, module.Version)
	if err != nil || o.Stock {
		return netstack, err
	}
	topics := runtimeTopics
	if o.CheckLocks {
		topics = append(slices.Clone(topics), "locks")
	}
	if o.CheckBounds {
		topics = append(slices.Clone(topics), "sites")
	}
	patched, err := overlay.Prepare(overlay.Toolchain{Version: tools.GOVERSION, Root: tools.GOROOT, OS: "linux", Arch: "amd64"},
		overlay.Options{Topics: topics, Cache: filepath.Join(dir, "runtime")})
	if err != nil {
		return "", fmt.Errorf("%w (--stock builds without the patch)", err)
	}
	both := filepath.Join(dir, "overlay.json")
	return both, overlay.Join(both, netstack, patched.List)
}

// moduleFlags keeps a caller's GOFLAGS from changing the image, but for where
// modules come from.
func moduleFlags() string {
	var keep []string
	for _, f := range strings.Fields(os.Getenv("GOFLAGS")) {
		if strings.HasPrefix(f, "-mod") {
			keep = append(keep, f)
		}
	}
	return strings.Join(keep, " ")
}

// XEN_ELFNOTE_PHYS32_ENTRY, the PVH entry point.
const notePhys32Entry = 18

// convert turns a linked Go program into a PVH image: the loadable segments,
// each with its physical address, the stub, and the note.
func convert(in []byte) ([]byte, error) {
	f, err := elf.NewFile(bytes.NewReader(in))
	if err != nil {
		return nil, err
	}
	if f.Machine != elf.EM_X86_64 || f.Type != elf.ET_EXEC {
		return nil, fmt.Errorf("not a linked x86-64 program: %v %v", f.Machine, f.Type)
	}
	note := new(bytes.Buffer)
	binary.Write(note, binary.LittleEndian, []uint32{4, 8, notePhys32Entry})
	note.WriteString("Xen\x00")
	binary.Write(note, binary.LittleEndian, uint64(boot.StubBase))

	type segment struct {
		hdr  elf.Prog64
		data []byte
	}
	segs := []segment{{elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: 7, Vaddr: boot.StubBase, Paddr: boot.StubBase,
		Filesz: boot.StubSize, Memsz: boot.StubSize, Align: 4096}, stub(f.Entry)}}
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		if p.Vaddr < boot.ImageBase {
			return nil, fmt.Errorf("segment at %#x is not in the kernel's half", p.Vaddr)
		}
		data := make([]byte, p.Filesz)
		if _, err := p.ReadAt(data, 0); err != nil {
			return nil, err
		}
		segs = append(segs, segment{elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(p.Flags), Vaddr: p.Vaddr,
			Paddr: p.Vaddr - boot.ImageBase, Filesz: p.Filesz, Memsz: p.Memsz, Align: 4096}, data})
	}

	const ehsize, phsize = 64, 56
	off := uint64(ehsize + phsize*(len(segs)+1))
	noteOff := off
	off += uint64(note.Len())
	var phdrs []elf.Prog64
	for i := range segs {
		off = (off + 4095) &^ 4095
		segs[i].hdr.Off = off
		phdrs = append(phdrs, segs[i].hdr)
		off += uint64(len(segs[i].data))
	}
	n := uint64(note.Len())
	phdrs = append(phdrs, elf.Prog64{Type: uint32(elf.PT_NOTE), Flags: 4, Off: noteOff, Filesz: n, Memsz: n, Align: 4})

	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Entry: boot.StubBase,
		Phoff: ehsize, Ehsize: ehsize, Phentsize: phsize, Phnum: uint16(len(phdrs)), Shentsize: 64}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1

	w := new(bytes.Buffer)
	binary.Write(w, binary.LittleEndian, h)
	binary.Write(w, binary.LittleEndian, phdrs)
	w.Write(note.Bytes())
	for _, s := range segs {
		w.Write(make([]byte, s.hdr.Off-uint64(w.Len())))
		w.Write(s.data)
	}
	return w.Bytes(), nil
}
