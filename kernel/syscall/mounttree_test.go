package syscall_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

// configure makes calls of fsconfig on fd and notes what they say.
func (p *prog) configure(fd uint64) {
	key, value := p.str("size"), p.str("1m")
	long := make([]byte, 300)
	for i := range long {
		long[i] = 'k'
	}
	for _, c := range []struct {
		what            string
		cmd, key, value uint64
		aux             uint64
	}{
		{"string", unix.FSCONFIG_SET_STRING, key, value, 0},
		{"string with a number", unix.FSCONFIG_SET_STRING, key, value, 1},
		{"string without a value", unix.FSCONFIG_SET_STRING, key, 0, 0},
		{"string without a key", unix.FSCONFIG_SET_STRING, 0, value, 0},
		{"long key", unix.FSCONFIG_SET_STRING, p.str(string(long)), value, 0},
		{"long value", unix.FSCONFIG_SET_STRING, key, p.str(string(long)), 0},
		{"bad value", unix.FSCONFIG_SET_STRING, key, p.str("x"), 0},
		{"mode", unix.FSCONFIG_SET_STRING, p.str("mode"), p.str("711"), 0},
		{"unknown", unix.FSCONFIG_SET_STRING, p.str("nonsense"), value, 0},
		{"source", unix.FSCONFIG_SET_STRING, p.str("source"), p.str("me"), 0},
		{"source again", unix.FSCONFIG_SET_STRING, p.str("source"), p.str("you"), 0},
		{"flag", unix.FSCONFIG_SET_FLAG, p.str("ro"), 0, 0},
		{"flag off", unix.FSCONFIG_SET_FLAG, p.str("rw"), 0, 0},
		{"flag with a value", unix.FSCONFIG_SET_FLAG, p.str("ro"), value, 0},
		{"unknown flag", unix.FSCONFIG_SET_FLAG, p.str("nonsense"), 0, 0},
		{"flag without its value", unix.FSCONFIG_SET_FLAG, key, 0, 0},
		{"binary without a length", unix.FSCONFIG_SET_BINARY, key, value, 0},
		{"binary too long", unix.FSCONFIG_SET_BINARY, key, value, 1<<20 + 1},
		{"path from nowhere", unix.FSCONFIG_SET_PATH, key, value, neg(5)},
		{"no descriptor", unix.FSCONFIG_SET_FD, key, 0, neg(1)},
		{"create with a key", unix.FSCONFIG_CMD_CREATE, key, 0, 0},
		{"unknown command", 99, 0, 0, 0},
		{"bad pointer", unix.FSCONFIG_SET_FLAG, 8, 0, 0},
	} {
		p.do(c.what, linux.SYS_fsconfig, fd, c.cmd, c.key, c.value, c.aux)
	}
}

// flagsAt notes the flags of the mount at a path.
func (p *prog) flagsAt(path string) {
	defer p.cut()()
	st := p.room(128)
	p.do("statfs "+path, linux.SYS_statfs, p.str(path), st)
	p.note("flags %#x", p.u64(st+80))
}

// mountTrees are the mount calls that work with descriptors.
func mountTrees(p *prog) {
	p.tree()
	tmpfs, empty := p.str("tmpfs"), p.str("")
	p.do("fsopen", linux.SYS_fsopen, tmpfs, 2)
	p.do("fsopen none", linux.SYS_fsopen, p.str("nothing"), 0)
	p.do("fsopen nowhere", linux.SYS_fsopen, 8, 0)
	c := p.do("fsopen", linux.SYS_fsopen, tmpfs, unix.FSOPEN_CLOEXEC)
	p.configure(c)
	p.do("write", linux.SYS_write, c, tmpfs, 1)
	p.do("fsmount early", linux.SYS_fsmount, c, 0, 0)
	p.do("reconfigure early", linux.SYS_fsconfig, c, unix.FSCONFIG_CMD_RECONFIGURE, 0, 0, 0)
	p.do("create", linux.SYS_fsconfig, c, unix.FSCONFIG_CMD_CREATE, 0, 0, 0)
	p.do("create again", linux.SYS_fsconfig, c, unix.FSCONFIG_CMD_CREATE, 0, 0, 0)
	p.do("set late", linux.SYS_fsconfig, c, unix.FSCONFIG_SET_FLAG, p.str("ro"), 0, 0)
	p.do("fsmount flags", linux.SYS_fsmount, c, 2, 0)
	p.do("fsmount attributes", linux.SYS_fsmount, c, 0, 1<<20)
	p.do("fsmount times", linux.SYS_fsmount, c, 0, unix.MOUNT_ATTR__ATIME)
	m := p.do("fsmount", linux.SYS_fsmount, c, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOATIME)
	p.do("fsmount again", linux.SYS_fsmount, c, 0, 0)
	p.do("fsmount of a file", linux.SYS_fsmount, m, 0, 0)
	p.do("fsmount of none", linux.SYS_fsmount, 99, 0, 0)
	p.ok("make a file in it", linux.SYS_openat, m, p.str("inside"), unix.O_CREAT|unix.O_WRONLY, 0o600)
	const from = unix.MOVE_MOUNT_F_EMPTY_PATH
	p.do("move flags", linux.SYS_move_mount, m, empty, at, p.str("/d"), 1<<20)
	p.do("move to none", linux.SYS_move_mount, m, empty, at, p.str("/none"), from)
	p.do("move to a file", linux.SYS_move_mount, m, empty, at, p.str("/f"), from)
	p.do("move", linux.SYS_move_mount, m, empty, at, p.str("/d"), from)
	p.do("through it", linux.SYS_access, p.str("/d/inside"), 0)
	p.flagsAt("/d")
	p.do("move into itself", linux.SYS_move_mount, m, empty, at, p.str("/d"), from)
	p.do("move what is no mount", linux.SYS_move_mount, at, p.str("/empty"), at, p.str("/d"), 0)
	p.do("move a part", linux.SYS_move_mount, at, p.str("/d/inside"), at, p.str("/f"), 0)
	p.attributes(m)
	p.picked()
	p.openTrees()
}

