package vfs

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/creds"
)

// Access control lists (POSIX.1e). Programs see them as the attributes aclAccess and
// aclDefault; an inode has them parsed.
const (
	aclAccess  = "system.posix_acl_access"
	aclDefault = "system.posix_acl_default" // what is made in a directory gets it
)

// aclEntry is one line of a list; who counts for named users and groups only.
type aclEntry struct {
	tag, perm uint16
	who       uint32
}

type acl []aclEntry

// aclPair is the lists of an inode, replaced as a whole under its Mu.
type aclPair struct {
	access, inherit acl
	payer           *accounts.User // who is charged, where they are in memory only
}

// aclUnread stands for lists that are on the disk and have not been looked at.
var aclUnread aclPair

// MayHaveACL is the file system's, of an inode whose attributes it has not looked at.
func (i *Inode) MayHaveACL() { i.acl.Store(&aclUnread) }

// takesACL reports whether the inode can have lists.
func (i *Inode) takesACL() bool { return i.FS.Flags&FSXattr != 0 && i.Type() != linux.S_IFLNK }

// acls returns the inode's lists, or nil.
func (i *Inode) acls() (*aclPair, linux.Errno) {
	p := i.acl.Load()
	if p != &aclUnread {
		return p, 0
	}
	x, ok := i.Node.(XattrNode)
	if !ok {
		return nil, 0
	}
	var n aclPair
	for name, list := range map[string]*acl{aclAccess: &n.access, aclDefault: &n.inherit} {
		v, e := x.Xattr(i, name)
		if e == linux.ENODATA {
			continue
		}
		if e == 0 {
			*list, e = parseACL(v)
		}
		if e != 0 {
			return nil, e
		}
	}
	i.acl.CompareAndSwap(&aclUnread, n.orNil())
	return n.orNil(), 0
}

func (p *aclPair) orNil() *aclPair {
	if p.access == nil && p.inherit == nil {
		return nil
	}
	return p
}

// parseACL reads an attribute's value, nil for a list without entries.
func parseACL(v []byte) (acl, linux.Errno) {
	le := binary.LittleEndian
	if len(v) < 4 {
		return nil, linux.EINVAL
	}
	if le.Uint32(v) != linux.POSIX_ACL_XATTR_VERSION {
		return nil, linux.EOPNOTSUPP
	}
	if v = v[4:]; len(v)%8 != 0 {
		return nil, linux.EINVAL
	}
	if len(v) == 0 {
		return nil, 0
	}
	//maxlive:len 8192 because an attribute of XATTR_SIZE_MAX bytes has no more entries
	list := make(acl, 0, len(v)/8)
	for ; len(v) > 0; v = v[8:] {
		e := aclEntry{le.Uint16(v), le.Uint16(v[2:]), le.Uint32(v[4:])}
		if !e.known() {
			return nil, linux.EINVAL
		}
		//maxlive:same because list has room for all
		list = append(list, e)
	}
	return list, 0
}

// value is the attribute's.
func (a acl) value() []byte {
	le := binary.LittleEndian
	//maxlive:len 65536 because an attribute has at most XATTR_SIZE_MAX bytes
	v := le.AppendUint32(make([]byte, 0, 4+8*len(a)), linux.POSIX_ACL_XATTR_VERSION)
	for _, x := range a {
		who := x.who
		if x.tag != linux.ACL_USER && x.tag != linux.ACL_GROUP {
			who = NoID
		}
		//maxlive:same because v has room for all
		v = le.AppendUint32(le.AppendUint16(le.AppendUint16(v, x.tag), x.perm), who)
	}
	return v
}

// known reports whether an entry is of a kind that there is, and names somebody where it
// must. What is not is refused whatever the list is for.
func (x aclEntry) known() bool {
	switch x.tag {
	case linux.ACL_USER, linux.ACL_GROUP:
		return x.who != NoID
	case linux.ACL_USER_OBJ, linux.ACL_GROUP_OBJ, linux.ACL_MASK, linux.ACL_OTHER:
		return true
	}
	return false
}

