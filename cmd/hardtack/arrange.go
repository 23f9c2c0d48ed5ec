package main

import (
	"fmt"
	"io"
	"net/netip"
	"path"
	"strings"

	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
)

// arrange notes what --read-only, --tmpfs, --init, --dns and --add-host want, and writes
// the guest's /etc/hosts and /etc/resolv.conf.
func (f *runFlags) arrange(tree *rootfs.Tree, b *rootfs.Boot) error {
	b.ReadOnly, b.Reap = f.readOnly, f.reap
	for _, t := range f.tmpfs {
		name, options, _ := strings.Cut(t, ":")
		if !strings.HasPrefix(name, "/") || path.Clean(name) == "/" || strings.ContainsRune(options, ':') {
			return fault.Bad("--tmpfs %q: want PATH[:OPTIONS], and the path of a folder", t)
		}
		b.Tmpfs = append(b.Tmpfs, rootfs.Tmpfs{Path: path.Clean(name), Options: options})
	}
	if f.root != "" {
		if len(f.dns)+len(f.hosts) > 0 {
			return fault.Bad("--dns and --add-host want a ROOT in memory: with --root, the files on the disk count")
		}
		return nil
	}
	if err := f.resolver(tree, b); err != nil {
		return err
	}
	return f.writeHosts(tree)
}

// resolver writes the name servers that --dns gives; otherwise the guest has its own file, or
// the kernel writes one.
func (f *runFlags) resolver(tree *rootfs.Tree, b *rootfs.Boot) error {
	if len(f.dns) == 0 {
		return nil
	}
	var text strings.Builder
	for _, s := range f.dns {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return fault.Bad("--dns %q: not an address", s)
		}
		fmt.Fprintf(&text, "nameserver %s\n", a)
	}
	if b.Net.Mode == "static" {
		b.Net.DNS = f.dns[0]
	}
	return put(tree, "etc/resolv.conf", text.String())
}

// writeHosts writes what --add-host gives, and the guest's name where it is not in the file.
// Without a file the kernel writes one, unless there is more to say.
func (f *runFlags) writeHosts(tree *rootfs.Tree) error {
	old, there, err := hostsFile(tree)
	if err != nil {
		return err
	}
	text := old
	if old == "" && (there || len(f.hosts) > 0) {
		text = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if text != "" && !hasName(text, f.hostname) {
		text += "127.0.1.1\t" + f.hostname + "\n"
	}
	for _, h := range f.hosts {
		name, addr, ok := h, "", false
		if i := strings.IndexAny(h, ":="); i >= 0 {
			name, addr, ok = h[:i], h[i+1:], true
		}
		a, err := netip.ParseAddr(strings.Trim(addr, "[]"))
		if !ok || err != nil || name == "" || strings.ContainsAny(name, " \t\n#") {
			return fault.Bad("--add-host %q: want NAME:ADDRESS", h)
		}
		text += a.String() + "\t" + name + "\n"
	}
	if text == old {
		return nil
	}
	return put(tree, "etc/hosts", text)
}

// hostsMost is the longest /etc/hosts that is added to.
const hostsMost = 1 << 20

// hostsFile is the root's /etc/hosts.
func hostsFile(tree *rootfs.Tree) (text string, there bool, err error) {
	n, err := tree.Lookup("/etc/hosts", true)
	if err != nil || n.Type() != rootfs.Regular {
		return "", false, nil // none that programs could read
	}
	b, err := io.ReadAll(io.LimitReader(n.Data.Open(), hostsMost))
	return string(b), true, err
}

// hasName reports whether a file of hosts has a name.
func hasName(text, name string) bool {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 1 {
			for _, w := range words[1:] {
				if w == name {
					return true
				}
			}
		}
	}
	return false
}

func put(tree *rootfs.Tree, name, text string) error {
	return tree.Put(name, &rootfs.Inode{Mode: rootfs.Regular | 0o644, Data: rootfs.Bytes([]byte(text))})
}
