package procfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/nsfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// nsDir is /proc/PID/ns.
var nsDir = &entry{name: "ns", mode: 0o511, kids: nsLinks()}

func nsLinks() (links []*entry) {
	for _, l := range []struct {
		name string
		n    *nsfs.Namespace
	}{{"net", nsfs.Net}, {"uts", nsfs.UTS}, {"ipc", nsfs.IPC}, {"pid", nsfs.PID}, {"pid_for_children", nsfs.PID}, {"user", nsfs.User},
		{"mnt", nsfs.Mount}, {"cgroup", nsfs.Cgroup}, {"time", nsfs.Time}, {"time_for_children", nsfs.Time}} {
		links = append(links, &entry{name: l.name, mode: 0o777,
			link: func(x *about) (string, linux.Errno) {
				if e := x.mayEnter(l.name); e != 0 {
					return "", e
				}
				return l.n.String(), 0
			},
			jump: func(x *about) (vfs.Path, linux.Errno) {
				if e := x.mayEnter(l.name); e != 0 {
					return vfs.Path{}, e
				}
				return l.n.Path(), 0
			}})
	}
	return links
}

// mayEnter reports whether the asker sees a namespace of the process, which keeps only
// those of its number and its user to its end.
func (x *about) mayEnter(name string) linux.Errno {
	switch {
	case !x.mayLook(nil):
		return linux.EACCES
	case name != "pid" && name != "user" && x.thread().State() >= proc.StateZombie:
		return linux.ENOENT
	}
	return 0
}

// readTimeOffsets is timens_offsets: all clocks are those of the one time namespace.
func readTimeOffsets(*about) ([]byte, linux.Errno) {
	return []byte("monotonic           0         0\nboottime            0         0\n"), 0
}

// writeTimeOffsets refuses: the offsets of a namespace are fixed once somebody is in it.
func writeTimeOffsets(x *about, _ []byte) linux.Errno {
	if !x.c.Cred().Has(creds.CapSysTime) {
		return linux.EPERM
	}
	return linux.EACCES
}

// attrDir is /proc/PID/attr. No security module answers.
var attrDir = &entry{name: "attr", mode: 0o555, kids: []*entry{
	{name: "current", mode: 0o666, read: noAttr, write: setAttr},
	{name: "prev", mode: 0o444, read: noAttr, write: setAttr},
	{name: "exec", mode: 0o666, read: noAttr, write: setAttr},
	{name: "fscreate", mode: 0o666, read: noAttr, write: setAttr},
	{name: "keycreate", mode: 0o666, read: noAttr, write: setAttr},
	{name: "sockcreate", mode: 0o666, read: noAttr, write: setAttr},
}}

func noAttr(*about) ([]byte, linux.Errno) { return nil, linux.EINVAL }

func setAttr(x *about, _ []byte) linux.Errno {
	switch {
	case x.process().PID != x.c.PID:
		return linux.EPERM
	case x.thread().TID != x.c.TID:
		return linux.EACCES
	}
	return linux.EINVAL
}
