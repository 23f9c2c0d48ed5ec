package vfs

import (
	"encoding/binary"
	"sort"
	"strings"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
)

// xattrTable is an inode's extended attributes.
type xattrTable struct {
	mu    sync.Mutex
	attrs map[string]xattr // guarded by mu; nil when the inode has gone
	bytes int              // of all names and values; guarded by mu
}

// xattr is an attribute. Its value is never changed in place.
type xattr struct {
	value []byte
	payer *accounts.User
}

// maxXattrBytes bounds what one inode keeps in the kernel's heap.
const maxXattrBytes = 2 * linux.XATTR_SIZE_MAX

// xattrBytes is the bytes of all inodes, which users share: the kernel's heap must not
// be filled by programs.
var xattrBytes = sync.OnceValue(func() *accounts.Pool {
	return accounts.NewPool(int64(mem.Total()) * mem.PageSize / 64)
})

func xattrCost(name string, value []byte) int { return len(name) + len(value) + 64 }

// set stores an attribute instead of one that cost as much as old; mu is held.
func (t *xattrTable) set(name string, value []byte, u *accounts.User) linux.Errno {
	before := 0
	old, had := t.attrs[name]
	if had {
		before = xattrCost(name, old.value)
	}
	cost := xattrCost(name, value)
	switch {
	case t.attrs == nil: // the last name went meanwhile
		return linux.ENOENT
	case t.bytes+cost-before > maxXattrBytes || !xattrBytes().Charge(u, int64(cost)):
		return linux.ENOSPC
	}
	if had {
		xattrBytes().Release(old.payer, int64(before))
	}
	t.bytes += cost - before
	t.attrs[name] = xattr{value, u}
	return 0
}

// drop takes an attribute away; mu is held.
func (t *xattrTable) drop(name string, a xattr) {
	cost := xattrCost(name, a.value)
	xattrBytes().Release(a.payer, int64(cost))
	t.bytes -= cost
	delete(t.attrs, name)
}

// dropXattrs ends the attributes with their inode.
func (i *Inode) dropXattrs() {
	t := i.xattrs.Load()
	if t == nil {
		return
	}
	t.mu.Lock()
	for name, a := range t.attrs {
		t.drop(name, a)
	}
	t.attrs = nil
	t.mu.Unlock()
}

// checkXattr decides whether the caller may read or write attribute name. As on Linux
// the right to use the file comes before the question whether there is such a name.
func checkXattr(c *caller.Ctx, p Path, name string, write bool) linux.Errno {
	if write {
		if e := p.Writable(); e != 0 {
			return e
		}
	}
	i := p.Dentry.Inode
	space, rest, found := strings.Cut(name, ".")
	if !found {
		space = ""
	}
	if e := mayXattr(c, i, space, name, write); e != 0 {
		return e
	}
	switch {
	case i.FS.Flags&FSXattr == 0, space != "user" && space != "trusted" && space != "security":
		return linux.EOPNOTSUPP
	case rest == "":
		return linux.EINVAL
	}
	return 0
}

// mayXattr is the rule of each name space.
func mayXattr(c *caller.Ctx, i *Inode, space, name string, write bool) linux.Errno {
	cred := c.Cred()
	want, never := MayRead, linux.ENODATA
	if write {
		if i.fixed() {
			return linux.EPERM
		}
		want, never = MayWrite, linux.EPERM
	}
	switch space {
	case "system":
		return 0
	case "security":
		needs := uint(creds.CapSysAdmin)
		if name == fileCaps {
			needs = creds.CapSetfcap
		}
		if write && !cred.Has(needs) {
			return linux.EPERM
		}
		return 0
	case "trusted":
		if !cred.Has(creds.CapSysAdmin) {
			return never
		}
		return 0
	case "user":
		if t := i.Type(); t != linux.S_IFREG && t != linux.S_IFDIR {
			return never
		}
		if write && i.IsDir() && i.Mode()&linux.S_ISVTX != 0 && !IsOwner(cred, i) {
			return linux.EPERM
		}
	}
	return permission(cred, i, want)
}

// validCaps reports whether a value is capabilities of a file: revision 2 or, with the
// root user of a name space, 3.
func validCaps(v []byte) bool {
	if len(v) != 20 && len(v) != 24 {
		return false
	}
	magic := binary.LittleEndian.Uint32(v)
	return magic&^1 == 0x02000000 && len(v) == 20 || magic&^1 == 0x03000000 && len(v) == 24
}

