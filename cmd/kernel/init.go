package main

import (
	"strconv"

	"hardtack/abi/linux"
	vconsole "hardtack/driver/virtio/console"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/disk/ext4fs"
	"hardtack/kernel/fs/initramfs"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
	"hardtack/nucleus"
)

// control is the channel to the command that runs the machine.
type control = vconsole.Control

// startInit starts process 1.
func (k *kernel) startInit(config *initramfs.BootConfig, root *vfs.FSContext, _ *tmpfs.FS) {
	args := config.Args
	if v, ok := k.option("init"); ok {
		args = []string{v}
	}
	if _, ok := k.option("init"); !ok && nucleus.ClusterIndex() > 0 {
		if _, e := vfs.Lookup(k.ctx, root, nil, clusterAgent, vfs.FollowLast); e == 0 {
			args = []string{clusterAgent, "agent"}
		} else if _, disk := k.option("root"); disk {
			args = firstInit(k.ctx, root)
		} else {
			return
		}
		config.UID, config.GID, config.Groups, config.Cwd = 0, 0, nil, "/" // those are the command's
	}
	if len(args) == 0 {
		args = []string{"/init"}
		if _, ok := k.option("root"); ok {
			args = firstInit(k.ctx, root)
		}
	}
	if config.Hostname != "" {
		proc.SetHostname(config.Hostname)
	}
	cred := creds.RootCred
	if config.UID != 0 || config.GID != 0 {
		cred = creds.Cred{Bounding: creds.AllCaps}
		if config.UID == 0 {
			cred = creds.RootCred
		}
		cred.UID, cred.EUID, cred.SUID, cred.FSUID = config.UID, config.UID, config.UID, config.UID
		cred.GID, cred.EGID, cred.SGID, cred.FSGID = config.GID, config.GID, config.GID, config.GID
	}
	cred.Groups = config.Groups
	k.arrange(config, root)
	k.startServices(root)
	e := proc.Start(&proc.StartArgs{
		Reap: config.Reap,
		Path: args[0], Argv: args, Env: config.Env, Dir: config.Cwd, Cred: &cred,
		Console: k.openConsole(root), FS: root,
	})
	if e != 0 {
		k.fail("%s: %v", args[0], e)
	}
	k.serveHost(root)
	if k.control != nil {
		_ = k.control.Ready() // the host gave up if it does not hear this
	}
}

// clusterAgent starts programs for other clusters: process 1 of a cluster that has no
// other, if it is there.
const clusterAgent = "/sbin/cluster"

// firstInit is the first of the programs that Linux tries on a disk.
func firstInit(c *caller.Ctx, root *vfs.FSContext) []string {
	for _, name := range []string{"/sbin/init", "/etc/init", "/bin/init"} {
		if _, e := vfs.Lookup(c, root, nil, name, vfs.FollowLast); e == 0 {
			return []string{name}
		}
	}
	return []string{"/bin/sh"}
}

// initExited ends the machine with process 1's status.
func (k *kernel) initExited(status int32) {
	code := status >> 8 & 0xff
	if sig := status & 0x7f; sig != 0 {
		code = 128 + sig
	}
	k.shutdown(uint8(code))
}

// syncDisks leaves the disks as an unmount does.
func syncDisks() {
	vfs.SyncAll()
	ext4fs.Shutdown()
}

func (k *kernel) shutdown(code uint8) {
	syncDisks()
	k.saveCover()
	k.console.drain()
	if k.control != nil {
		if err := k.control.Exit(code); err == nil {
			k.powerOff()
		}
	}
	nucleus.Exit(int(code))
	k.powerOff()
	select {}
}

// reboot is reboot(2) for process 1's family of programs: halting and powering
// off end the machine with status 0.
func (k *kernel) reboot(cmd uint32) linux.Errno {
	const restart, halt, powerOff = 0x01234567, 0xcdef0123, 0x4321fedc
	const cadOn, cadOff = 0x89abcdef, 0
	switch cmd {
	case cadOn, cadOff:
		return 0 // there are no keys to press
	case restart:
		syncDisks()
		k.saveCover()
		k.console.drain()
		if k.control != nil {
			_ = k.control.Exit(0)
		}
		if k.power == nil { // a further cluster ends alone
			nucleus.Exit(0)
		}
		k.power.Reset()
	case halt, powerOff:
		k.shutdown(0)
	}
	return linux.EINVAL
}

// signalInit passes a signal of the host's on to process 1.
func signalInit(name string) {
	signals := map[string]linux.Signal{
		"TERM": linux.SIGTERM, "INT": linux.SIGINT, "HUP": linux.SIGHUP, "QUIT": linux.SIGQUIT,
		"USR1": linux.SIGUSR1, "USR2": linux.SIGUSR2, "KILL": linux.SIGKILL, "WINCH": linux.SIGWINCH,
	}
	s, ok := signals[name]
	if n, err := strconv.ParseUint(name, 10, 8); err == nil {
		s, ok = linux.Signal(n), linux.Signal(n).Valid()
	}
	if ok {
		if p := proc.Lookup(1); p != nil {
			p.SendSignal(s)
		}
	}
}
