package rootfs

import (
	"bufio"
	"io"
	"slices"
	"strconv"
	"strings"

	"hardtack/tool/fault"
)

// User is who process 1 runs as.
type User struct {
	UID, GID uint32
	Groups   []uint32
	Home     string
}

// usersMax bounds /etc/passwd and /etc/group.
const usersMax = 16 << 20

// ResolveUser finds the meaning of "user", "uid", "user:group" or "uid:gid" in
// the tree's /etc/passwd and /etc/group. "" is the superuser.
func (t *Tree) ResolveUser(spec string) (*User, error) {
	if spec == "" {
		spec = "0"
	}
	name, group, hasGroup := strings.Cut(spec, ":")
	u := &User{Home: "/"}
	known, err := t.findPasswd(name, u)
	if err != nil {
		return nil, err
	}
	if !known {
		id, err := strconv.ParseUint(name, 10, 32)
		if err != nil {
			return nil, fault.Bad("user %q is not in the root's /etc/passwd", name)
		}
		u.UID = uint32(id)
	}
	if hasGroup {
		return u, t.resolveGroup(group, u)
	}
	u.Groups = []uint32{u.GID}
	return u, t.eachLine("/etc/group", 4, func(f []string) bool {
		gid, err := strconv.ParseUint(f[2], 10, 32)
		if err == nil && slices.Contains(strings.Split(f[3], ","), name) && !slices.Contains(u.Groups, uint32(gid)) {
			u.Groups = append(u.Groups, uint32(gid))
		}
		return true
	})
}

// findPasswd fills u from the line of a name or number.
func (t *Tree) findPasswd(name string, u *User) (known bool, err error) {
	err = t.eachLine("/etc/passwd", 6, func(f []string) bool {
		if f[0] != name && f[2] != name {
			return true
		}
		uid, err1 := strconv.ParseUint(f[2], 10, 32)
		gid, err2 := strconv.ParseUint(f[3], 10, 32)
		if err1 != nil || err2 != nil {
			return true
		}
		u.UID, u.GID, known = uint32(uid), uint32(gid), true
		if f[5] != "" {
			u.Home = f[5]
		}
		return false
	})
	return known, err
}

func (t *Tree) resolveGroup(group string, u *User) error {
	known := false
	err := t.eachLine("/etc/group", 3, func(f []string) bool {
		gid, err := strconv.ParseUint(f[2], 10, 32)
		if err != nil || f[0] != group && f[2] != group {
			return true
		}
		u.GID, known = uint32(gid), true
		return false
	})
	if err != nil {
		return err
	}
	if !known {
		id, err := strconv.ParseUint(group, 10, 32)
		if err != nil {
			return fault.Bad("group %q is not in the root's /etc/group", group)
		}
		u.GID = uint32(id)
	}
	u.Groups = []uint32{u.GID}
	return nil
}

// eachLine calls f with the fields of each line that has at least so many,
// until f says stop. A missing file has no lines.
func (t *Tree) eachLine(name string, fields int, f func([]string) bool) error {
	n, err := t.Lookup(name, true)
	if err != nil || n.Type() != Regular {
		return nil // a root without users is a usual thing
	}
	s := bufio.NewScanner(io.LimitReader(n.Data.Open(), usersMax))
	for s.Scan() {
		if parts := strings.Split(s.Text(), ":"); len(parts) >= fields && !f(parts) {
			return nil
		}
	}
	return s.Err()
}