// attributes changes the attributes of the mount on /d.
func (p *prog) attributes(m uint64) {
	attr := func(set, clear, propagation, userns uint64) uint64 { return p.words(set, clear, propagation, userns) }
	set := func(what string, a uint64) {
		p.do(what, linux.SYS_mount_setattr, at, p.str("/d"), 0, a, 32)
		p.flagsAt("/d")
	}
	for _, size := range []uint64{0, 31, 33, 4097} {
		p.do(fmt.Sprint("size ", size), linux.SYS_mount_setattr, at, p.str("/d"), 0, attr(0, 0, 0, 0), size)
	}
	p.do("flags", linux.SYS_mount_setattr, at, p.str("/d"), 1, attr(0, 0, 0, 0), 32)
	p.do("nothing", linux.SYS_mount_setattr, at, p.str("/d"), 0, attr(0, 0, 0, 0), 32)
	p.do("no mount", linux.SYS_mount_setattr, at, p.str("/empty"), 0, attr(1, 0, 0, 0), 32)
	p.do("bad pointer", linux.SYS_mount_setattr, at, p.str("/d"), 0, 8, 32)
	p.do("by descriptor", linux.SYS_mount_setattr, m, p.str(""), unix.AT_EMPTY_PATH, attr(unix.MOUNT_ATTR_NOEXEC, 0, 0, 0), 32)
	set("read-only", attr(unix.MOUNT_ATTR_RDONLY, 0, 0, 0))
	p.do("write", linux.SYS_open, p.str("/d/new"), unix.O_CREAT|unix.O_WRONLY, 0o644)
	set("writable", attr(0, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID, 0, 0))
	set("unknown", attr(1<<40, 0, 0, 0))
	set("times without clearing", attr(unix.MOUNT_ATTR_STRICTATIME, 0, 0, 0))
	set("times", attr(unix.MOUNT_ATTR_STRICTATIME, unix.MOUNT_ATTR__ATIME, 0, 0))
	set("part of times", attr(0, unix.MOUNT_ATTR_NOATIME, 0, 0))
	set("no links", attr(unix.MOUNT_ATTR_NOSYMFOLLOW|unix.MOUNT_ATTR_NODIRATIME, 0, 0, 0))
	set("private", attr(0, 0, unix.MS_PRIVATE, 0))
	set("two kinds", attr(0, 0, unix.MS_PRIVATE|unix.MS_SLAVE, 0))
	set("mapped by none", attr(unix.MOUNT_ATTR_IDMAP, 0, 0, 99))
	set("mapped by a file", attr(unix.MOUNT_ATTR_IDMAP, 0, 0, m))
	set("map cleared", attr(0, unix.MOUNT_ATTR_IDMAP, 0, 0))
	set("recursive", attr(unix.MOUNT_ATTR_RDONLY, 0, 0, 0))
	p.do("all below", linux.SYS_mount_setattr, at, p.str("/d"), unix.AT_RECURSIVE, attr(0, unix.MOUNT_ATTR_RDONLY, 0, 0), 32)
}

