package syscall_test

import (
	"crypto/rand"
	"io"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/devfs"
	"hardtack/kernel/kern"
	"hardtack/kernel/nsfs"
	"hardtack/kernel/pipe"
	"hardtack/kernel/posixtimer"
	"hardtack/kernel/proc"
	"hardtack/kernel/procfs"
	"hardtack/kernel/random"
	"hardtack/kernel/sock"
	"hardtack/kernel/sock/inet"
	"hardtack/kernel/sock/netlink"
	"hardtack/kernel/sock/packet"
	"hardtack/kernel/sock/procnet"
	"hardtack/kernel/sock/unix"
	"hardtack/kernel/syscall"
	"hardtack/kernel/sysfs"
	"hardtack/kernel/sysv"
	"hardtack/kernel/tmpfs"
	"hardtack/kernel/tty"
	"hardtack/kernel/vfs"
)

// plug joins the parts that scripts use, as cmd/kernel's plug board does.
var plug = sync.OnceFunc(func() {
	kern.OnSignalSelf.Set(proc.SignalSelf)
	vfs.SignalIO.Set(syscall.SignalIO)
	nsfs.Install.Set(func(c *kern.Ctx, f *vfs.File) (int32, linux.Errno) {
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
}
