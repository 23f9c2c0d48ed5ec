package syscall_test

import (
	"crypto/rand"
	"io"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/random"
	"hardtack/kernel/fd/pipe"
	"hardtack/kernel/fs/devfs"
	"hardtack/kernel/fs/nsfs"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netlink"
	"hardtack/kernel/net/packet"
	"hardtack/kernel/net/sock"
	"hardtack/kernel/net/unix"
	"hardtack/kernel/process/posixtimer"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/process/sysv"
	"hardtack/kernel/pseudofs/procfs"
	"hardtack/kernel/pseudofs/procnet"
	"hardtack/kernel/pseudofs/sysfs"
	"hardtack/kernel/syscall"
	"hardtack/kernel/tty"
)

// plug joins the parts that scripts use, as cmd/kernel's plug board does.
var plug = sync.OnceFunc(func() {
	caller.OnSignalSelf.Set(proc.SignalSelf)
	caller.OnKilled.Set(proc.KilledSelf)
	vfs.SignalIO.Set(syscall.SignalIO)
	nsfs.Install.Set(func(c *caller.Ctx, f *vfs.File) (int32, linux.Errno) {
		t := proc.Of(c)
		return t.FDs.Add(f, 0, t.NoFile(), true)
	})
	proc.Execed.Set(func(t *proc.Thread) { posixtimer.DeleteAll(t.Proc) })
	proc.ThreadExited.Set(func(t *proc.Thread, last bool) {
		if last {
			posixtimer.DeleteAll(t.Proc)
			sysv.SemExit(t.Proc.PID)
		}
	})
	plugFiles()
	plugSockets()
	random.Stir(make([]byte, 64), 512) // enough that nobody waits
})

func plugFiles() {
	for name, t := range map[string]vfs.FSType{
		"tmpfs": tmpfs.Type, "ramfs": tmpfs.Type, "devtmpfs": devfs.Type, "devpts": devfs.PTSType,
		"proc": procfs.Type, "sysfs": sysfs.Type,
	} {
		vfs.RegisterFS(name, t)
	}
	vfs.OpenFIFO.Set(pipe.OpenFIFO)
	for minor, open := range devfs.MemDevices {
		vfs.RegisterChar(linux.MEM_MAJOR, minor, open)
	}
	vfs.RegisterChar(linux.TTYAUX_MAJOR, 0, tty.OpenControlling)
	vfs.RegisterChar(linux.TTYAUX_MAJOR, 2, tty.OpenMaster)
	vfs.RegisterCharMajor(linux.UNIX98_PTY_SLAVE, tty.OpenSlave)
	procfs.Init()
	procnet.Init()
}

func plugSockets() {
	sock.Register(linux.AF_UNIX, unix.Create, unix.Pair)
	sock.Register(linux.AF_NETLINK, netlink.Create, nil)
	sock.Register(linux.AF_PACKET, packet.Create, nil)
	n := inet.Init(inet.Config{Rand: rand.Reader, Log: io.Discard, MaxTCPBuffer: 4 << 20, MaxQueued: 64 << 20})
	sock.Register(linux.AF_INET, n.Socket, nil)
	sock.Register(linux.AF_INET6, n.Socket, nil)
	sock.DeviceIoctl.Set(n.DeviceIoctl)
	sock.DeviceIndex.Set(n.DeviceIndex)
	sock.DeviceName.Set(n.DeviceName)
}
