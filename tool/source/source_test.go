package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
)

var roomy = rootfs.Budget{Bytes: 64 << 20, Entries: 1 << 16}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tarOf makes a tar of regular files, name and content in turn.
func tarOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for pair := range slices.Chunk(files, 2) {
		must(t, w.WriteHeader(&tar.Header{Name: pair[0], Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(pair[1]))}))
		_, err := w.Write([]byte(pair[1]))
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func testLayer(t *testing.T, files ...string) v1.Layer {
	t.Helper()
	b := tarOf(t, files...)
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil })
	must(t, err)
	return l
}

// testImage has two layers, the second with whiteouts, and a config.
func testImage(t *testing.T) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image,
		testLayer(t, "bin/app", "old", "etc/gone", "x", "data/a", "1"),
		testLayer(t, "bin/app", "new", "etc/.wh.gone", "", "data/b", "2", "data/.wh..wh..opq", ""))
	must(t, err)
	img, err = mutate.ConfigFile(img, withPlatform(t, img, "amd64"))
	must(t, err)
	return img
}

func withPlatform(t *testing.T, img v1.Image, arch string) *v1.ConfigFile {
	t.Helper()
	c, err := img.ConfigFile()
	must(t, err)
	c = c.DeepCopy()
	c.OS, c.Architecture = "linux", arch
	c.Config = v1.Config{User: "1:2", Env: []string{"A=b"}, Entrypoint: []string{"/bin/app"}, Cmd: []string{"-x"}, WorkingDir: "/data"}
	return c
}

// checkImage compares a tree with testImage.
func checkImage(t *testing.T, tree *rootfs.Tree, err error) {
	t.Helper()
	must(t, err)
	var got []string
	must(t, tree.Walk(func(name string, n *rootfs.Inode) error {
		text, err := io.ReadAll(n.Data.Open())
		got = append(got, name+"="+string(text))
		return err
	}))
	if want := "= bin= bin/app=new data= data/b=2 etc="; strings.Join(got, " ") != want {
		t.Errorf("files %q, want %q", got, want)
	}
	if c := tree.Config; c == nil || fmt.Sprint(*c) != "{1:2 [A=b] [/bin/app] [-x] /data}" {
		t.Errorf("config %+v", c)
	}
}

func writeLayout(t *testing.T, img v1.Image) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	p, err := layout.Write(dir, empty.Index)
	must(t, err)
	must(t, p.AppendImage(img, layout.WithPlatform(platform)))
	return dir
}

// tarDir makes a tar of a directory.
func tarDir(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must(t, w.AddFS(os.DirFS(dir)))
	must(t, w.Close())
	return b.Bytes()
}

func writeFile(t *testing.T, name string, b []byte) string {
	t.Helper()
	full := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(full, b, 0o644))
	return full
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(b)
	_ = w.Close()
	return out.Bytes()
}

func TestImageForms(t *testing.T) {
	img := testImage(t)
	dir := writeLayout(t, img)
	saved := filepath.Join(t.TempDir(), "saved.tar")
	tag, err := name.NewTag("example/app:1")
	must(t, err)
	must(t, tarball.WriteToFile(saved, tag, img))
	savedBytes, err := os.ReadFile(saved)
	must(t, err)
	for form, file := range map[string]string{
		"layout":     dir,
		"layout tar": writeFile(t, "l.tar", tarDir(t, dir)),
		"layout tgz": writeFile(t, "l.tgz", gzipped(tarDir(t, dir))),
		"saved":      saved,
		"saved tgz":  writeFile(t, "s.tgz", gzipped(savedBytes)),
	} {
		t.Run(form, func(t *testing.T) {
			tree, err := Open(file, roomy)
			checkImage(t, tree, err)
		})
	}
}

// TestIndex picks the platform out of an index of several.
func TestIndex(t *testing.T) {
	img := testImage(t)
	other, err := mutate.ConfigFile(img, withPlatform(t, img, "arm64"))
	must(t, err)
	dir := filepath.Join(t.TempDir(), "layout")
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: other, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}}},
		mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &platform}})
	p, err := layout.Write(dir, empty.Index)
	must(t, err)
	must(t, p.AppendIndex(index))
	tree, err := Open(dir, roomy)
	checkImage(t, tree, err)

	only := filepath.Join(t.TempDir(), "layout")
	p, err = layout.Write(only, empty.Index)
	must(t, err)
	must(t, p.AppendImage(other))
	if _, err := Open(only, roomy); fault.Status(err) != 2 || !strings.Contains(err.Error(), "arm64") {
		t.Errorf("an image for another machine: %v", err)
	}
}

