package vfs

import (
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/mem"
)

// xattrTable is an inode's extended attributes.
type xattrTable struct {
	mu    sync.Mutex
	attrs map[string][]byte // guarded by mu; values are never changed in place
	bytes int               // of all names and values; guarded by mu
}

// maxXattrBytes bounds what one inode keeps in the kernel's heap.
const maxXattrBytes = 2 * linux.XATTR_SIZE_MAX

// xattrBytes counts the bytes of all inodes: the kernel's heap must not be
// filled by programs, so all together get a 64th of memory.
var xattrBytes atomic.Int64

func chargeXattr(n int) bool {
	if xattrBytes.Add(int64(n)) > int64(mem.Total())*mem.PageSize/64 && n > 0 {
		xattrBytes.Add(-int64(n))
		return false
	}
	return true
}

// dropXattrs ends the attributes with their inode.
func (i *Inode) dropXattrs() {
	t := i.xattrs.Load()
	if t == nil {
		return
	}
	t.mu.Lock()
	chargeXattr(-t.bytes)
	t.bytes, t.attrs = 0, nil
	t.mu.Unlock()
}

// checkXattr decides whether the caller may read or write attribute name.
func checkXattr(c *kern.Ctx, p Path, name string, write bool) linux.Errno {
	i := p.Dentry.Inode
	if i.FS.Flags&FSXattr == 0 {
		return linux.EOPNOTSUPP
	}
	if write {
		if e := p.writable(); e != 0 {
			return e
		}
	}
	space, rest, found := strings.Cut(name, ".")
	if !found || rest == "" {
		return linux.EOPNOTSUPP
	}
	want := MayRead
	if write {
		want = MayWrite
	}
	switch space {
	case "user":
		if t := i.Type(); t != linux.S_IFREG && t != linux.S_IFDIR {
			if write {
				return linux.EPERM
			}
			return linux.ENODATA
		}
		if write && i.IsDir() && i.Mode()&linux.S_ISVTX != 0 && !isOwner(c.Cred(), i) {
			return linux.EPERM
		}
		return permission(c.Cred(), i, want)
	case "trusted":
		if !c.Cred().Has(kern.CapSysAdmin) {
			if write {
				return linux.EPERM
			}
			return linux.ENODATA
		}
		return 0
	case "security":
		if write && !c.Cred().Has(kern.CapSysAdmin) {
			return linux.EPERM
		}
		return 0
	}
	return linux.EOPNOTSUPP
}

func (i *Inode) xattrTable() *xattrTable {
	if t := i.xattrs.Load(); t != nil {
		return t
	}
	i.xattrs.CompareAndSwap(nil, &xattrTable{attrs: map[string][]byte{}})
	return i.xattrs.Load()
}

// SetXattr sets an attribute; flags are XATTR_CREATE and XATTR_REPLACE. It keeps value.
func SetXattr(c *kern.Ctx, p Path, name string, value []byte, flags uint32) linux.Errno {
	if e := checkXattr(c, p, name, true); e != 0 {
		return e
	}
	if x, ok := p.Dentry.Inode.Node.(XattrNode); ok {
		if value == nil {
			value = []byte{}
		}
		return x.SetXattr(p.Dentry.Inode, name, value, flags)
	}
	t := p.Dentry.Inode.xattrTable()
	t.mu.Lock()
	defer t.mu.Unlock()
	old, had := t.attrs[name]
	switch {
	case had && flags&linux.XATTR_CREATE != 0:
		return linux.EEXIST
	case !had && flags&linux.XATTR_REPLACE != 0:
		return linux.ENODATA
	}
	n := t.bytes + len(value) - len(old)
	if !had {
		n += len(name) + 64
	}
	if n > maxXattrBytes {
		return linux.ENOSPC
	}
	if t.attrs == nil { // the last name went meanwhile
		return linux.ENOENT
	}
	if !chargeXattr(n - t.bytes) {
		return linux.ENOSPC
	}
	t.bytes = n
	t.attrs[name] = value
	p.Dentry.Inode.Changed()
	return 0
}

// GetXattr returns an attribute's value, which must not be changed.
func GetXattr(c *kern.Ctx, p Path, name string) ([]byte, linux.Errno) {
	if e := checkXattr(c, p, name, false); e != 0 {
		return nil, e
	}
	if x, ok := p.Dentry.Inode.Node.(XattrNode); ok {
		return x.Xattr(p.Dentry.Inode, name)
	}
	t := p.Dentry.Inode.xattrs.Load()
	if t == nil {
		return nil, linux.ENODATA
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if v, ok := t.attrs[name]; ok {
		return v, 0
	}
	return nil, linux.ENODATA
}

// ListXattr returns the names, each with a zero byte.
func ListXattr(c *kern.Ctx, p Path) ([]byte, linux.Errno) {
	var names []string
	if x, ok := p.Dentry.Inode.Node.(XattrNode); ok {
		var e linux.Errno
		if names, e = x.Xattrs(p.Dentry.Inode); e != 0 {
			return nil, e
		}
	} else if t := p.Dentry.Inode.xattrs.Load(); t != nil {
		t.mu.Lock()
		for n := range t.attrs {
			names = append(names, n)
		}
		t.mu.Unlock()
	}
	sort.Strings(names)
	var b []byte
	for _, n := range names {
		if strings.HasPrefix(n, "trusted.") && !c.Cred().Has(kern.CapSysAdmin) {
			continue
		}
		b = append(append(b, n...), 0)
	}
	return b, 0
}

// RemoveXattr takes an attribute away.
func RemoveXattr(c *kern.Ctx, p Path, name string) linux.Errno {
	if e := checkXattr(c, p, name, true); e != 0 {
		return e
	}
	if x, ok := p.Dentry.Inode.Node.(XattrNode); ok {
		return x.SetXattr(p.Dentry.Inode, name, nil, 0)
	}
	t := p.Dentry.Inode.xattrTable()
	t.mu.Lock()
	defer t.mu.Unlock()
	old, had := t.attrs[name]
	if !had {
		return linux.ENODATA
	}
	delete(t.attrs, name)
	n := len(old) + len(name) + 64
	t.bytes -= n
	chargeXattr(-n)
	p.Dentry.Inode.Changed()
	return 0
}