func (i *Inode) xattrTable() *xattrTable {
	if t := i.xattrs.Load(); t != nil {
		return t
	}
	i.xattrs.CompareAndSwap(nil, &xattrTable{attrs: map[string]xattr{}})
	return i.xattrs.Load()
}

// SetXattr sets an attribute; flags are XATTR_CREATE and XATTR_REPLACE. It keeps value.
func SetXattr(c *caller.Ctx, p Path, name string, value []byte, flags uint32) linux.Errno {
	if name == fileCaps && !validCaps(value) {
		return linux.EINVAL
	}
	if name == aclAccess || name == aclDefault {
		if e := p.Writable(); e != 0 {
			return e
		}
		if len(value) == 0 {
			value = nil
		}
		return told(p, p.Dentry.Inode.setACL(c, name, value))
	}
	if e := checkXattr(c, p, name, true); e != 0 {
		return e
	}
	i := p.Dentry.Inode
	if name == fileCaps {
		defer i.caps.Store(capsUnknown)
	}
	return told(p, i.setXattr(c, name, value, flags))
}

// told tells the watches of a file of a change of its attributes that succeeded.
func told(p Path, e linux.Errno) linux.Errno {
	if e == 0 {
		notifyPath(p, linux.IN_ATTRIB)
	}
	return e
}

// setXattr stores an attribute, whoever asks.
func (i *Inode) setXattr(c *caller.Ctx, name string, value []byte, flags uint32) linux.Errno {
	if x, ok := i.Node.(XattrNode); ok {
		if value == nil {
			value = []byte{}
		}
		return x.SetXattr(i, name, value, flags)
	}
	t := i.xattrTable()
	t.mu.Lock()
	defer t.mu.Unlock()
	_, had := t.attrs[name]
	switch {
	case had && flags&linux.XATTR_CREATE != 0:
		return linux.EEXIST
	case !had && flags&linux.XATTR_REPLACE != 0:
		return linux.ENODATA
	}
	e := t.set(name, value, c.User())
	if e == 0 {
		i.Changed()
	}
	return e
}

// GetXattr returns an attribute's value, which must not be changed.
func GetXattr(c *caller.Ctx, p Path, name string) ([]byte, linux.Errno) {
	if name == aclAccess || name == aclDefault {
		return p.Dentry.Inode.getACL(name)
	}
	if e := checkXattr(c, p, name, false); e != 0 {
		return nil, e
	}
	return p.Dentry.Inode.xattr(name)
}

// xattr returns an attribute, whoever asks.
func (i *Inode) xattr(name string) ([]byte, linux.Errno) {
	if x, ok := i.Node.(XattrNode); ok {
		return x.Xattr(i, name)
	}
	t := i.xattrs.Load()
	if t == nil {
		return nil, linux.ENODATA
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if a, ok := t.attrs[name]; ok {
		return a.value, 0
	}
	return nil, linux.ENODATA
}

// ListXattr returns the names, each with a zero byte.
func ListXattr(c *caller.Ctx, p Path) ([]byte, linux.Errno) {
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
	if _, disk := p.Dentry.Inode.Node.(XattrNode); !disk {
		for _, name := range []string{aclAccess, aclDefault} {
			if p.Dentry.Inode.acl.Load().of(name) != nil {
				names = append(names, name)
			}
		}
	}
	sort.Strings(names)
	var b []byte
	for _, n := range names {
		if strings.HasPrefix(n, "trusted.") && !c.Cred().Has(creds.CapSysAdmin) {
			continue
		}
		b = append(append(b, n...), 0)
	}
	return b, 0
}

// RemoveXattr takes an attribute away.
func RemoveXattr(c *caller.Ctx, p Path, name string) linux.Errno {
	if name == aclAccess || name == aclDefault {
		if e := p.Writable(); e != 0 {
			return e
		}
		return told(p, p.Dentry.Inode.setACL(c, name, nil))
	}
	if e := checkXattr(c, p, name, true); e != 0 {
		return e
	}
	return told(p, p.Dentry.Inode.removeXattr(name))
}

// removeXattr takes an attribute away, whoever asks.
func (i *Inode) removeXattr(name string) linux.Errno {
	if x, ok := i.Node.(XattrNode); ok {
		return x.SetXattr(i, name, nil, 0)
	}
	t := i.xattrs.Load()
	if t == nil {
		return linux.ENODATA
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	old, had := t.attrs[name]
	if !had {
		return linux.ENODATA
	}
	t.drop(name, old)
	i.Changed()
	return 0
}
