package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"hardtack/tool/named"
)

// output runs the command and returns its status and what it printed.
func output(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var texts [2]string
	olds := [2]*os.File{os.Stdout, os.Stderr}
	var files [2]*os.File
	for i := range files {
		f, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	t.Setenv("TMPDIR", t.TempDir()) // the command changes it for itself
	os.Stdout, os.Stderr = files[0], files[1]
	status = run(args)
	os.Stdout, os.Stderr = olds[0], olds[1]
	for i, f := range files {
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	return status, texts[0], texts[1]
}

// wantOutput runs the command and compares status and output; want is a pattern.
func wantOutput(t *testing.T, status int, want string, args ...string) string {
	t.Helper()
	got, stdout, stderr := output(t, args...)
	if all := stdout + stderr; got != status || !regexp.MustCompile("^(?:"+want+")$").MatchString(all) {
		t.Errorf("%q: status %d, %q\nwant %d, %q", args, got, all, status, want)
	}
	return stdout
}

func TestImages(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer s.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	img, err := random.Image(100, 2)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(host + "/web:1")
	if err == nil {
		err = remote.Write(ref, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	id, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.QuoteMeta(host)
	disk := filepath.Join(t.TempDir(), "disk")
	const table = "REPOSITORY +TAG +IMAGE ID +CREATED +SIZE\n"

	wantOutput(t, 0, table, "image", "ls")
	wantOutput(t, 1, `hardtack image rm: there is no image "web"; .*\n`, "image", "rm", "web")
	wantOutput(t, 1, `\[\]\nhardtack image inspect: there is no image "web:1"; .*\n`, "image", "inspect", "web:1")
	wantOutput(t, 2, `hardtack image disk: nosuch.tar: no such file or directory\n`, "image", "disk", "-o", disk, "nosuch.tar")
	wantOutput(t, 0, `Digest: sha256:[0-9a-f]{64}\n`+quoted+`/web:1\n`, "image", "pull", host+"/web:1")
	wantOutput(t, 2, quoted+`/web:1\nhardtack image pull: .*`+quoted+`/none.*\n`, "image", "pull", "-q", host+"/none", host+"/web:1")
	wantOutput(t, 0, table+quoted+`/web +1 +`+id.Hex[:12]+` +N/A +\S+\n`, "image", "ls")
	wantOutput(t, 0, table, "image", "ls", "other")
	wantOutput(t, 0, "", "image", "disk", "-o", disk, "--size", "16M", host+"/web:1") // as run opens it
	wantOutput(t, 0, id.Hex[:12]+"\n", "image", "ls", "-q", host+"/web")
	wantOutput(t, 0, id.String()+"\n", "image", "ls", "-q", "--no-trunc", host+"/web:1")
	wantOutput(t, 0, quoted+"/web:1 sha256:.*\n", "image", "ls", "--format", "{{.Repository}}:{{.Tag}} {{.Digest}}")
	wantOutput(t, 2, `hardtack image ls: --format: .*\n`, "image", "ls", "--format", "{{.Nothing}}")
	wantOutput(t, 0, `(?s).*"`+id.String()+`".*`, "image", "inspect", host+"/web:1")
	wantOutput(t, 0, quoted+"/web:1\n:4\nCompletion ended.*\n", "__complete", "image", "rm", "")
	wantOutput(t, 0, quoted+"/web:1\n:0\nCompletion ended.*\n", "__complete", "run", "")

	var line imageRow
	if out := wantOutput(t, 0, `\{.*\}\n`, "image", "ls", "--json"); json.Unmarshal([]byte(out), &line) != nil || line.Tag != "1" || line.ID != id.Hex[:12] {
		t.Errorf("--json: %q", out)
	}

	// A machine that runs keeps its image.
	m, err := named.Create("shop")
	if err == nil {
		err = m.Save(&named.State{Name: "shop", Status: named.Up, Image: id.String()})
	}
	if err != nil {
		t.Fatal(err)
	}
	var about []imageAbout
	out := wantOutput(t, 0, `(?s).*`, "image", "inspect", id.Hex[:6])
	if err := json.Unmarshal([]byte(out), &about); err != nil || len(about) != 1 || strings.Join(about[0].Machines, " ") != "shop" ||
		strings.Join(about[0].RepoTags, " ") != host+"/web:1" || len(about[0].RootFS.Layers) != 2 {
		t.Errorf("inspect: %v, %q", err, out)
	}
	wantOutput(t, 1, `hardtack image rm: the image \S+ is run by the machine shop: .*\n`, "image", "rm", host+"/web:1")
	wantOutput(t, 0, id.Hex[:12]+"\n", "image", "ls", "-q")
	wantOutput(t, 1, `Untagged: `+quoted+`/web:1\nDeleted: `+id.String()+`\nhardtack image rm: there is no image "none"; .*\n`,
		"image", "rm", "-f", "none", id.Hex)
	wantOutput(t, 0, table, "image", "ls")

	// One that has ended does not.
	wantOutput(t, 0, `(?s).*`, "image", "pull", host+"/web:1")
	if err := m.Save(&named.State{Name: "shop", Status: named.Exited, Image: id.String()}); err != nil {
		t.Fatal(err)
	}
	wantOutput(t, 0, `(?s)Untagged: .*Deleted: .*`, "image", "rm", host+"/web:1")
	if err := m.Remove(); err != nil {
		t.Fatal(err)
	}
}
