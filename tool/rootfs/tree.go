// Package rootfs reads a guest's root file system (a directory, tar, cpio, layers of an
// image) into one Tree, and writes the Tree as a tar or as the cpio archive the kernel
// boots from.
//
// Invariants. A Tree never refers to a path of the host: names are resolved
// inside the tree only, so nothing in an archive can reach outside. File
// contents stay where they are (a Blob is a window on an open file); only the
// tree itself is in memory. Every Tree has a Budget, and everything read from
// outside is charged to it before it is stored.
//
// A Tree is used by one goroutine at a time; it has no lock.
package rootfs

import (
	"path"
	"slices"
	"strings"

	"hardtack/tool/fault"
)

// File types and permission bits of Inode.Mode, as in Linux's st_mode.
const (
	TypeMask = 0o170000
	Socket   = 0o140000
	Symlink  = 0o120000
	Regular  = 0o100000
	Block    = 0o060000
	Dir      = 0o040000
	Char     = 0o020000
	FIFO     = 0o010000

	permMask = 0o7777
)

// Limits on names, as in Linux.
const (
	nameMax  = 255
	pathMax  = 4095
	linksMax = 40  // symbolic links followed for one path
	depthMax = 250 // directories in each other: the kernel takes 256
)

// Inode is one file. A hard link is the same Inode under a second name.
type Inode struct {
	Mode         uint32 // type and permissions
	UID, GID     uint32
	Mtime        int64  // seconds since 1970
	Nanos        uint32 // of Mtime; an archive for the boot leaves them out
	Major, Minor uint32
	Target       string            // of a symbolic link
	Data         Blob              // of a regular file
	Xattrs       map[string]string // extended attributes, as getxattr(2) gives them; nil for none

	names map[string]*Inode // of a directory
}

// Type is the file type part of the mode.
func (n *Inode) Type() uint32 { return n.Mode & TypeMask }

// Perm is the permission part of the mode.
func (n *Inode) Perm() uint32 { return n.Mode & permMask }

// Names are the sorted names in a directory.
func (n *Inode) Names() []string {
	names := make([]string, 0, len(n.names))
	for name := range n.names {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Child is the file of that name in a directory, or nil.
func (n *Inode) Child(name string) *Inode { return n.names[name] }

// Tree is a root file system.
type Tree struct {
	Root   *Inode
	Config *Config // of the image it came from, nil where there was none

	budget Budget
}

// Budget bounds what a Tree may hold: the guest has to keep it in memory.
type Budget struct {
	Bytes   int64 // of contents, names and link targets
	Entries int64
	// Disk is for a tree that becomes a disk: it may have device nodes
	// anywhere and extended attributes, and holes of files cost nothing.
	Disk bool
}

// BudgetFor is what fits a guest with so much memory. The kernel needs a part
// of the memory for itself, and some of it for every file.
func BudgetFor(memory int64) Budget {
	return Budget{Bytes: memory, Entries: memory / 512}
}

// New is an empty tree: one directory, the root.
func New(b Budget) *Tree {
	return &Tree{Root: newDir(0o755), budget: b}
}

func newDir(perm uint32) *Inode {
	return &Inode{Mode: Dir | perm, names: map[string]*Inode{}}
}

// Charge takes bytes and entries from the tree's budget.
func (t *Tree) charge(bytes, entries int64) error {
	if bytes < 0 || bytes > t.budget.Bytes {
		return fault.Bad("the root file system does not fit in %s", t.place())
	}
	if entries > t.budget.Entries {
		return fault.Bad("the root file system has more files than %s can hold", t.place())
	}
	t.budget.Bytes -= bytes
	t.budget.Entries -= entries
	return nil
}

// place is what the tree is for, in errors.
func (t *Tree) place() string {
	if t.budget.Disk {
		return "the disk"
	}
	return "the guest's memory"
}

// split makes the components of a name as found in an archive: rooted,
// without empty and "." parts. A ".." is refused: no archive needs one.
func split(name string) ([]string, error) {
	if len(name) > pathMax {
		return nil, fault.Bad("name of %d bytes is too long", len(name))
	}
	if strings.IndexByte(name, 0) >= 0 {
		return nil, fault.Bad("name %q contains a zero byte", name)
	}
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			return nil, fault.Bad("name %q leads out of the root", name)
		case len(part) > nameMax:
			return nil, fault.Bad("a component of %.40q… is longer than %d bytes", name, nameMax)
		default:
			parts = append(parts, part)
		}
	}
	return parts, nil
}

