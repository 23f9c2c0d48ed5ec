package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
)

// Files that are in the root only while its packages are configured.
const (
	program   = ".hardtack-configure"
	preinsts  = ".hardtack-preinsts" // what the program writes: a package and a status a line
	policy    = "usr/sbin/policy-rc.d"
	policyMsg = "#!/bin/sh\n# Services do not start while packages are configured.\nexit 101\n"
)

// ScriptsFailed are the maintainer scripts that did not end well.
type ScriptsFailed struct{ List []string }

func (e *ScriptsFailed) Error() string {
	return "maintainer scripts that failed: " + strings.Join(e.List, ", ")
}

func isScripts(err error) bool {
	failed := (*ScriptsFailed)(nil)
	return errors.As(err, &failed)
}

// configure has a machine run what dpkg runs after it has unpacked packages.
func configure(ctx context.Context, o *Options, t *rootfs.Tree, packages []unpacked) (*rootfs.Tree, error) {
	if err := database(t, packages); err != nil {
		return nil, err
	}
	w := writer{t: t}
	for _, text := range names {
		w.file(text[0], []byte(text[1]), false)
	}
	if _, err := t.Lookup("usr/bin/awk", false); err != nil && w.err == nil {
		// Scripts use awk before the alternative is made.
		w.err = t.Put("usr/bin/awk", &rootfs.Inode{Mode: rootfs.Symlink | 0o777, Target: "mawk"})
	}
	w.file(policy, []byte(policyMsg), true)
	w.file(program, []byte(steps(packages)), true)
	if w.err != nil {
		return nil, w.err
	}
	t, err := o.Run(ctx, t, "/"+program)
	if err != nil {
		return nil, err
	}
	result := results(t, packages)
	for _, name := range []string{program, preinsts, policy, "lost+found", "etc/hosts", "etc/hostname", "etc/resolv.conf"} {
		if err := t.Remove(name); err != nil {
			return nil, err
		}
	}
	for _, dir := range []string{"run", "tmp"} {
		if err := t.Clear(dir); err != nil {
			return nil, err
		}
	}
	return t, result.report(o.Log)
}

// names are what scripts ask for when they ask where they are. A machine gets its own.
var names = [][2]string{
	{"etc/hosts", "127.0.0.1\tlocalhost\n127.0.1.1\thardtack\n::1\tlocalhost ip6-localhost\n"},
	{"etc/hostname", "hardtack\n"},
}

// stepsHead begins the program. apt's settings for scripts that nobody answers, and dpkg's for
// the first script of a package (dpkg(1), ENVIRONMENT).
const stepsHead = `#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true
umask 022
cd /
preinst() {
	DPKG_MAINTSCRIPT_NAME=preinst DPKG_MAINTSCRIPT_PACKAGE=$1 DPKG_MAINTSCRIPT_ARCH=$3 \
		DPKG_MAINTSCRIPT_PACKAGE_REFCOUNT=1 DPKG_ROOT= DPKG_ADMINDIR=/var/lib/dpkg "$2" install
	echo "$1 $?" >>/` + preinsts + `
}
`

// steps is the program. The essential packages come first, since all others may use them
// (Debian Policy, 3.8); a package's preinst runs when what it pre-depends on is configured.
func steps(packages []unpacked) string {
	var records []control
	byName := map[string]*unpacked{}
	var essential, rest []string
	for i := range packages {
		p := &packages[i]
		c := p.record()
		byName[c.Package] = p
		records = append(records, c)
		rest = append(rest, c.Package)
		if c.essential {
			essential = append(essential, c.Package)
		}
	}
	g := newGraph(records)
	all := func(*control, *control) bool { return true }
	b := new(strings.Builder)
	b.WriteString(stepsHead)
	done := map[string]bool{}
	settle := func(list []*control) {
		var fresh []string
		for _, c := range list {
			if !done[c.Package] {
				done[c.Package] = true
				fresh = append(fresh, c.Package)
			}
		}
		if len(fresh) > 0 {
			fmt.Fprintf(b, "dpkg --configure %s\n", strings.Join(fresh, " "))
		}
	}
	begun := map[string]bool{}
	begin := func(c *control) {
		p := byName[c.Package]
		if _, ok := p.control["preinst"]; ok && !begun[c.Package] {
			fmt.Fprintf(b, "preinst %s /%s %s\n", c.Package, p.info("preinst"), c.arch)
		}
		begun[c.Package] = true
	}
	first := g.reach(append(slices.Clone(base[1:]), essential...), all) // base-passwd makes the accounts
	for _, c := range first {
		begin(c)
	}
	settle(first)
	for _, c := range g.reach(rest, all) {
		if before := g.meant(c.preDepends); len(before) > 0 && !begun[c.Package] {
			var needed []string
			for _, d := range before {
				needed = append(needed, d.Package)
			}
			settle(g.reach(needed, all))
		}
		begin(c)
	}
	b.WriteString("dpkg --configure -a\nexit 0\n") // how it went is in dpkg's database
	return b.String()
}

// result is how the scripts of an image ended.
type result struct{ ran, failed, not []string }

// results reads what the program and dpkg have written.
func results(t *rootfs.Tree, packages []unpacked) (r result) {
	first := map[string]string{}
	for line := range strings.Lines(readFile(t, preinsts)) {
		if words := strings.Fields(line); len(words) == 2 {
			first[words[0]] = words[1]
		}
	}
	state := states(readFile(t, dpkgDir+"status"))
	for _, p := range packages {
		for _, s := range p.control.scripts() {
			what := fmt.Sprintf("%s (%s)", p.Package, s)
			switch {
			case s == "preinst" && first[p.Package] == "", s == "postinst" && state[p.Package] == "unpacked":
				r.not = append(r.not, what)
			case s == "preinst" && first[p.Package] != "0", s == "postinst" && state[p.Package] == "half-configured":
				r.failed = append(r.failed, what)
			default:
				r.ran = append(r.ran, what)
			}
		}
	}
	return r
}

// states are those of dpkg's packages, from its file status.
func states(status string) map[string]string {
	list := map[string]string{}
	for stanza := range strings.SplitSeq(status, "\n\n") {
		name := ""
		for line := range strings.Lines(stanza) {
			if v, ok := strings.CutPrefix(line, "Package: "); ok {
				name = strings.TrimSpace(v)
			}
			if v, ok := strings.CutPrefix(line, "Status: "); ok && name != "" {
				words := strings.Fields(v)
				list[name] = words[len(words)-1]
			}
		}
	}
	return list
}

func readFile(t *rootfs.Tree, name string) string {
	n, err := t.Lookup(name, false)
	if err != nil || n.Type() != rootfs.Regular {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(n.Data.Open(), membersMax))
	if err != nil {
		return ""
	}
	return string(text)
}

// report says which scripts ran, and returns those that did not as an error.
func (r *result) report(w io.Writer) error {
	if w != nil && len(r.ran) > 0 {
		fmt.Fprintf(w, "maintainer scripts that ran: %s\n", strings.Join(r.ran, ", "))
	}
	if w != nil && len(r.not) > 0 {
		fmt.Fprintf(w, "maintainer scripts that were not run: %s\n", strings.Join(r.not, ", "))
	}
	switch {
	case len(r.failed) > 0:
		return &ScriptsFailed{r.failed}
	case len(r.not) > 0:
		return fault.With(fault.Host, "the machine ended before all maintainer scripts had run")
	}
	return nil
}