// valid reports whether the entries are complete and in their order: owner, users,
// group, groups, mask, others; with users or groups there must be a mask.
func (a acl) valid() bool {
	at, named := uint16(linux.ACL_USER_OBJ), false
	for _, x := range a {
		ok := false
		switch x.tag {
		case linux.ACL_USER_OBJ:
			ok, at = at == linux.ACL_USER_OBJ, linux.ACL_USER
		case linux.ACL_USER, linux.ACL_GROUP:
			ok, named = at == x.tag && x.who != NoID, true
		case linux.ACL_GROUP_OBJ:
			ok, at = at == linux.ACL_USER, linux.ACL_GROUP
		case linux.ACL_MASK:
			ok, at = at == linux.ACL_GROUP, linux.ACL_OTHER
		case linux.ACL_OTHER:
			ok, at = at == linux.ACL_OTHER || at == linux.ACL_GROUP && !named, 0
		}
		if !ok || x.perm > 7 {
			return false
		}
	}
	return at == 0
}

// mode is the permission bits that the list amounts to; exact: they say it all.
func (a acl) mode() (mode uint32, exact bool) {
	exact = true
	for _, x := range a {
		switch perm := uint32(x.perm & 7); x.tag {
		case linux.ACL_USER_OBJ:
			mode |= perm << 6
		case linux.ACL_GROUP_OBJ:
			mode |= perm << 3
		case linux.ACL_OTHER:
			mode |= perm
		case linux.ACL_MASK:
			mode, exact = mode&^0o070|perm<<3, false
		default:
			exact = false
		}
	}
	return mode, exact
}

// withMode is the list with other permissions for the owner, the mask or group, and
// others: those of mode (chmod), or only what mode has of them (a new file).
func (a acl) withMode(mode uint32, cut bool) acl {
	//maxlive:len 8192 because an attribute of XATTR_SIZE_MAX bytes has no more entries
	n := append(acl(nil), a...)
	group := -1
	set := func(k int, perm uint32) {
		if cut {
			n[k].perm &= uint16(perm & 7)
		} else {
			n[k].perm = uint16(perm & 7)
		}
	}
	for k, x := range n {
		switch x.tag {
		case linux.ACL_USER_OBJ:
			set(k, mode>>6)
		case linux.ACL_GROUP_OBJ:
			if group < 0 {
				group = k
			}
		case linux.ACL_MASK:
			group = k
		case linux.ACL_OTHER:
			set(k, mode)
		}
	}
	if group >= 0 {
		set(group, mode>>3)
	}
	return n
}

// allows decides an access of somebody who does not own the file.
func (a acl) allows(cred *creds.Cred, i *Inode, want Access) bool {
	mask, found := uint16(7), false
	for _, x := range a {
		if x.tag == linux.ACL_MASK {
			mask = x.perm
		}
	}
	ok := func(perm uint16) bool { return uint16(want)&^perm&7 == 0 }
	for _, x := range a {
		switch x.tag {
		case linux.ACL_USER:
			if x.who == cred.FSUID {
				return ok(x.perm & mask)
			}
		case linux.ACL_GROUP_OBJ, linux.ACL_GROUP:
			who := x.who
			if x.tag == linux.ACL_GROUP_OBJ {
				who = i.gid.Load()
			}
			if cred.InGroup(who) {
				if found = true; ok(x.perm) {
					return ok(x.perm & mask)
				}
			}
		case linux.ACL_OTHER:
			return !found && ok(x.perm)
		}
	}
	return false
}

// of returns one of the lists by the attribute's name.
func (p *aclPair) of(name string) acl {
	switch {
	case p == nil:
		return nil
	case name == aclDefault:
		return p.inherit
	}
	return p.access
}

// release gives back what the lists took.
func (p *aclPair) release() {
	if p != nil && p.payer != nil {
		xattrBytes().Release(p.payer, p.cost())
	}
}

// getACL is getxattr of a list.
func (i *Inode) getACL(name string) ([]byte, linux.Errno) {
	if !i.takesACL() {
		return nil, linux.EOPNOTSUPP
	}
	p, e := i.acls()
	if e != 0 {
		return nil, e
	}
	a := p.of(name)
	if a == nil {
		return nil, linux.ENODATA
	}
	return a.value(), 0
}