// walker resolves names. links counts what it has followed.
type walker struct {
	t      *Tree
	create bool // missing directories are made
	links  int
}

// dir walks to the directory of those components, following links. stack holds
// the directories from the root to the current one, so that a ".." in a link's
// target goes up and stays inside.
func (w *walker) dir(stack []*Inode, parts []string) ([]*Inode, error) {
	for _, part := range parts {
		if len(stack) > depthMax {
			return nil, fault.Bad("more than %d directories in each other", depthMax)
		}
		if part == ".." {
			stack = stack[:max(1, len(stack)-1)]
			continue
		}
		here := stack[len(stack)-1]
		next := here.names[part]
		if next == nil {
			if !w.create {
				return nil, errNotFound
			}
			if err := w.t.charge(int64(len(part)), 1); err != nil {
				return nil, err
			}
			next = newDir(0o755)
			here.names[part] = next
		}
		switch next.Type() {
		case Dir:
			stack = append(stack, next)
		case Symlink:
			var err error
			if stack, err = w.follow(stack, next.Target); err != nil {
				return nil, err
			}
		default:
			return nil, fault.Bad("%q is not a directory", part)
		}
	}
	return stack, nil
}

func (w *walker) follow(stack []*Inode, target string) ([]*Inode, error) {
	if w.links++; w.links > linksMax {
		return nil, fault.Bad("too many levels of symbolic links at %q", target)
	}
	if strings.HasPrefix(target, "/") {
		stack = stack[:1]
	}
	return w.dir(slices.Clip(stack), linkParts(target))
}

func linkParts(target string) []string {
	return slices.DeleteFunc(strings.Split(target, "/"), func(p string) bool { return p == "" || p == "." })
}

type notFound struct{}

func (notFound) Error() string { return "no such file or directory" }

// errNotFound is what Lookup says of a missing name.
var errNotFound error = notFound{}

// Put stores a file under a name, making directories on the way and replacing
// what was there. A directory over a directory keeps the contents and takes
// the new attributes, as unpacking does.
func (t *Tree) Put(name string, n *Inode) error {
	parts, err := split(name)
	if err != nil {
		return err
	}
	if err := t.checkInode(name, n); err != nil {
		return err
	}
	if len(parts) == 0 {
		if n.Type() != Dir {
			return fault.Bad("the root is not a directory")
		}
		t.Root.takeAttributes(n)
		return nil
	}
	w := walker{t: t, create: true}
	stack, err := w.dir([]*Inode{t.Root}, parts[:len(parts)-1])
	if err != nil {
		return err
	}
	dir, last := stack[len(stack)-1], parts[len(parts)-1]
	if old := dir.names[last]; old != nil && n.Type() == Dir {
		// A directory that arrives where an earlier layer or member put a
		// link to one (bin -> usr/bin) means the directory behind the link.
		if old.Type() == Symlink {
			w.create = false
			if s, err := w.follow(stack, old.Target); err == nil {
				old = s[len(s)-1]
			}
		}
		if old.Type() == Dir {
			old.takeAttributes(n)
			return nil
		}
	}
	if err := t.charge(int64(len(last)+len(n.Target))+n.Data.cost(t.budget.Disk), 1); err != nil {
		return err
	}
	if n.Type() == Dir && n.names == nil {
		n.names = map[string]*Inode{}
	}
	dir.names[last] = n
	return nil
}

func (n *Inode) takeAttributes(from *Inode) {
	n.Mode, n.UID, n.GID, n.Mtime, n.Nanos = from.Mode, from.UID, from.GID, from.Mtime, from.Nanos
	n.Xattrs = from.Xattrs
}

// Enter puts a file into a directory as it is, without looking at either: for
// file systems, whose names are paths of one component.
func (n *Inode) Enter(name string, child *Inode) {
	if n.names == nil {
		n.names = map[string]*Inode{}
	}
	n.names[name] = child
}