// picked changes the file system on /d.
func (p *prog) picked() {
	for _, c := range []struct {
		path  string
		flags uint64
	}{{"/d", 0x100}, {"/none", 0}, {"/empty", 0}, {"", 0}, {"", unix.FSPICK_EMPTY_PATH}} {
		p.ok(fmt.Sprintf("fspick %q %#x", c.path, c.flags), linux.SYS_fspick, at, p.str(c.path), c.flags)
	}
	c := p.must(linux.SYS_fspick, at, p.str("/d"), unix.FSPICK_CLOEXEC)
	p.do("create", linux.SYS_fsconfig, c, unix.FSCONFIG_CMD_CREATE, 0, 0, 0)
	p.do("read-only", linux.SYS_fsconfig, c, unix.FSCONFIG_SET_FLAG, p.str("ro"), 0, 0)
	p.do("change", linux.SYS_fsconfig, c, unix.FSCONFIG_CMD_RECONFIGURE, 0, 0, 0)
	p.flagsAt("/d")
	p.do("writable", linux.SYS_fsconfig, c, unix.FSCONFIG_SET_FLAG, p.str("rw"), 0, 0)
	p.do("size", linux.SYS_fsconfig, c, unix.FSCONFIG_SET_STRING, p.str("size"), p.str("2m"), 0)
	p.do("change again", linux.SYS_fsconfig, c, unix.FSCONFIG_CMD_RECONFIGURE, 0, 0, 0)
	p.flagsAt("/d")
	p.do("change nothing", linux.SYS_fsconfig, c, unix.FSCONFIG_CMD_RECONFIGURE, 0, 0, 0)
	p.do("mount it", linux.SYS_fsmount, c, 0, 0)
	p.close(c)
}

// openTrees opens places and copies of the mount on /d.
func (p *prog) openTrees() {
	d, empty := p.str("/d"), p.str("")
	const clone = unix.OPEN_TREE_CLONE
	for _, c := range []struct {
		path  string
		flags uint64
	}{{"/d", 0x40}, {"/d", unix.AT_RECURSIVE}, {"/none", 0}, {"", 0}, {"/none", clone}} {
		p.do(fmt.Sprintf("open_tree %q %#x", c.path, c.flags), linux.SYS_open_tree, at, p.str(c.path), c.flags)
	}
	o := p.do("open_tree", linux.SYS_open_tree, at, d, unix.OPEN_TREE_CLOEXEC)
	p.do("read", linux.SYS_read, o, d, 1)
	p.do("its flags", linux.SYS_fcntl, o, unix.F_GETFL, 0)
	p.close(o)
	o = p.do("copy", linux.SYS_open_tree, at, d, clone|unix.AT_RECURSIVE)
	p.do("change the copy", linux.SYS_mount_setattr, o, empty, unix.AT_EMPTY_PATH, p.words(unix.MOUNT_ATTR_RDONLY, 0, 0, 0), 32)
	p.do("write through it", linux.SYS_openat, o, p.str("more"), unix.O_CREAT|unix.O_WRONLY, 0o600)
	p.do("a copy of the copy", linux.SYS_open_tree, o, empty, clone|unix.AT_EMPTY_PATH)
	p.do("place it", linux.SYS_move_mount, o, empty, at, p.str("/empty"), unix.MOVE_MOUNT_F_EMPTY_PATH)
	p.do("through it", linux.SYS_access, p.str("/empty/inside"), 0)
	p.flagsAt("/empty")
	p.do("move it", linux.SYS_move_mount, at, p.str("/empty"), at, p.str("/tmp"), 0)
	p.do("through it", linux.SYS_access, p.str("/tmp/inside"), 0)
	p.close(o)
	p.do("still there", linux.SYS_access, p.str("/tmp/inside"), 0)
	o = p.do("copy of a file", linux.SYS_open_tree, at, p.str("/tmp/inside"), clone)
	p.do("onto a directory", linux.SYS_move_mount, o, empty, at, p.str("/empty"), unix.MOVE_MOUNT_F_EMPTY_PATH)
	p.do("onto a file", linux.SYS_move_mount, o, empty, at, p.str("/f"), unix.MOVE_MOUNT_F_EMPTY_PATH)
	p.do("umount", linux.SYS_umount2, p.str("/f"), 0)
	o = p.do("loose", linux.SYS_open_tree, at, d, clone)
	p.do("umount the original", linux.SYS_umount2, d, unix.MNT_DETACH)
	p.ok("it still serves", linux.SYS_openat, o, p.str("inside"), unix.O_RDONLY, 0)
	r, w := p.pipe()
	p.do("copy of a pipe", linux.SYS_open_tree, r, empty, clone|unix.AT_EMPTY_PATH)
	p.close(r, w, o)
}
