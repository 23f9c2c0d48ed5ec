package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/ktime"
	"hardtack/kernel/base/random"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netif"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/pseudofs/procfs"
	"hardtack/live"
)

// The host saves a machine while no program runs, and starts copies from what it saved. A
// copy begins in the middle of this file: Freeze has said that programs are held, and
// what comes next is not thaw but renew.

// copies is what a kernel that may be copied knows.
type copies struct {
	mu   sync.Mutex
	root *vfs.FSContext // once process 1 runs; guarded by mu
	link *netif.Link    // nil without a network; guarded by mu
	name string         // as the boot record has it; guarded by mu
}

// freeze keeps programs from running, or lets them go on. The host's lines come in order;
// what they cause must not hold up the port.
func (k *kernel) freeze(on bool) {
	go func() {
		k.copies.mu.Lock()
		defer k.copies.mu.Unlock()
		if !on {
			proc.Release(false)
			return
		}
		proc.Hold()
		_ = k.control.Frozen() // a host that is gone ends the machine anyway
	}()
}

// renew makes a copy of a machine another one before its programs go on.
func (k *kernel) renew(seed []byte, now int64, name string, mac [6]byte) {
	go func() {
		c := &k.copies
		c.mu.Lock()
		defer c.mu.Unlock()
		proc.Hold() // it holds already, unless the host is confused
		random.Stir(seed, 8*len(seed))
		var beside sync.WaitGroup // a second processor's share
		if c.root != nil {
			beside.Go(func() {
				k.rename(c.root, c.name, name)
				k.renewMachineID(c.root)
				k.relive(c.root)
			})
		}
		stirFromProcessor()
		for _, d := range k.entropy {
			d.Request()
		}
		ktime.SetRealtime(now)
		procfs.RenewBootID()
		proc.Renewed()
		if c.link != nil {
			c.link.Renew(mac)
		}
		if inet.Default != nil {
			inet.Default.ForgetOutside()
		}
		proc.SetHostname(name)
		beside.Wait()
		c.name = name
		proc.Release(true)
		_ = k.control.Ready()
	}()
}

// relive gives the host a new way to look in: the old one is in the middle of calls of the
// host that made the first machine. Programs that were started from there lose their terminals.
func (k *kernel) relive(root *vfs.FSContext) {
	if k.live == nil {
		return
	}
	k.live.End(io.EOF)
	if k.visitors != nil {
		k.visitors.hangUp()
	}
	k.live = live.NewLink(k.livePort)
	k.feed.Store(k.live)
	k.serveHost(root)
}

// rename puts the new name in the place of the old one in /etc/hosts, if the kernel wrote
// that, and in /etc/hostname.
func (k *kernel) rename(root *vfs.FSContext, old, name string) {
	if text, ok := k.readSmall(root, "/etc/hosts"); ok && bytes.Equal(text, hostsText(old)) {
		k.rewrite(root, "/etc/hosts", hostsText(name))
	}
	if text, ok := k.readSmall(root, "/etc/hostname"); ok && string(text) == old+"\n" {
		k.rewrite(root, "/etc/hostname", []byte(name+"\n"))
	}
}

// renewMachineID writes another machine ID where the root file system has one.
func (k *kernel) renewMachineID(root *vfs.FSContext) {
	const size = 33 // 32 digits and the end of the line
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		text, ok := k.readSmall(root, path)
		if !ok || len(bytes.TrimSpace(text)) != size-1 {
			continue // none, or to be made by systemd
		}
		var id [16]byte
		random.Read(id[:])
		k.rewrite(root, path, []byte(hex.EncodeToString(id[:])+"\n"))
	}
}

// readSmall reads a file of at most some kilobytes.
func (k *kernel) readSmall(root *vfs.FSContext, path string) ([]byte, bool) {
	f, e := vfs.Open(caller.NewKernelCtx(), root, nil, path, linux.O_RDONLY|linux.O_NOFOLLOW|linux.O_NONBLOCK, 0)
	if e != 0 {
		return nil, false
	}
	defer f.Put()
	b := make([]byte, 4096)
	n, e := f.Ops.Read(caller.NewKernelCtx(), f, uio.Bytes(b), 0)
	return b[:max(n, 0)], e == 0 && n < len(b)
}

func (k *kernel) rewrite(root *vfs.FSContext, path string, text []byte) {
	f, e := vfs.Open(caller.NewKernelCtx(), root, nil, path, linux.O_WRONLY|linux.O_TRUNC|linux.O_NOFOLLOW|linux.O_NONBLOCK, 0)
	if e == 0 {
		_, e = f.Ops.Write(caller.NewKernelCtx(), f, uio.Bytes(text), 0)
		f.Put()
	}
	if e != 0 && e != linux.EROFS {
		warn("%s of the copy: %v", path, e)
	}
}

// hostsText is /etc/hosts where the root file system has none.
func hostsText(name string) []byte {
	return fmt.Appendf(nil, "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\t%s\n", name)
}
