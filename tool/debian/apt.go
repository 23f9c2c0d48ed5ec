package debian

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"hardtack/tool/fault"
)

// deb is one package to unpack.
type deb struct {
	Package string
	Version string
	File    string // in the cache
	SHA256  string
	Size    int64 // of the file; 0 in lists of older versions
}

// cache is a directory of downloaded packages. For each set of packages asked
// for it also holds the list they resolved to, so that a second image needs
// neither apt nor a network.
type cache struct {
	dir      string
	log      io.Writer
	progress Progress
}

// Progress is told how much of some work is done.
type Progress func(work string, done, total int64)

// The works.
const (
	downloading = "downloading"
	unpacking   = "unpacking"
)

func (p Progress) tell(work string, done, total int64) {
	if p != nil && total > 0 {
		p(work, done, total)
	}
}

func (c *cache) path(file string) string { return filepath.Join(c.dir, file) }

// listName is the file of a set's list.
func (c *cache) listName(packages []string, k kind) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(packages)))
	sum := sha256.Sum256([]byte(strings.Join(sorted, " ") + k.suffix()))
	return c.path("set-" + hex.EncodeToString(sum[:8]) + ".json")
}

// kind is how much an image has beside the packages that are asked for.
type kind int

const (
	minimal  kind = iota // nothing that only maintainer scripts need
	standard             // the essential packages
	whole                // and all that maintainer scripts need, for those that are run
)

// suffix tells the lists of one set by their kinds.
func (k kind) suffix() string { return []string{"", " essential", " whole"}[k] }

// fetch resolves packages and has all files of the result in the cache.
func (c *cache) fetch(ctx context.Context, packages []string, k kind, refresh bool) ([]deb, error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, err
	}
	list := c.listName(packages, k)
	if !refresh {
		if debs := c.known(list); debs != nil {
			return debs, nil
		}
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, fault.With(fault.Host, "apt-get is missing: this needs Debian or a similar system")
	}
	chosen, err := c.resolve(ctx, packages, k)
	if err != nil {
		return nil, err
	}
	if err := c.download(ctx, chosen); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(chosen, "", "  ")
	if err != nil {
		return nil, err
	}
	return chosen, os.WriteFile(list, append(text, '\n'), 0o644)
}

// known is the list of an earlier run, if all of its files are still good.
func (c *cache) known(list string) []deb {
	text, err := os.ReadFile(list)
	if err != nil {
		return nil
	}
	var debs []deb
	if json.Unmarshal(text, &debs) != nil {
		return nil
	}
	for _, d := range debs {
		if filepath.Base(d.File) != d.File || !c.has(d) {
			return nil
		}
	}
	return debs
}

