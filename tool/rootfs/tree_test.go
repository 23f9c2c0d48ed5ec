package rootfs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"hardtack/tool/fault"
)

func status(err error) int { return fault.Status(err) }

// tarOf makes a tar of headers; a regular file's content is its Linkname.
func tarOf(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		text := ""
		if h.Typeflag == tar.TypeReg {
			text, h.Linkname = h.Linkname, ""
			h.Size = int64(len(text))
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBadMembers(t *testing.T) {
	many := make([]tar.Header, 100)
	for i := range many {
		many[i] = tar.Header{Name: strings.Repeat("d/", i+1), Typeflag: tar.TypeDir}
	}
	for name, c := range map[string]struct {
		headers []tar.Header
		budget  Budget
		want    string
	}{
		"escape":        {headers: []tar.Header{{Name: "../../etc/passwd", Typeflag: tar.TypeReg, Linkname: "x"}}, want: "leads out of the root"},
		"escape inside": {headers: []tar.Header{{Name: "a/../../b", Typeflag: tar.TypeReg}}, want: "leads out of the root"},
		"link escape":   {headers: []tar.Header{{Name: "x", Typeflag: tar.TypeLink, Linkname: "../../etc/passwd"}}, want: "leads out of the root"},
		"device":        {headers: []tar.Header{{Name: "home/sda", Typeflag: tar.TypeBlock, Devmajor: 8}}, want: "device node outside /dev"},
		"device by dots": {headers: []tar.Header{{Name: "dev/../home/sda", Typeflag: tar.TypeBlock, Devmajor: 8}},
			want: "leads out of the root"},
		"missing target": {headers: []tar.Header{{Name: "x", Typeflag: tar.TypeLink, Linkname: "y"}}, want: "hard link"},
		"link to dir":    {headers: []tar.Header{{Name: "d", Typeflag: tar.TypeDir}, {Name: "x", Typeflag: tar.TypeLink, Linkname: "d"}}, want: "hard link to the directory"},
		"loop": {headers: []tar.Header{{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "b"}, {Name: "b", Typeflag: tar.TypeSymlink, Linkname: "a"},
			{Name: "a/x", Typeflag: tar.TypeReg}}, want: "too many levels"},
		"file as directory": {headers: []tar.Header{{Name: "a", Typeflag: tar.TypeReg}, {Name: "a/b", Typeflag: tar.TypeReg}}, want: "not a directory"},
		"too many":          {headers: many, budget: Budget{Bytes: 1 << 20, Entries: 50}, want: "more files"},
		"too large":         {headers: []tar.Header{{Name: "a", Typeflag: tar.TypeReg, Linkname: strings.Repeat("x", 5000)}}, budget: Budget{Bytes: 4000, Entries: 50}, want: "does not fit"},
		"long component":    {headers: []tar.Header{{Name: strings.Repeat("x", 256), Typeflag: tar.TypeReg}}, want: "longer than"},
		"root as file":      {headers: []tar.Header{{Name: ".", Typeflag: tar.TypeReg}}, want: "root is not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			b := c.budget
			if b == (Budget{}) {
				b = roomy
			}
			err := New(b).ReadTar(section(tarOf(t, c.headers...)))
			if err == nil || !strings.Contains(err.Error(), c.want) || status(err) != 2 {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestLinksStayInside follows links that lead upwards: they end at the root.
func TestLinksStayInside(t *testing.T) {
	tree := New(roomy)
	b := tarOf(t,
		tar.Header{Name: "up", Typeflag: tar.TypeSymlink, Linkname: "../../../../etc"},
		tar.Header{Name: "bin", Typeflag: tar.TypeSymlink, Linkname: "usr/bin"},
		tar.Header{Name: "usr/bin/", Typeflag: tar.TypeDir},
		tar.Header{Name: "up/x", Typeflag: tar.TypeReg, Linkname: "inside"},
		tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o711},
		tar.Header{Name: "bin/sh", Typeflag: tar.TypeReg, Linkname: "shell"})
	// "up" leads to a directory that does not exist yet: it is made inside.
	if err := tree.ReadTar(section(b)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etc/x", "usr/bin/sh", "bin/sh"} {
		if _, err := tree.Lookup(name, true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, _ := tree.Lookup("usr/bin", false); n.Perm() != 0o711 {
		t.Errorf("the directory over a link did not reach the directory behind it: %o", n.Perm())
	}
	if n, _ := tree.Lookup("bin", false); n.Type() != Symlink {
		t.Error("the link is gone")
	}
}

func TestLayers(t *testing.T) {
	tree := New(roomy)
	reg := func(name, text string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Linkname: text}
	}
	layers := [][]byte{
		tarOf(t, reg("a/one", "1"), reg("a/two", "1"), reg("b/keep", "1"), reg("c", "1"), reg("d/x/y", "1")),
		// The opaque mark stands behind the new file and must not take it.
		tarOf(t, reg("a/.wh.one", ""), reg("b/new", "2"), reg("b/.wh..wh..opq", ""), reg(".wh.c", ""), reg(".wh.d", ""), reg("d", "2"), reg(".wh.nothing", "")),
	}
	for _, l := range layers {
		if err := tree.ReadLayer(section(l)); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	_ = tree.Walk(func(name string, _ *Inode) error { names = append(names, name); return nil })
	if got := strings.Join(names, " "); got != " a a/two b b/new d" {
		t.Errorf("files %q", got)
	}
	if err := tree.ReadLayer(section(tarOf(t, reg("../.wh.x", "")))); status(err) != 2 {
		t.Errorf("a whiteout outside: %v", err)
	}
}

func TestReadDir(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, "a/b"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "a/f"), []byte("text"), 0o640))
	must(os.Link(filepath.Join(dir, "a/f"), filepath.Join(dir, "a/g")))
	must(os.Symlink("/etc/passwd", filepath.Join(dir, "l")))
	tree := New(roomy)
	must(tree.ReadDir(dir, Superuser))
	f, err := tree.Lookup("a/f", false)
	must(err)
	if g, _ := tree.Lookup("a/g", false); g != f {
		t.Error("a hard link became a second file")
	}
	if f.Mode != Regular|0o640 || f.UID != 0 {
		t.Errorf("mode %o, owner %d", f.Mode, f.UID)
	}
	if l, _ := tree.Lookup("l", false); l.Type() != Symlink || l.Target != "/etc/passwd" {
		t.Errorf("link %+v", l)
	}
	if _, err := tree.Lookup("l", true); err == nil {
		t.Error("a link led to the host's file")
	}
}

func TestDecompress(t *testing.T) {
	text := bytes.Repeat([]byte("hardtack "), 10000)
	var gz, zs bytes.Buffer
	g := gzip.NewWriter(&gz)
	_, _ = g.Write(text)
	_ = g.Close()
	z, _ := zstd.NewWriter(&zs)
	_, _ = z.Write(text)
	_ = z.Close()
	for name, b := range map[string][]byte{"plain": text, "gzip": gz.Bytes(), "zstd": zs.Bytes()} {
		r, err := Decompress(section(b), 1<<20)
		if err != nil {
			t.Fatal(name, err)
		}
		got := make([]byte, r.Size())
		if _, err := r.ReadAt(got, 0); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "plain" {
			continue
		}
		if _, err := Decompress(section(b), 1000); status(err) != 2 {
			t.Errorf("%s bomb: %v", name, err)
		}
		if _, err := Decompress(section(b[:len(b)/2]), 1<<20); status(err) != 2 {
			t.Errorf("half a %s: %v", name, err)
		}
	}
}

func TestResolveUser(t *testing.T) {
	tree := New(roomy)
	for name, text := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:33::/var/www:/bin/false\nshort\nbad:x:y:z::/:\n",
		"etc/group":  "root:x:0:\nwww-data:x:33:\nadm:x:4:www-data,other\nssl:x:110:www-data\n",
	} {
		if err := tree.Put(name, &Inode{Mode: Regular | 0o644, Data: Bytes([]byte(text))}); err != nil {
			t.Fatal(err)
		}
	}
	for spec, want := range map[string]User{
		"":             {Groups: []uint32{0}, Home: "/root"},
		"www-data":     {UID: 33, GID: 33, Groups: []uint32{33, 4, 110}, Home: "/var/www"},
		"33":           {UID: 33, GID: 33, Groups: []uint32{33}, Home: "/var/www"},
		"www-data:adm": {UID: 33, GID: 4, Groups: []uint32{4}, Home: "/var/www"},
		"1000":         {UID: 1000, Groups: []uint32{0}, Home: "/"},
		"1000:1001":    {UID: 1000, GID: 1001, Groups: []uint32{1001}, Home: "/"},
	} {
		got, err := tree.ResolveUser(spec)
		if err != nil {
			t.Errorf("%q: %v", spec, err)
			continue
		}
		if got.UID != want.UID || got.GID != want.GID || got.Home != want.Home || len(got.Groups) != len(want.Groups) {
			t.Errorf("%q: %+v, want %+v", spec, got, want)
		}
	}
	for _, spec := range []string{"nobody", "root:nogroup", "-1", "4294967296", "bad", ":"} {
		if _, err := tree.ResolveUser(spec); status(err) != 2 {
			t.Errorf("%q: %v", spec, err)
		}
	}
}

func TestFindProgram(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	arm := bytes.Clone(self)
	arm[18] = 183 // EM_AARCH64
	tree := New(roomy)
	for name, data := range map[string][]byte{
		"usr/bin/prog": self, "usr/bin/arm": arm, "usr/bin/cut": self[:4096],
		"usr/bin/script": []byte("#!/usr/bin/prog -x\n"), "usr/bin/lost": []byte("#!/no/such\n"),
		"usr/bin/loop": []byte("#!/usr/bin/loop\n"), "usr/bin/text": []byte("hello"),
		"lib64/ld-linux-x86-64.so.2": nil, // the test's own, where it was linked with cgo
	} {
		if err := tree.Put(name, &Inode{Mode: Regular | 0o755, Data: Bytes(data)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tree.Put("bin", &Inode{Mode: Symlink, Target: "usr/bin"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"prog": "/usr/bin/prog", "/bin/prog": "/bin/prog", "script": "/usr/bin/script", "./prog": "./prog"} {
		if got, err := tree.FindProgram(name, "/usr/bin", DefaultPath); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"arm": "AARCH64", "cut": "ends too early", "lost": "/no/such", "loop": "too many", "text": "neither",
		"none": "not in the root's PATH", "/none": "no such file", "/bin": "not a regular file", "": "empty",
	} {
		if _, err := tree.FindProgram(name, "/", DefaultPath); status(err) != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

// TestDepth piles directories up through links, each name short enough.
func TestDepth(t *testing.T) {
	tree := New(roomy)
	deep := strings.Repeat("d/", 100)
	var err error
	for i := 0; err == nil && i < 100; i++ {
		if err = tree.Put(deep+"x", &Inode{Mode: Regular | 0o644}); err != nil {
			break
		}
		err = tree.Put("link", &Inode{Mode: Symlink | 0o777, Target: deep[:len(deep)-1]})
		deep = "link/" + strings.Repeat("d/", 100)
	}
	if status(err) != 2 {
		t.Error(err)
	}
}
