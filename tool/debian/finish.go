package debian

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"hardtack/tool/rootfs"
)

// finisher does what maintainer scripts would have done.
type finisher struct {
	t    *rootfs.Tree
	time int64           // of everything made here
	has  map[string]bool // the packages in the image
}

// account is a system user with a group of the same name, as postinst scripts
// make them with adduser --system --group.
type account struct {
	name, home string
	id         uint32
}

// accounts of the packages that make one. The numbers are Debian's first ones
// for system accounts, fixed so that the image does not depend on an order.
var accounts = map[string]account{
	"redis-server":      {"redis", "/var/lib/redis", 101},
	"redis-tools":       {"redis", "/var/lib/redis", 101},
	"memcached":         {"memcache", "/nonexistent", 102},
	"postgresql-common": {"postgres", "/var/lib/postgresql", 103},
	"mariadb-server":    {"mysql", "/nonexistent", 104},
	"openssh-server":    {"sshd", "/run/sshd", 105},
	"dbus":              {"messagebus", "/nonexistent", 106},
}

// owned are directories that postinst scripts make or give away.
var owned = map[string][]struct {
	dir, user, group string
	perm             uint32
}{
	"redis-server": {
		{"/var/lib/redis", "redis", "redis", 0o750},
		{"/var/log/redis", "redis", "adm", 0o2750},
		{"/run/redis", "redis", "redis", 0o755},
	},
	"nginx-common": {
		{"/var/log/nginx", "www-data", "adm", 0o755},
		{"/var/lib/nginx", "root", "root", 0o755},
	},
}

// copies are files that postinst scripts copy from templates, if there is
// nothing yet.
var copies = map[string][][2]string{
	"base-passwd": {
		{"/usr/share/base-passwd/passwd.master", "/etc/passwd"},
		{"/usr/share/base-passwd/group.master", "/etc/group"},
	},
	"base-files": {
		{"/usr/share/base-files/profile", "/etc/profile"},
		{"/usr/share/base-files/nsswitch.conf", "/etc/nsswitch.conf"},
		{"/usr/share/base-files/networks", "/etc/networks"},
		{"/usr/share/base-files/dot.profile", "/root/.profile"},
		{"/usr/share/base-files/dot.bashrc", "/root/.bashrc"},
	},
	"nginx-common": {
		{"/usr/share/nginx/html/index.html", "/var/www/html/index.nginx-debian.html"},
	},
}

// links are symbolic links of the same kind, link and target.
var links = map[string][][2]string{
	"base-files":   {{"/var/run", "/run"}, {"/var/lock", "/run/lock"}},
	"nginx-common": {{"/etc/nginx/sites-enabled/default", "/etc/nginx/sites-available/default"}},
	"mawk":         {{"/usr/bin/awk", "mawk"}},
	"gawk":         {{"/usr/bin/awk", "gawk"}},
	"dash":         {{"/usr/bin/sh", "dash"}},
	// Debian's /bin/sh is dash, which is essential and so in nobody's
	// dependencies; without it the next best shell serves.
	"bash":           {{"/usr/bin/sh", "bash"}},
	"busybox-static": {{"/usr/bin/sh", "busybox"}},
}

// order is that of links to the same name: the first wins.
var linkOrder = []string{"base-files", "nginx-common", "mawk", "gawk", "dash", "bash", "busybox-static"}

// texts are files that nobody's scripts make. /etc/hosts, /etc/hostname and /etc/resolv.conf
// are not among them: each machine writes its own.
var texts = [][2]string{
	{"/etc/shells", "/bin/sh\n/bin/bash\n/usr/bin/bash\n"},
	{"/etc/ld.so.conf", "/usr/local/lib\n/lib/x86_64-linux-gnu\n/usr/lib/x86_64-linux-gnu\n"},
}

