package task

import (
	"bytes"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// changes tells the runtimes at once what Linux reports by itself: that a control
// group's limits or cores were written (inotify; the kernel's own changes of a
// cpuset partition are reported the same way), and that a core came or went
// (the kernel's device events, which need no privilege to hear). Where either is
// not to be had, in a container for the groups outside of it, the tick of a busy
// runtime and the next Run of an idle one find out all the same. The affinity
// mask is what nothing reports.
//
// It costs two goroutines that sleep in the poller, in a process that has a
// runtime which follows the machine.
var changes notices

type notices struct {
	once sync.Once
	mu   sync.Mutex // innermost
	busy map[*Runtime]bool
}

// join and leave are called by runtimes that have something to do.
func (n *notices) join(rt *Runtime) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.busy == nil {
		n.busy = map[*Runtime]bool{}
	}
	n.busy[rt] = true
}

func (n *notices) leave(rt *Runtime) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.busy, rt)
}

func (n *notices) has(rt *Runtime) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.busy[rt]
}

func (n *notices) tell() {
	n.mu.Lock()
	all := make([]*Runtime, 0, len(n.busy))
	for rt := range n.busy {
		all = append(all, rt)
	}
	n.mu.Unlock()
	for _, rt := range all {
		if rt.follow.Load() {
			rt.refresh()
		}
	}
}

// start begins to watch.
func (n *notices) start() {
	var others []string
	for _, dir := range cgroupDirs() {
		if f := dir + "/cpu.max"; unix.Access(f, unix.R_OK) == nil { // the root has none
			quota.files = append(quota.files, f)
		}
		others = append(others, dir+"/cpuset.cpus", dir+"/cpuset.cpus.partition")
	}
	if in, err := watchFiles(quota.files, others); err == nil {
		quota.watched = true
		quota.read()
		go heed(in, nil, func() { quota.read(); n.tell() })
	}
	if events, err := deviceEvents(); err == nil {
		go heed(events, aboutCore, n.tell)
	}
}

// heed calls do for each message that matters, until the file fails.
func heed(in *os.File, matters func([]byte) bool, do func()) {
	buf := make([]byte, 8192)
	for {
		n, err := in.Read(buf)
		if err == unix.ENOBUFS || err != nil && lostSome(err) {
			do() // more than the socket could hold: anything may have happened
			continue
		}
		if err != nil {
			return
		}
		if matters == nil || matters(buf[:n]) {
			do()
		}
	}
}

func lostSome(err error) bool {
	e, ok := err.(*os.PathError)
	return ok && e.Err == unix.ENOBUFS
}

// watchFiles gives a file that can be read when one of the files was written:
// all of must, and of may those that are there.
func watchFiles(must, may []string) (*os.File, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	for i, name := range append(append([]string(nil), must...), may...) {
		if _, err := unix.InotifyAddWatch(fd, name, unix.IN_MODIFY); err != nil && i < len(must) {
			unix.Close(fd)
			return nil, err
		}
	}
	return os.NewFile(uintptr(fd), "inotify"), nil
}

// deviceEvents gives a file whose reads are the kernel's device events (netlink,
// NETLINK_KOBJECT_UEVENT, multicast group 1).
func deviceEvents() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "device events"), nil
}

// aboutCore tells whether a device event is about a core: its first line is
// "online@/devices/system/cpu/cpu3".
func aboutCore(event []byte) bool {
	what, _, _ := bytes.Cut(event, []byte{0})
	return bytes.Contains(what, []byte("@/devices/system/cpu/cpu"))
}