// checkInode refuses what no root file system of ours may hold. Device nodes
// stand in /dev only, where the guest mounts its own: anywhere else they are
// a way to hide a device from whoever looks after /dev. A disk keeps all of them.
func (t *Tree) checkInode(name string, n *Inode) error {
	switch n.Type() {
	case Dir, Regular, FIFO, Socket:
	case Symlink:
		if n.Target == "" || len(n.Target) > pathMax || strings.IndexByte(n.Target, 0) >= 0 {
			return fault.Bad("%q is a damaged symbolic link", name)
		}
	case Char, Block:
		if clean := path.Clean("/" + name); !t.budget.Disk && !strings.HasPrefix(clean, "/dev/") {
			return fault.Bad("%q is a device node outside /dev", name)
		}
	default:
		return fault.Bad("%q has the unknown file type %#o", name, n.Type())
	}
	return nil
}

// MakeDir makes a directory and those above it; one that exists stays as it is.
func (t *Tree) MakeDir(name string) error {
	parts, err := split(name)
	if err != nil {
		return err
	}
	w := walker{t: t, create: true}
	_, err = w.dir([]*Inode{t.Root}, parts)
	return err
}

// Link gives an existing file a second name.
func (t *Tree) Link(name, target string) error {
	n, err := t.Lookup(target, false)
	if err != nil {
		return fault.Bad("%q is a hard link to %q: %v", name, target, err)
	}
	if n.Type() == Dir {
		return fault.Bad("%q is a hard link to the directory %q", name, target)
	}
	parts, err := split(name)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return fault.Bad("the root is not a directory")
	}
	w := walker{t: t, create: true}
	stack, err := w.dir([]*Inode{t.Root}, parts[:len(parts)-1])
	if err != nil {
		return err
	}
	if err := t.charge(int64(len(name)), 1); err != nil {
		return err
	}
	stack[len(stack)-1].names[parts[len(parts)-1]] = n
	return nil
}

// Remove takes a name and all below it away; a missing one is no error.
func (t *Tree) Remove(name string) error {
	dir, last, err := t.parent(name)
	if err == nil {
		delete(dir.names, last)
	}
	if err == errNotFound {
		return nil
	}
	return err
}

// Clear empties a directory; a missing one is no error.
func (t *Tree) Clear(name string) error {
	n, err := t.Lookup(name, true)
	if err == errNotFound || err == nil && n.Type() != Dir {
		return nil
	}
	if err != nil {
		return err
	}
	clear(n.names)
	return nil
}

func (t *Tree) parent(name string) (*Inode, string, error) {
	parts, err := split(name)
	if err != nil {
		return nil, "", err
	}
	if len(parts) == 0 {
		return nil, "", fault.Bad("%q names the root", name)
	}
	w := walker{t: t}
	stack, err := w.dir([]*Inode{t.Root}, parts[:len(parts)-1])
	if err != nil {
		return nil, "", err
	}
	return stack[len(stack)-1], parts[len(parts)-1], nil
}

// Lookup finds a file by name, through links on the way and, if follow says
// so, at the end.
func (t *Tree) Lookup(name string, follow bool) (*Inode, error) {
	parts, err := split(name)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return t.Root, nil
	}
	w := walker{t: t}
	stack := []*Inode{t.Root}
	for {
		if stack, err = w.dir(stack, parts[:len(parts)-1]); err != nil {
			return nil, err
		}
		last := parts[len(parts)-1]
		if last == ".." {
			return stack[max(0, len(stack)-2)], nil
		}
		n := stack[len(stack)-1].names[last]
		if n == nil {
			return nil, errNotFound
		}
		if n.Type() != Symlink || !follow {
			return n, nil
		}
		if w.links++; w.links > linksMax {
			return nil, fault.Bad("too many levels of symbolic links at %q", name)
		}
		if strings.HasPrefix(n.Target, "/") {
			stack = stack[:1]
		}
		if parts = linkParts(n.Target); len(parts) == 0 {
			return stack[len(stack)-1], nil
		}
	}
}

// Walk calls f for every file, a directory before what is in it, names in
// order; the root itself comes as "". The names have no leading slash.
func (t *Tree) Walk(f func(name string, n *Inode) error) error {
	return walk("", t.Root, f)
}

func walk(name string, n *Inode, f func(string, *Inode) error) error {
	if err := f(name, n); err != nil {
		return err
	}
	for _, child := range n.Names() {
		if err := walk(path.Join(name, child), n.names[child], f); err != nil {
			return err
		}
	}
	return nil
}