// setACL is setxattr of a list; a nil value removes it.
func (i *Inode) setACL(c *caller.Ctx, name string, value []byte) linux.Errno {
	if i.fixed() {
		return linux.EPERM
	}
	if !i.takesACL() {
		return linux.EOPNOTSUPP
	}
	var a acl
	if value != nil {
		var e linux.Errno
		if a, e = parseACL(value); e != 0 {
			return e
		}
	}
	if name == aclDefault && !i.IsDir() {
		if a != nil {
			return linux.EACCES
		}
		return 0
	}
	cred := c.Cred()
	if !IsOwner(cred, i) {
		return linux.EPERM
	}
	if a != nil && !a.valid() {
		return linux.EINVAL
	}
	i.Mu.Lock()
	defer i.Mu.Unlock()
	if name == aclAccess && a != nil {
		bits, exact := a.mode()
		if exact {
			a = nil
		}
		mode := i.Mode()&0o7000 | bits
		if !maySetGID(cred, i.GID()) {
			mode &^= linux.S_ISGID
		}
		if e := i.Node.SetAttr(c, i, &Attr{Mask: AttrMode | AttrCtime, Mode: mode, Ctime: clocks.Realtime()}); e != 0 {
			return e
		}
	}
	return i.storeACL(c.User(), name, a)
}

// storeACL replaces one of the lists; Mu is held, or nobody else has the inode.
func (i *Inode) storeACL(u *accounts.User, name string, a acl) linux.Errno {
	old, e := i.acls()
	if e != 0 {
		return e
	}
	if a == nil && old.of(name) == nil {
		return 0
	}
	if x, ok := i.Node.(XattrNode); ok {
		var v []byte
		if a != nil {
			v = a.value()
		}
		if e := x.SetXattr(i, name, v, 0); e != 0 && (a != nil || e != linux.ENODATA) {
			return e
		}
	}
	n := aclPair{access: old.of(aclAccess), inherit: old.of(aclDefault)}
	if name == aclDefault {
		n.inherit = a
	} else {
		n.access = a
	}
	if _, disk := i.Node.(XattrNode); !disk {
		if !xattrBytes().Charge(u, n.cost()) {
			return linux.ENOSPC
		}
		n.payer = u
	}
	i.acl.Store(n.orNil())
	old.release()
	if n.orNil() == nil {
		n.release()
	}
	i.Changed()
	return 0
}

// cost is what lists take of the kernel's heap.
func (p *aclPair) cost() int64 { return int64(64 + 8*(len(p.access)+len(p.inherit))) }

// dropACL gives back what the lists of an inode in memory took.
func (i *Inode) dropACL() {
	i.acl.Swap(nil).release()
}

// chmodACL makes the access list follow a change of mode; Mu is held.
func (i *Inode) chmodACL(u *accounts.User, mode uint32) linux.Errno {
	if i.acl.Load() == nil {
		return 0
	}
	p, e := i.acls()
	if e != 0 || p.of(aclAccess) == nil {
		return e
	}
	return i.storeACL(u, aclAccess, p.access.withMode(mode, false))
}

// inheritACL says what lists a new inode gets, and cuts its mode by them; without a list
// to inherit by the umask.
func (n *NewNode) inheritACL(dir *Inode, umask uint32) (*aclPair, linux.Errno) {
	kind := n.Mode & linux.S_IFMT
	if kind == linux.S_IFLNK {
		return nil, 0
	}
	if dir.acl.Load() == nil {
		n.Mode &^= umask & 0o777
		return nil, 0
	}
	p, e := dir.acls()
	if e != 0 {
		return nil, e
	}
	from := p.of(aclDefault)
	if from == nil {
		n.Mode &^= umask & 0o777
		return nil, 0
	}
	lists := &aclPair{}
	a := from.withMode(n.Mode, true)
	bits, exact := a.mode()
	n.Mode = n.Mode&^0o777 | bits
	if !exact {
		lists.access = a
	}
	if kind == linux.S_IFDIR {
		lists.inherit = from
	}
	return lists, 0
}

// setInherited stores the lists of a new inode.
func (i *Inode) setInherited(u *accounts.User, lists *aclPair) linux.Errno {
	if lists == nil {
		return 0
	}
	if lists.access != nil {
		if e := i.storeACL(u, aclAccess, lists.access); e != 0 {
			return e
		}
	}
	if lists.inherit != nil {
		return i.storeACL(u, aclDefault, lists.inherit)
	}
	return 0
}
