package osbench

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// A Tree is a small root file system: path without a leading slash → file.
type Tree map[string]File

// File is one entry of a Tree. A symbolic link's target is its Data.
type File struct {
	Mode fs.FileMode
	Data []byte
}

// Add puts a file and the directories above it into the tree.
func (t Tree) Add(name string, mode fs.FileMode, data []byte) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, ok := t[dir]; !ok {
			t[dir] = File{Mode: fs.ModeDir | 0o755}
		}
	}
	t[name] = File{Mode: mode, Data: data}
}

// Merge adds all of another tree.
func (t Tree) Merge(other Tree) {
	for name, f := range other {
		t[name] = f
	}
}

// Linux's S_IF bits, which cpio headers carry.
const (
	cpioDir  = 0o040000
	cpioFile = 0o100000
	cpioLink = 0o120000
)

// CPIO is the tree as a "newc" archive, owned by root, in the order of names,
// so that the same tree gives the same bytes.
func (t Tree) CPIO() []byte {
	var out bytes.Buffer
	pad := func() {
		for out.Len()%4 != 0 {
			out.WriteByte(0)
		}
	}
	entry := func(ino int, name string, mode uint32, data []byte) {
		fmt.Fprintf(&out, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
			ino, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0)
		out.WriteString(name)
		out.WriteByte(0)
		pad()
		out.Write(data)
		pad()
	}
	names := make([]string, 0, len(t))
	for name := range t {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		f := t[name]
		mode := uint32(f.Mode.Perm())
		switch {
		case f.Mode.IsDir():
			mode |= cpioDir
		case f.Mode&fs.ModeSymlink != 0:
			mode |= cpioLink
		default:
			mode |= cpioFile
		}
		if f.Mode&fs.ModeSticky != 0 {
			mode |= 0o1000
		}
		entry(i+1, name, mode, f.Data)
	}
	entry(0, "TRAILER!!!", 0, nil)
	return out.Bytes()
}
