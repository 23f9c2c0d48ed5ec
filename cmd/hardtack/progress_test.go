package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sys/unix"

	"hardtack/tool/ptytest"
	"hardtack/tool/source"
)

// A pull shows a bar for each layer, and each is full at the end; a registry that has not the
// image leaves no bar. What is no terminal gets nothing.
func TestProgress(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer s.Close()
	img, err := random.Image(100_000, 3)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.TrimPrefix(s.URL, "http://") + "/web:1"
	ref, err := name.ParseReference(at)
	if err == nil {
		err = remote.Write(ref, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	master, slave := ptytest.Open(t)
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100}); err != nil {
		t.Fatal(err)
	}
	said := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(master) // EIO at the end
		said <- b
	}()
	store, err := source.DefaultStore()
	if err != nil {
		t.Fatal(err)
	}
	end := showProgress(store, slave)
	if _, err = store.Pull(t.Context(), at); err != nil {
		t.Error(err)
	}
	end()
	end = showProgress(store, slave)
	if _, err = store.Pull(t.Context(), at+"none"); err == nil {
		t.Error("an image that is not there was pulled")
	}
	end()
	slave.Close()
	text := <-said
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		if d, err := l.Digest(); err != nil || !bytes.Contains(text, []byte(d.Hex[:12])) {
			t.Errorf("no bar of layer %v, %v", d, err)
		}
	}
	if !bytes.Contains(text, []byte("KiB / ")) {
		t.Errorf("no sizes in %q", text)
	}
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	showProgress(store, file)()
	if store.Progress != nil {
		t.Error("a file is shown bars")
	}
}

// A build's bars are one for each work; what is printed comes below them.
func TestBars(t *testing.T) {
	master, slave := ptytest.Open(t)
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100}); err != nil {
		t.Fatal(err)
	}
	said := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(master) // EIO at the end
		said <- b
	}()
	b := newBars(slave)
	b.set("downloading", 1<<20, 3<<20)
	b.set("downloading", 3<<20, 3<<20)
	b.set("unpacking", 1<<20, 2<<20) // and fails
	if _, err := io.WriteString(b.below(), "a line\n"); err != nil {
		t.Error(err)
	}
	w := &counted{Writer: io.Discard, bars: b, total: 2 << 20}
	if _, err := w.Write(make([]byte, 3<<20)); err != nil { // the total is a guess
		t.Error(err)
	}
	b.end()
	b.end()
	slave.Close()
	text := string(<-said)
	before, after, found := strings.Cut(text, "a line")
	if !found || !strings.Contains(before, "3.0 MiB / 3.0 MiB") || !strings.Contains(before, "1.0 MiB / 2.0 MiB") ||
		!strings.Contains(after, "writing") || !strings.Contains(after, "2.0 MiB / 2.0 MiB") || strings.Contains(after, "downloading") {
		t.Errorf("it shows %q", text)
	}
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	none := newBars(file)
	none.set("downloading", 1, 2)
	none.end()
	if st, err := file.Stat(); none != nil || err != nil || st.Size() > 0 {
		t.Error("a file is shown bars")
	}
}
