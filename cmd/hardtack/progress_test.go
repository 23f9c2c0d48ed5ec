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
