package netlink

import (
	"encoding/binary"
	"fmt"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/net/sock"
)

// uevents is where device events come from, and their number.
var uevents struct {
	mu     sync.Mutex
	number uint64
	from   sock.Name // set once
}

// ueventGroup is the group that the kernel sends device events to.
const ueventGroup = 1

// Uevent tells those who listen that something happened to a device, as Linux's
// kobject_uevent does: action is "online", say, and path is that in sysfs.
func Uevent(action, path, subsystem string, more ...string) {
	u := &uevents
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.from.Load() == nil {
		a := *kernelAddr
		binary.LittleEndian.PutUint32(a.B[8:], 1<<(ueventGroup-1))
		u.from.Store(&a)
	}
	u.number++
	b := fmt.Appendf(nil, "%s@%s\x00ACTION=%s\x00DEVPATH=%s\x00SUBSYSTEM=%s\x00", action, path, action, path, subsystem)
	for _, m := range more {
		b = append(append(b, m...), 0)
	}
	b = fmt.Appendf(b, "SEQNUM=%d\x00", u.number)
	for _, s := range members(linux.NETLINK_KOBJECT_UEVENT, ueventGroup) {
		_, e := s.in.WriteMessage(uio.Bytes(b), sock.Message{Limit: int(s.Opt.RcvBuf.Load()), From: &u.from, Filter: s.Opt.Filter()})
		if e != 0 && e != sock.Filtered && !s.has(linux.NETLINK_NO_ENOBUFS) {
			s.NoteError(linux.ENOBUFS)
		}
		s.Q.Notify(wait.In | wait.RdNorm)
	}
}