// has says whether a package's file is in the cache and undamaged.
func (c *cache) has(d deb) bool {
	f, err := os.Open(c.path(d.File))
	if err != nil {
		return false
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return err == nil && hex.EncodeToString(sum.Sum(nil)) == d.SHA256
}

// resolve has apt solve the dependencies on a system that has nothing, and
// leaves out of the answer what only maintainer scripts need.
func (c *cache) resolve(ctx context.Context, packages []string, k kind) ([]deb, error) {
	tmp, err := os.MkdirTemp("", "hardtack-apt-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	status := filepath.Join(tmp, "status")
	if err := os.WriteFile(status, nil, 0o644); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(tmp, "archives", "partial"), 0o755); err != nil {
		return nil, err
	}
	options := []string{
		"-o", "Dir::State::status=" + status,
		"-o", "Dir::Cache::archives=" + filepath.Join(tmp, "archives"),
		"-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=",
		"-o", "Debug::NoLocking=1", "-o", "APT::Architecture=amd64", "-o", "APT::Architectures=amd64",
	}
	wanted := append(slices.Clone(base), packages...)
	install := []string{"-qq", "-y", "--no-install-recommends", "--print-uris", "install"}
	if k != minimal {
		// The second is what apt would choose last, but the image has /bin in /usr, and
		// what it would choose first brings Perl.
		install = append(install, "?essential", "usr-is-merged")
	}
	out, err := c.apt(ctx, tmp, "apt-get", slices.Concat(options, install, wanted)...)
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(out) {
		// 'URI' name_version_arch.deb size hash
		if f := strings.Fields(line); len(f) >= 3 && strings.HasPrefix(f[0], "'") {
			if part := strings.Split(f[1], "_"); len(part) == 3 {
				names = append(names, part[0]+"="+strings.ReplaceAll(part[1], "%3a", ":"))
			}
		}
	}
	if len(names) == 0 {
		return nil, fault.Bad("apt finds nothing to install for %s", strings.Join(packages, " "))
	}
	out, err = c.apt(ctx, tmp, "apt-cache", slices.Concat(options, []string{"show"}, names)...)
	if err != nil {
		return nil, err
	}
	all := parseControl(out)
	if k != minimal {
		for _, p := range all {
			if p.essential {
				wanted = append(wanted, p.Package)
			}
		}
	}
	return prune(all, wanted, k == whole), nil
}

// download brings what the cache does not have. apt compares each file with
// the signed lists.
func (c *cache) download(ctx context.Context, debs []deb) error {
	var missing []string
	var files []string
	var total int64
	for _, d := range debs {
		if !c.has(d) {
			total += d.Size
			missing = append(missing, d.Package+"="+d.Version)
			files = append(files, d.File)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintf(c.log, "downloading %d packages\n", len(missing))
	tmp, err := os.MkdirTemp("", "hardtack-download-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := c.bring(ctx, tmp, missing, total); err != nil {
		return err
	}
	for _, file := range files {
		if err := move(filepath.Join(tmp, file), c.path(file)); err != nil {
			return err
		}
	}
	for _, d := range debs {
		if !c.has(d) {
			return fault.With(fault.Host, "%s is not what apt's lists say", d.File)
		}
	}
	return nil
}

// bring has apt download packages to a directory, and tells of the progress that it reports.
func (c *cache) bring(ctx context.Context, dir string, packages []string, total int64) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		for s := bufio.NewScanner(r); s.Scan(); { // dlstatus:FILE:PERCENT:TEXT
			f := strings.SplitN(s.Text(), ":", 4)
			if percent, err := strconv.ParseFloat(f[min(2, len(f)-1)], 64); err == nil && f[0] == "dlstatus" {
				c.progress.tell(downloading, int64(percent/100*float64(total)), total)
			}
		}
		_, _ = io.Copy(io.Discard, r) // of a line that is too long
		r.Close()
	}()
	c.progress.tell(downloading, 0, total)
	_, err = c.aptTelling(ctx, dir, w, "apt-get", append([]string{"-qq", "-o", "APT::Status-Fd=3", "-o", "APT::Sandbox::User=root", "download"}, packages...)...)
	w.Close()
	<-told
	if err == nil {
		c.progress.tell(downloading, total, total)
	}
	return err
}

// move renames a file, or copies it where it comes from another file system.
// A copy that is cut off does not have the package's digest.
func move(from, to string) error {
	if os.Rename(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// apt runs one of apt's programs and makes one line of what it complains of.
func (c *cache) apt(ctx context.Context, dir, program string, args ...string) (string, error) {
	return c.aptTelling(ctx, dir, nil, program, args...)
}

// aptTelling is apt with a file that the program has as descriptor 3.
func (c *cache) aptTelling(ctx context.Context, dir string, status *os.File, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	if status != nil {
		cmd.ExtraFiles = []*os.File{status}
	}
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if err == nil {
		return out.String(), nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return "", err
	}
	text := complaint.String()
	for line := range strings.Lines(text) {
		e, ok := strings.CutPrefix(strings.TrimSpace(line), "E: ")
		if !ok {
			continue
		}
		if strings.HasPrefix(e, "Unable to locate package") || strings.Contains(e, "was not found") ||
			strings.Contains(e, "has no installation candidate") {
			return "", fault.Bad("%s (is `apt-get update` due?)", e)
		}
		return "", fault.With(fault.Host, "%s: %s", program, e)
	}
	return "", fault.With(fault.Host, "%s: %v", program, err)
}

// control is what we need of a package's control record.
type control struct {
	deb
	depends    []string // clauses, each of alternatives
	preDepends []string // of these, those that its preinst needs
	provides   []string
	essential  bool
	arch       string
	same       bool // Multi-Arch: it may be there for several architectures
}

// parseControl reads the records that `apt-cache show` prints.
func parseControl(text string) []control {
	var all []control
	for record := range strings.SplitSeq(text, "\n\n") {
		var c control
		s := bufio.NewScanner(strings.NewReader(record))
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			key, value, ok := strings.Cut(s.Text(), ": ")
			if !ok || strings.HasPrefix(key, " ") {
				continue
			}
			switch key {
			case "Package":
				c.Package = value
			case "Version":
				c.Version = value
			case "SHA256":
				c.SHA256 = value
			case "Size":
				c.Size, _ = strconv.ParseInt(value, 10, 64) // for the progress only
			case "Architecture":
				c.arch = value
			case "Depends":
				c.depends = append(c.depends, strings.Split(value, ",")...)
			case "Pre-Depends":
				c.preDepends = strings.Split(value, ",")
				c.depends = append(c.depends, c.preDepends...)
			case "Essential":
				c.essential = value == "yes"
			case "Multi-Arch":
				c.same = value == "same"
			case "Provides":
				for p := range strings.SplitSeq(value, ",") {
					c.provides = append(c.provides, packageName(p))
				}
			}
		}
		if c.Package != "" && c.Version != "" {
			c.File = c.Package + "_" + strings.ReplaceAll(c.Version, ":", "%3a") + "_" + c.arch + ".deb"
			all = append(all, c)
		}
	}
	return all
}

// packageName is the name in "name:arch (>= version)".
func packageName(s string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	name, _, _ = strings.Cut(name, ":")
	name, _, _ = strings.Cut(name, "=")
	return name
}

// scriptOnly are packages that others depend on for their maintainer scripts
// and start scripts only. No script is run, so they stay out unless asked for.
var scriptOnly = map[string]bool{
	"adduser": true, "debconf": true, "debianutils": true, "dpkg": true, "gcc-12-base": true, "init-system-helpers": true,
	"install-info": true, "libdebconfclient0": true, "lsb-base": true, "mawk": true, "passwd": true,
	"perl-base": true, "perl": true, "sensible-utils": true, "sysvinit-utils": true, "ucf": true,
	"usrmerge": true, "usr-is-merged": true,
}

// scriptUse are dependencies of the same kind on packages that other programs
// may want in earnest.
var scriptUse = map[[2]string]bool{
	{"nginx", "iproute2"}:        true, // its postinst asks who has port 80
	{"nginx-common", "iproute2"}: true,
}

// prune keeps what is reached from the wanted packages, of the alternatives
// the first that apt has chosen. What only scripts need stays if they are run.
func prune(all []control, wanted []string, scripts bool) []deb {
	g := newGraph(all)
	kept := []deb{}
	for _, c := range g.reach(wanted, func(from, to *control) bool {
		return scripts || !scriptOnly[to.Package] && !scriptUse[[2]string{from.Package, to.Package}]
	}) {
		kept = append(kept, c.deb)
	}
	slices.SortFunc(kept, func(a, b deb) int { return strings.Compare(a.Package, b.Package) })
	return kept
}

// graph is who depends on whom.
type graph map[string]*control // by the names of packages, and by what they provide

func newGraph(all []control) graph {
	g := graph{}
	for i := range all {
		for _, p := range all[i].provides {
			if g[p] == nil {
				g[p] = &all[i]
			}
		}
	}
	for i := range all {
		g[all[i].Package] = &all[i]
	}
	return g
}

// meant are the packages that clauses of alternatives lead to.
func (g graph) meant(clauses []string) (list []*control) {
	for _, clause := range clauses {
		for alternative := range strings.SplitSeq(clause, "|") {
			if d := g[packageName(alternative)]; d != nil {
				list = append(list, d)
				break
			}
		}
	}
	return list
}

// reach are packages and all that they depend on, where follow agrees: what is needed before
// those who need it, but in circles.
func (g graph) reach(names []string, follow func(from, to *control) bool) (list []*control) {
	reached := map[*control]bool{}
	var visit func(*control)
	visit = func(c *control) {
		if reached[c] {
			return
		}
		reached[c] = true
		for _, d := range g.meant(c.depends) {
			if follow(c, d) {
				visit(d)
			}
		}
		list = append(list, c)
	}
	for _, name := range names {
		if c := g[packageName(name)]; c != nil {
			visit(c)
		}
	}
	return list
}