func TestPull(t *testing.T) {
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer s.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	ref, err := name.ParseReference(host + "/example/app:1")
	must(t, err)
	must(t, remote.Write(ref, testImage(t)))

	store := &Store{dir: t.TempDir()}
	pull := func(ref string) (*rootfs.Tree, error) {
		i, err := store.Pull(t.Context(), ref)
		if err != nil {
			return nil, err
		}
		return store.Tree(t.Context(), i, roomy)
	}
	tree, err := pull(ref.String())
	checkImage(t, tree, err)

	for _, bad := range []string{host + "/example/app:2", host + "/none", "UPPER CASE", "./no/such/file"} {
		if _, err := pull(bad); fault.Status(err) != 2 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: status %d, %v", bad, fault.Status(err), err)
		}
	}
	s.Close()
	if _, err := pull(ref.String()); fault.Status(err) != 1 {
		t.Errorf("no registry: %v", err)
	}
}

// TestDamagedImage changes one file of a layout after the other.
func TestDamagedImage(t *testing.T) {
	dir := writeLayout(t, testImage(t))
	var files []string
	must(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != layoutMarker {
			files = append(files, p)
		}
		return err
	}))
	if len(files) != 5 {
		t.Fatalf("files %q", files)
	}
	for _, f := range files {
		whole, err := os.ReadFile(f)
		must(t, err)
		for _, damage := range [][]byte{nil, whole[:len(whole)/2], append([]byte("x"), whole...)} {
			must(t, os.WriteFile(f, damage, 0o644))
			if _, err := Open(dir, roomy); fault.Status(err) != 2 || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s of %d bytes: %v", filepath.Base(f), len(damage), err)
			}
		}
		must(t, os.WriteFile(f, whole, 0o644))
	}
	// A blob that leads out of the layout.
	must(t, os.Remove(files[0]))
	must(t, os.Symlink("/etc/passwd", files[0]))
	if _, err := Open(dir, roomy); fault.Status(err) != 2 {
		t.Errorf("a link out of the layout: %v", err)
	}
}

func TestPlainRoots(t *testing.T) {
	plain := tarOf(t, "bin/app", "text", "manifest.json", `{"name": "not docker's"}`)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "app"), []byte("text"), 0o755))
	for form, c := range map[string]struct{ file, name string }{
		"directory": {dir, "app"},
		"tar":       {writeFile(t, "r.tar", plain), "bin/app"},
		"tgz":       {writeFile(t, "r.tar.gz", gzipped(plain)), "bin/app"},
	} {
		tree, err := Open(c.file, roomy)
		if err != nil {
			t.Errorf("%s: %v", form, err)
			continue
		}
		if _, err := tree.Lookup(c.name, false); err != nil || tree.Config != nil {
			t.Errorf("%s: %v, config %v", form, err, tree.Config)
		}
	}
}

func TestBadRoots(t *testing.T) {
	for name, file := range map[string]string{
		"missing":     filepath.Join(t.TempDir(), "none"),
		"empty":       writeFile(t, "x", nil),
		"text":        writeFile(t, "x", bytes.Repeat([]byte("hello\n"), 1000)),
		"device":      "/dev/null",
		"cut tar":     writeFile(t, "x", tarOf(t, "a", strings.Repeat("x", 10000))[:5000]),
		"cut gzip":    writeFile(t, "x", gzipped(bytes.Repeat([]byte("x"), 100000))[:50]),
		"bomb":        writeFile(t, "x", gzipped(make([]byte, 300<<20))),
		"escape":      writeFile(t, "x", tarOf(t, "../x", "x")),
		"bad gzip":    writeFile(t, "x", []byte("\x1f\x8bxxxxxxxxxxxxxxxxxxx")),
		"bad zstd":    writeFile(t, "x", []byte("\x28\xb5\x2f\xfdxxxxxxxxxxxxxxxxxxx")),
		"fake docker": writeFile(t, "x", tarOf(t, "manifest.json", `[{"Config":"../../etc/passwd","Layers":["a.tar"]}]`)),
		"fake layout": writeFile(t, "x", tarOf(t, "oci-layout", `{}`, "index.json", `{"manifests":[]}`)),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(file, roomy)
			if fault.Status(err) != 2 || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), file) {
				t.Errorf("status %d: %v", fault.Status(err), err)
			}
		})
	}
}
