package nucleus

import (
	"hardtack/abi/boot"
	"hardtack/arch/amd64"
)

// Protection is what a processor does for the kernel, as its registers said when it had
// been set up; Has, what it could do.
type Protection struct {
	WP   bool // the kernel cannot write read-only pages
	NX   bool // pages can be forbidden to execute
	SMEP bool // the kernel cannot execute users' pages
	SMAP bool // nor read or write them
	UMIP bool // user mode cannot read the descriptor tables' addresses
	Has  struct{ SMEP, SMAP, UMIP bool }
}

var protections [maxCPUs]Protection

const (
	msrEFER = 0xc0000080
	eferNXE = 1 << 11
)

func readProtections() Protection {
	cr0, cr4 := amd64.ReadCR0(), amd64.ReadCR4()
	p := Protection{
		WP: cr0&cr0WP != 0, NX: amd64.ReadMSR(msrEFER)&eferNXE != 0,
		SMEP: cr4&cr4SMEP != 0, SMAP: cr4&cr4SMAP != 0, UMIP: cr4&cr4UMIP != 0,
	}
	_, ebx, ecx, _ := amd64.CPUID(7, 0)
	p.Has.SMEP, p.Has.SMAP, p.Has.UMIP = ebx>>7&1 != 0, ebx>>20&1 != 0, ecx>>2&1 != 0
	return p
}

// CPUProtection returns what CPU i does.
func CPUProtection(i int) Protection { return protections[i] }

// WrongPages counts the pages of the kernel's half of the address space that break its
// rules: none is both writable and executable, the image's text and read-only data are
// not writable anywhere, and no page is user mode's. It walks the tables without a
// lock: entries only come and go whole.
func WrongPages() (pages, wrong int) {
	text, _, rodata, _ := imageBounds()
	w := walk{roStart: text - boot.ImageBase, roEnd: rodata - boot.ImageBase}
	w.tables(kspace.root, 39, 256, ptePresent|pteWrite|pteUser)
	return w.pages, w.wrong
}

// walk visits the leaves of the kernel's page tables.
type walk struct {
	roStart, roEnd uint64 // physical addresses of what nobody may write
	pages, wrong   int
	visit          func(pa, size uint64) // or nil
}

// tables visits one table from an entry on; rights are what the levels above allow.
func (w *walk) tables(root uint64, shift uint, from int, rights uint64) {
	for _, e := range table(root)[from:] {
		if e&ptePresent == 0 {
			continue
		}
		allowed := rights&e&(pteWrite|pteUser) | (rights|e)&pteNX
		if shift > 12 && e&pteLarge == 0 {
			w.tables(e&pteAddr, shift-9, 0, allowed)
			continue
		}
		w.leaf(e&pteAddr, 1<<shift, allowed)
	}
}

func (w *walk) leaf(pa, size, allowed uint64) {
	w.pages++
	if w.visit != nil {
		w.visit(pa, size)
	}
	writable := allowed&pteWrite != 0
	if writable && allowed&pteNX == 0 || allowed&pteUser != 0 || writable && pa < w.roEnd && pa+size > w.roStart {
		w.wrong++
	}
}
