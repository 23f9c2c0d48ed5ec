package debian

import (
	"crypto/md5"
	"encoding/hex"
	"io"
	"slices"
	"strings"

	"hardtack/tool/rootfs"
)

// dpkgDir is dpkg's database.
const dpkgDir = "var/lib/dpkg/"

// database writes dpkg's: all packages are unpacked, and none is configured.
func database(t *rootfs.Tree, packages []unpacked) error {
	w := writer{t: t}
	for _, dir := range []string{"info", "updates", "triggers", "alternatives", "parts"} {
		w.dir(dpkgDir + dir)
	}
	var status, files strings.Builder
	explicit := map[string]string{}
	for i := range packages {
		p := &packages[i]
		for name, text := range p.control {
			if name != "control" {
				w.file(p.info(name), text, slices.Contains(allScripts, name))
			}
		}
		w.file(p.info("list"), p.list(), false)
		status.WriteString(p.stanza(t))
		p.interests(&files, explicit)
	}
	for name, text := range explicit {
		w.file(dpkgDir+"triggers/"+name, []byte(text), false)
	}
	w.file(dpkgDir+"triggers/File", []byte(files.String()), false)
	w.file(dpkgDir+"info/format", []byte("1\n"), false)
	w.file(dpkgDir+"status", []byte(status.String()), false)
	w.file(dpkgDir+"available", nil, false)
	return w.err
}

var allScripts = []string{"preinst", "postinst", "prerm", "postrm", "config"}

// writer keeps the first error.
type writer struct {
	t   *rootfs.Tree
	err error
}

func (w *writer) file(name string, text []byte, program bool) {
	perm := uint32(0o644)
	if program {
		perm = 0o755
	}
	if w.err == nil {
		w.err = w.t.Put(name, &rootfs.Inode{Mode: rootfs.Regular | perm, Data: rootfs.Bytes(text)})
	}
}

func (w *writer) dir(name string) {
	if w.err == nil {
		w.err = w.t.MakeDir(name)
	}
}

// record is the package's control record.
func (p *unpacked) record() control {
	if all := parseControl(string(p.control["control"])); len(all) > 0 {
		return all[0]
	}
	return control{deb: p.deb}
}

// info is the name of a file of the database about the package.
func (p *unpacked) info(name string) string {
	if c := p.record(); c.same {
		return dpkgDir + "info/" + p.Package + ":" + c.arch + "." + name
	}
	return dpkgDir + "info/" + p.Package + "." + name
}

// list names the package's files as dpkg does, those of documents that were left out, too.
func (p *unpacked) list() []byte {
	var b strings.Builder
	for _, name := range p.names {
		if name == "" {
			name = "."
		}
		b.WriteString("/" + name + "\n")
	}
	return []byte(b.String())
}

// stanza is the package's part of the file status.
func (p *unpacked) stanza(t *rootfs.Tree) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(string(p.control["control"])), "\n")
	s := first + "\nStatus: install ok unpacked\n" + rest + "\n"
	sums := ""
	for line := range strings.Lines(string(p.control["conffiles"])) {
		words := strings.Fields(line) // perhaps a flag, and the name
		if len(words) == 0 || len(words) > 1 {
			continue // none, or one that is to be removed by an upgrade
		}
		n, err := t.Lookup(words[0], true)
		if err != nil || n.Type() != rootfs.Regular {
			continue // left out
		}
		sum := md5.New()
		if _, err := io.Copy(sum, n.Data.Open()); err == nil {
			sums += " " + words[0] + " " + hex.EncodeToString(sum.Sum(nil)) + "\n"
		}
	}
	if sums != "" {
		s += "Conffiles:\n" + sums
	}
	return s + "\n"
}

// interests notes which triggers the package wants to be told of (deb-triggers(5)): paths go
// to one file, names to a file each.
func (p *unpacked) interests(files *strings.Builder, explicit map[string]string) {
	for line := range strings.Lines(string(p.control["triggers"])) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) != 2 || !strings.HasPrefix(words[0], "interest") {
			continue
		}
		who := p.Package
		if words[0] == "interest-noawait" {
			who += "/noawait"
		}
		switch trigger := words[1]; {
		case strings.HasPrefix(trigger, "/"):
			files.WriteString(trigger + " " + who + "\n")
		case !strings.Contains(trigger, "/"):
			explicit[trigger] += who + "\n"
		}
	}
}