func (f *finisher) finish(applets bool) error {
	for _, pkg := range slices.Sorted(keys(f.has)) {
		for _, c := range copies[pkg] {
			if err := f.copy(c[0], c[1]); err != nil {
				return err
			}
		}
	}
	for _, pkg := range linkOrder {
		if !f.has[pkg] {
			continue
		}
		for _, l := range links[pkg] {
			if err := f.link(l[0], l[1]); err != nil {
				return err
			}
		}
	}
	for _, text := range texts {
		if err := f.file(text[0], []byte(text[1])); err != nil {
			return err
		}
	}
	for _, d := range []string{"dev", "proc", "sys", "run", "run/lock", "root", "home", "mnt", "opt", "srv", "var/log", "var/lib", "var/cache", "var/mail"} {
		if f.exists(d) {
			continue
		}
		if err := f.dir(d, 0, 0, 0o755); err != nil {
			return err
		}
	}
	for _, d := range []string{"tmp", "var/tmp"} {
		if err := f.dir(d, 0, 0, 0o1777); err != nil {
			return err
		}
	}
	if err := f.accounts(); err != nil {
		return err
	}
	if applets && f.has["busybox-static"] {
		return f.applets()
	}
	return nil
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (f *finisher) exists(name string) bool {
	_, err := f.t.Lookup(name, false)
	return err == nil
}

func (f *finisher) copy(from, to string) error {
	n, err := f.t.Lookup(from, true)
	if err != nil || f.exists(to) {
		return nil // another release may not have the template
	}
	return f.t.Put(to, &rootfs.Inode{Mode: rootfs.Regular | 0o644, Mtime: f.time, Data: n.Data})
}

func (f *finisher) link(name, target string) error {
	if f.exists(name) {
		return nil
	}
	return f.t.Put(name, &rootfs.Inode{Mode: rootfs.Symlink | 0o777, Mtime: f.time, Target: target})
}

func (f *finisher) file(name string, text []byte) error {
	if f.exists(name) {
		return nil
	}
	return f.t.Put(name, &rootfs.Inode{Mode: rootfs.Regular | 0o644, Mtime: f.time, Data: rootfs.Bytes(text)})
}

func (f *finisher) dir(name string, uid, gid, perm uint32) error {
	return f.t.Put(name, &rootfs.Inode{Mode: rootfs.Dir | perm, UID: uid, GID: gid, Mtime: f.time})
}

// accounts adds those of the packages and of sysusers.d to /etc/passwd and
// /etc/group, and gives their directories away.
func (f *finisher) accounts() error {
	var wanted []account
	for _, pkg := range slices.Sorted(keys(accounts)) {
		if f.has[pkg] {
			wanted = append(wanted, accounts[pkg])
		}
	}
	more, err := f.sysusers()
	if err != nil {
		return err
	}
	for _, a := range append(wanted, more...) {
		line := fmt.Sprintf("%s:x:%d:%d::%s:/usr/sbin/nologin\n", a.name, a.id, a.id, a.home)
		if err := f.addLine("/etc/passwd", a.name, line); err != nil {
			return err
		}
		if err := f.addLine("/etc/group", a.name, fmt.Sprintf("%s:x:%d:\n", a.name, a.id)); err != nil {
			return err
		}
	}
	for _, pkg := range slices.Sorted(keys(owned)) {
		if !f.has[pkg] {
			continue
		}
		for _, o := range owned[pkg] {
			u, err := f.t.ResolveUser(o.user + ":" + o.group)
			if err != nil {
				return err
			}
			if err := f.dir(o.dir, u.UID, u.GID, o.perm); err != nil {
				return err
			}
		}
	}
	return nil
}

// addLine adds an account's line to a file that does not know it.
func (f *finisher) addLine(name, who, line string) error {
	old := ""
	if n, err := f.t.Lookup(name, true); err == nil {
		text, err := io.ReadAll(n.Data.Open())
		if err != nil {
			return err
		}
		old = string(text)
	}
	if strings.HasPrefix(old, who+":") || strings.Contains(old, "\n"+who+":") {
		return nil
	}
	return f.t.Put(name, &rootfs.Inode{Mode: rootfs.Regular | 0o644, Mtime: f.time, Data: rootfs.Bytes([]byte(old + line))})
}

// firstDynamic is where accounts without a number of their own begin.
const firstDynamic = 200

// sysusers reads the "u NAME ID" lines that packages declare accounts with.
func (f *finisher) sysusers() ([]account, error) {
	const dir = "usr/lib/sysusers.d"
	d, err := f.t.Lookup(dir, true)
	if err != nil {
		return nil, nil // no package has one
	}
	var found []account
	next := uint32(firstDynamic)
	for _, name := range d.Names() {
		n := d.Child(name)
		if n.Type() != rootfs.Regular || path.Ext(name) != ".conf" {
			continue
		}
		text, err := io.ReadAll(n.Data.Open())
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			w := strings.Fields(line)
			if len(w) < 2 || w[0] != "u" && w[0] != "u!" {
				continue
			}
			a := account{name: w[1], home: "/nonexistent"}
			if id, err := strconv.ParseUint(field(w, 2), 10, 32); err == nil {
				a.id = uint32(id)
			} else {
				a.id = next
				next++
			}
			for _, v := range w[min(3, len(w)):] {
				if strings.HasPrefix(v, "/") && !strings.HasSuffix(v, "nologin") {
					a.home = v
				}
			}
			found = append(found, a)
		}
	}
	return found, nil
}

func field(w []string, i int) string {
	if i < len(w) {
		return w[i]
	}
	return ""
}
