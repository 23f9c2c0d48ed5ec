package debian

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
)

var roomy = rootfs.Budget{Bytes: 1 << 30, Entries: 1 << 20}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// dataTar makes a package's files: a name that ends in a slash is a
// directory, one with " -> " a link.
func dataTar(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(keys(files)) {
		h := &tar.Header{Name: "./" + name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(files[name]))}
		if strings.HasSuffix(name, "/") {
			h.Typeflag, h.Size = tar.TypeDir, 0
		}
		if link, target, ok := strings.Cut(name, " -> "); ok {
			h = &tar.Header{Name: "./" + link, Typeflag: tar.TypeSymlink, Linkname: target}
		}
		must(t, w.WriteHeader(h))
		if h.Size > 0 {
			_, err := io.WriteString(w, files[name])
			must(t, err)
		}
	}
	must(t, w.Close())
	return b.Bytes()
}

// pack makes a .deb around a data member.
func pack(name string, data []byte) []byte {
	var b, control bytes.Buffer
	w := tar.NewWriter(&control)
	for _, name := range []string{"./control", "./postinst"} {
		_ = w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755}) // a buffer takes all
	}
	w.Close()
	b.WriteString(arMagic)
	for _, m := range []struct {
		name string
		data []byte
	}{{"debian-binary", []byte("2.0\n")}, {"odd", []byte("odd")}, {"control.tar", control.Bytes()}, {name, data}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, 0, 0, 0, "100644", len(m.data))
		b.Write(m.data)
		if len(m.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

func compressed(t *testing.T, kind string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch kind {
	case ".xz":
		w, err = xz.NewWriter(&b)
	case ".zst":
		w, err = zstd.NewWriter(&b)
	case ".gz":
		w = gzip.NewWriter(&b)
	default:
		return data
	}
	must(t, err)
	_, err = w.Write(data)
	must(t, err)
	must(t, w.Close())
	return b.Bytes()
}

func TestUnpack(t *testing.T) {
	data := dataTar(t, map[string]string{"bin/": "", "bin/tool": "text", "usr/share/doc/tool/README": "read me", "lib/x/": ""})
	for _, kind := range []string{"", ".gz", ".xz", ".zst"} {
		file := filepath.Join(t.TempDir(), "p.deb")
		must(t, os.WriteFile(file, pack("data.tar"+kind, compressed(t, kind, data)), 0o644))
		tree := rootfs.New(roomy)
		must(t, mergedUsr(tree))
		plain, err := unpack(file)
		must(t, err)
		must(t, tree.ReadTarIf(plain, func(name string) bool { return (&Options{}).keeps(name) }))
		must(t, os.Remove(file)) // the tree must not need it any more
		n, err := tree.Lookup("usr/bin/tool", false)
		must(t, err)
		if text, _ := io.ReadAll(n.Data.Open()); string(text) != "text" {
			t.Errorf("data.tar%s: content %q", kind, text)
		}
		if _, err := tree.Lookup("usr/share/doc", false); err == nil {
			t.Errorf("data.tar%s: documentation is kept", kind)
		}
		if _, err := tree.Lookup("usr/lib/x", false); err != nil {
			t.Errorf("data.tar%s: /lib is not in /usr", kind)
		}
	}
	for name, b := range map[string][]byte{
		"text": []byte("hello"), "empty": nil, "no data": pack("other", nil),
		"cut": pack("data.tar.xz", compressed(t, ".xz", data))[:250],
	} {
		file := filepath.Join(t.TempDir(), "p.deb")
		must(t, os.WriteFile(file, b, 0o644))
		if _, err := unpack(file); fault.Status(err) != 2 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPrune(t *testing.T) {
	records := parseControl(`Package: server
Version: 5:1.0-1
Architecture: amd64
Depends: libfoo1 (>= 2) | libfoo2, adduser,
 folded, mail-transport
Pre-Depends: dpkg (>= 1.17)
SHA256: aa
Description: text
 Depends: nothing

Package: libfoo2
Version: 2
Architecture: amd64
Depends: libc6:any (>= 3)
SHA256: bb

Package: libc6
Version: 3
Architecture: amd64
SHA256: cc

Package: adduser
Version: 4
Architecture: all
Depends: libextra
SHA256: dd

Package: libextra
Version: 5
Architecture: all
SHA256: ee

Package: small-mailer
Version: 6
Architecture: amd64
Provides: mail-transport (= 1), other
SHA256: ff

Package: dpkg
Version: 7
Architecture: amd64
SHA256: 11
`)
	names := func(wanted ...string) string {
		var got []string
		for _, d := range prune(records, wanted, false) {
			got = append(got, d.Package)
		}
		return strings.Join(got, " ")
	}
	// The folded line is not read, as apt-cache does not fold: it has one
	// line a field.
	if got := names("server"); got != "libc6 libfoo2 server" {
		t.Errorf("server: %s", got)
	}
	if got := names("server=5:1.0-1", "adduser"); got != "adduser libc6 libextra libfoo2 server" {
		t.Errorf("with adduser: %s", got)
	}
	if got := names("mail-transport"); got != "small-mailer" {
		t.Errorf("by what it provides: %s", got)
	}
	if f := prune(records, []string{"server"}, false)[2]; f.File != "server_5%3a1.0-1_amd64.deb" || f.SHA256 != "aa" {
		t.Errorf("file %+v", f)
	}
}

// fakeCache makes a cache that knows a set already: no apt, no network.
func fakeCache(t *testing.T, wanted string, packages map[string]map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	var list []deb
	for _, name := range slices.Sorted(keys(packages)) {
		b := pack("data.tar.xz", compressed(t, ".xz", dataTar(t, packages[name])))
		sum := sha256.Sum256(b)
		d := deb{name, "1", name + "_1_all.deb", hex.EncodeToString(sum[:]), int64(len(b))}
		must(t, os.WriteFile(filepath.Join(dir, d.File), b, 0o644))
		list = append(list, d)
	}
	text, err := json.Marshal(list)
	must(t, err)
	c := cache{dir: dir}
	must(t, os.WriteFile(c.listName([]string{wanted}, minimal), text, 0o644))
	return dir
}

func TestBuild(t *testing.T) {
	dir := fakeCache(t, "redis-server", map[string]map[string]string{
		"base-passwd": {
			"usr/share/base-passwd/passwd.master": "root:*:0:0:root:/root:/bin/bash\nwww-data:*:33:33:www-data:/var/www:/usr/sbin/nologin\n",
			"usr/share/base-passwd/group.master":  "root:*:0:\nadm:*:4:\nwww-data:*:33:\n",
		},
		"base-files": {"usr/share/base-files/profile": "PS1=x\n", "root/": "", "lib/": "", "etc/hosts": "mine\n"},
		"redis-server": {
			"usr/bin/redis-server": "\x7fELF", "lib/systemd/system/redis.service": "unit",
			"usr/lib/sysusers.d/x.conf": "# comment\nu extra 500 \"Text\" /srv/extra\nu other -\ng group 1\n",
		},
		"bash":           {"bin/bash": "\x7fELF"},
		"busybox-static": {"bin/busybox": "\x7fELF", "bin/ls": "coreutils"},
	})
	o := Options{Packages: []string{"redis-server"}, Cache: dir, Minimal: true, Applets: true, Log: io.Discard}
	add := t.TempDir()
	must(t, os.WriteFile(filepath.Join(add, "init"), []byte("#!/bin/bash\n"), 0o755))
	o.Add = []string{add}
	build := func() []byte {
		tree, err := Build(context.Background(), o, roomy)
		must(t, err)
		for name, want := range map[string]string{
			"bin": "-> usr/bin", "bin/bash": "\x7fELF", "usr/bin/sh": "-> bash", "usr/bin/ls": "coreutils", "usr/bin/cat": "-> busybox",
			"etc/hosts": "mine\n", "etc/profile": "PS1=x\n", "init": "#!/bin/bash\n", "var/run": "-> /run",
			"etc/passwd": "root:*:0:0:root:/root:/bin/bash\nwww-data:*:33:33:www-data:/var/www:/usr/sbin/nologin\n" +
				"redis:x:101:101::/var/lib/redis:/usr/sbin/nologin\n" +
				"extra:x:500:500::/srv/extra:/usr/sbin/nologin\nother:x:200:200::/nonexistent:/usr/sbin/nologin\n",
		} {
			n, err := tree.Lookup(name, false)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			text, _ := io.ReadAll(n.Data.Open())
			if n.Type() == rootfs.Symlink {
				text = []byte("-> " + n.Target)
			}
			if string(text) != want {
				t.Errorf("%s: %q, want %q", name, text, want)
			}
		}
		if n, err := tree.Lookup("var/lib/redis", false); err != nil || n.UID != 101 || n.Perm() != 0o750 {
			t.Errorf("/var/lib/redis: %+v, %v", n, err)
		}
		if n, err := tree.Lookup("tmp", false); err != nil || n.Perm() != 0o1777 {
			t.Errorf("/tmp: %+v, %v", n, err)
		}
		if _, err := tree.Lookup("usr/lib/systemd", false); err == nil {
			t.Error("service files are kept")
		}
		var b bytes.Buffer
		must(t, tree.WriteTar(&b))
		return b.Bytes()
	}
	if !bytes.Equal(build(), build()) {
		t.Error("the same packages give different images")
	}

	// A damaged package in the cache is not used.
	must(t, os.WriteFile(filepath.Join(dir, "bash_1_all.deb"), []byte("damaged"), 0o644))
	c := cache{dir: dir}
	if c.known(c.listName(o.Packages, minimal)) != nil {
		t.Error("a damaged package is taken from the cache")
	}
}

// What dpkg would have run, and nobody does here, is told.
func TestScripts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.deb")
	must(t, os.WriteFile(file, pack("data.tar", nil), 0o644))
	m, err := membersOf(file)
	if got := m.scripts(); err != nil || !slices.Equal(got, []string{"postinst"}) {
		t.Errorf("the scripts are %v, %v", got, err)
	}
	var b strings.Builder
	notRun(&b, []unpacked{{deb: deb{Package: "redis-server"}, control: m}, {deb: deb{Package: "tor"}, control: m}, {deb: deb{Package: "zlib1g"}}})
	if want := "maintainer scripts that were not run: tor (postinst)\n"; b.String() != want {
		t.Errorf("it says %q, not %q", b.String(), want)
	}
}

func TestNames(t *testing.T) {
	for _, good := range []string{"bash", "g++", "libc6:amd64", "redis=5:7.0.15-1~deb12u1", "python3.11"} {
		if !validName(good) {
			t.Errorf("%q is refused", good)
		}
	}
	for _, bad := range []string{"", "-o", "--force", "a b", "a;b", "a/b", "$(x)", "bash-", "Bash"} {
		if validName(bad) {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestDebian makes a real image where the packages are in the cache already.
func TestDebian(t *testing.T) {
	const dir = "../../build/debs"
	c := cache{dir: dir}
	packages := []string{"redis-server", "nginx", "bash", "busybox-static", "python3-minimal"}
	if c.known(c.listName(packages, minimal)) == nil {
		t.Skip("no packages in build/debs; `make run` brings them")
	}
	tree, err := Build(context.Background(), Options{Packages: packages, Minimal: true, Cache: dir, Log: io.Discard}, roomy)
	must(t, err)
	for _, program := range []string{"redis-server", "redis-cli", "nginx", "bash", "busybox", "python3", "sh"} {
		if _, err := tree.FindProgram(program, "/", rootfs.DefaultPath); err != nil {
			t.Errorf("%s: %v", program, err)
		}
	}
	if u, err := tree.ResolveUser("www-data"); err != nil || u.UID != 33 {
		t.Errorf("www-data: %+v, %v", u, err)
	}
}

// TestConfigure plays the machine that runs the scripts.
func TestConfigure(t *testing.T) {
	p := func(name, record string, scripts ...string) unpacked {
		u := unpacked{deb: deb{Package: name, Version: "1"}, names: []string{"", "etc", "etc/" + name}, control: members{
			"control": []byte("Package: " + name + "\nVersion: 1\nArchitecture: amd64\n" + record), "conffiles": []byte("/etc/" + name + "\n"),
			"triggers": []byte("# none\ninterest-noawait /usr/lib\ninterest " + name + "\nactivate ldconfig\n")}}
		for _, s := range scripts {
			u.control[s] = []byte("#!/bin/sh\n")
		}
		return u
	}
	packages := []unpacked{
		p("server", "Pre-Depends: helper\nDepends: lib\n", "preinst", "postinst"), p("helper", "", "preinst", "postinst"),
		p("lib", "Multi-Arch: same\n", "postinst"), p("base-passwd", "Essential: yes\n", "preinst"), p("stuck", "", "postinst"),
	}
	tree := rootfs.New(roomy)
	must(t, tree.Put("etc/server", &rootfs.Inode{Mode: rootfs.Regular | 0o644, Data: rootfs.Bytes([]byte("x"))}))
	var log strings.Builder
	status := "" // of each package, what dpkg made of it
	o := Options{Log: &log, Run: func(_ context.Context, tree *rootfs.Tree, name string) (*rootfs.Tree, error) {
		_, script, _ := strings.Cut(readFile(tree, name), "}\n")
		if want := "preinst base-passwd /var/lib/dpkg/info/base-passwd.preinst amd64\ndpkg --configure base-passwd\n" +
			"preinst helper /var/lib/dpkg/info/helper.preinst amd64\ndpkg --configure helper\n" +
			"preinst server /var/lib/dpkg/info/server.preinst amd64\ndpkg --configure -a\nexit 0\n"; script != want {
			t.Errorf("the steps are %s", script)
		}
		for name, want := range map[string]string{
			"info/lib:amd64.list": "/.\n/etc\n/etc/lib\n", "triggers/server": "server\n", "info/format": "1\n",
			"triggers/File": "/usr/lib server/noawait\n/usr/lib helper/noawait\n/usr/lib lib/noawait\n/usr/lib base-passwd/noawait\n/usr/lib stuck/noawait\n",
		} {
			if got := readFile(tree, dpkgDir+name); got != want {
				t.Errorf("%s is %q", name, got)
			}
		}
		if got := readFile(tree, dpkgDir+"status"); !strings.HasPrefix(got, "Package: server\nStatus: install ok unpacked\nVersion: 1\n") ||
			!strings.Contains(got, "Conffiles:\n /etc/server 9dd4e461268c8034f5c8564e155c67a6\n\n") {
			t.Errorf("status is %s", got)
		}
		w := writer{t: tree}
		w.file(preinsts, []byte("base-passwd 0\nhelper 0\nserver 1\n"), false)
		w.file(dpkgDir+"status", []byte(status), false)
		w.file("run/left", nil, false)
		return tree, w.err
	}}
	status = "Package: base-passwd\nStatus: install ok installed\n\nPackage: helper\nStatus: install ok half-configured\n\n" +
		"Package: server\nStatus: install ok unpacked\n\nPackage: lib\nStatus: install ok installed\n\nPackage: stuck\nStatus: install ok unpacked\n"
	after, err := configure(context.Background(), &o, tree, packages)
	if err == nil || err.Error() != "maintainer scripts that failed: server (preinst), helper (postinst)" || !isScripts(err) {
		t.Errorf("the error is %v", err)
	}
	if want := "maintainer scripts that ran: helper (preinst), lib (postinst), base-passwd (preinst)\n" +
		"maintainer scripts that were not run: server (postinst), stuck (postinst)\n"; log.String() != want {
		t.Errorf("it says %s", log.String())
	}
	for _, name := range []string{program, preinsts, policy, "etc/hosts", "run/left"} {
		if _, err := after.Lookup(name, false); err == nil {
			t.Errorf("/%s is left", name)
		}
	}
}
