package source

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"hardtack/tool/fault"
)

// testRegistry is a registry that counts the blobs it gives.
func testRegistry(t *testing.T) (host string, blobs *atomic.Int32) {
	blobs = new(atomic.Int32)
	h := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			blobs.Add(1)
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), blobs
}

func push(t *testing.T, ref string, img v1.Image) string {
	t.Helper()
	r, err := name.ParseReference(ref)
	must(t, err)
	must(t, remote.Write(r, img))
	return ref
}

// extended is testImage with one more layer.
func extended(t *testing.T, img v1.Image) v1.Image {
	t.Helper()
	out, err := mutate.AppendLayers(img, testLayer(t, "data/c", "3"))
	must(t, err)
	return out
}

func blobFiles(t *testing.T, s *Store) int {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(s.dir, "blobs", "sha256"))
	must(t, err)
	return len(files)
}

func TestStore(t *testing.T) {
	host, blobs := testRegistry(t)
	ctx := t.Context()
	s := &Store{dir: filepath.Join(t.TempDir(), "images")}
	if list, err := s.List(ctx); err != nil || list != nil {
		t.Fatalf("an empty store: %v, %v", list, err)
	}
	if _, err := os.Lstat(s.dir); err == nil {
		t.Error("looking made the folder")
	}
	img := testImage(t)
	one := push(t, host+"/example/app:1", img)
	two := push(t, host+"/example/app:2", extended(t, img))

	first, err := s.Pull(ctx, one)
	must(t, err)
	if r, tag := first.Split(); r != host+"/example/app" || tag != "1" || first.Familiar() != one {
		t.Errorf("name %q %q %q", r, tag, first.Familiar())
	}
	if n := blobs.Swap(0); n != 3 {
		t.Errorf("%d blobs for two layers and a config", n)
	}
	_, err = s.Pull(ctx, one)
	must(t, err)
	if n := blobs.Swap(0); n > 1 { // the config is asked for again
		t.Errorf("%d blobs for what was there", n)
	}
	second, err := s.Pull(ctx, two)
	must(t, err)
	if n := blobs.Swap(0); n != 2 {
		t.Errorf("%d blobs for one layer and a config", n)
	}
	if n := blobFiles(t, s); n != 7 { // three layers, two configs, two manifests
		t.Errorf("%d files", n)
	}
	tree, err := s.Tree(ctx, first, roomy)
	checkImage(t, tree, err)
	// The store is a layout as others write them.
	for _, f := range []string{layoutMarker, indexName} {
		if _, err := os.Stat(filepath.Join(s.dir, f)); err != nil {
			t.Error(err)
		}
	}

	for _, what := range []string{two, second.ID.Hex[:8], second.ID.String(), second.Digest.Hex[:4], host + "/example/app@" + second.Digest.String()} {
		if found, err := s.Find(ctx, what); err != nil || len(found) != 1 || found[0].ID != second.ID {
			t.Errorf("%s: %v, %v", what, found, err)
		}
	}
	for _, what := range []string{"example/app:1", second.ID.Hex[:3], "", "../x", "sha256:"} {
		if _, err := s.Find(ctx, what); !errors.As(err, new(*NotFound)) || fault.Status(err) != fault.Host {
			t.Errorf("%q: %v", what, err)
		}
	}

	gone, err := s.Remove(ctx, []*Stored{second})
	must(t, err)
	if len(gone) != 1 || gone[0] != second.ID || blobFiles(t, s) != 4 {
		t.Errorf("gone %v, %d files", gone, blobFiles(t, s))
	}
	tree, err = s.Tree(ctx, first, roomy)
	checkImage(t, tree, err)
	_, err = s.Remove(ctx, []*Stored{first})
	must(t, err)
	if n := blobFiles(t, s); n != 0 {
		t.Errorf("%d files of no image", n)
	}
}

// TestStoreNames moves a name from one image to another, and gives an image two.
func TestStoreNames(t *testing.T) {
	host, _ := testRegistry(t)
	ctx := t.Context()
	s := &Store{dir: t.TempDir()}
	img := testImage(t)
	tag := push(t, host+"/app", img)
	old, err := s.Pull(ctx, tag)
	must(t, err)
	push(t, tag, extended(t, img))
	moved, err := s.Pull(ctx, tag)
	must(t, err)
	list, err := s.List(ctx)
	must(t, err)
	if len(list) != 2 || old.ID == moved.ID {
		t.Fatalf("%d images", len(list))
	}
	left, err := s.Find(ctx, old.ID.Hex)
	must(t, err)
	if r, tag := left[0].Split(); len(left) != 1 || r != "<none>" || tag != "<none>" {
		t.Errorf("the image that had the name: %q %q", r, tag)
	}
	if gone, err := s.Remove(ctx, left); err != nil || len(gone) != 1 {
		t.Errorf("%v, %v", gone, err)
	}
	second := push(t, host+"/other:x", extended(t, img))
	_, err = s.Pull(ctx, second)
	must(t, err)
	both, err := s.Find(ctx, moved.ID.Hex)
	must(t, err)
	if len(both) != 2 {
		t.Fatalf("%d entries of an image with two names", len(both))
	}
	if gone, err := s.Remove(ctx, both[:1]); err != nil || len(gone) != 0 {
		t.Errorf("the image went with one of its names: %v, %v", gone, err)
	}
}

// TestStoreKilled has what a pull leaves that was killed: the next one does not trust it, and
// a removal takes it away.
func TestStoreKilled(t *testing.T) {
	host, _ := testRegistry(t)
	ctx := t.Context()
	s := &Store{dir: t.TempDir()}
	ref := push(t, host+"/app", testImage(t))
	i, err := s.Pull(ctx, ref)
	must(t, err)
	config := filepath.Join(s.dir, blobName(i.ID))
	whole, err := os.ReadFile(config)
	must(t, err)
	must(t, os.WriteFile(config, whole[:len(whole)/2], 0o600))
	litter := filepath.Join(filepath.Dir(config), newName+"X")
	must(t, os.WriteFile(litter, []byte("half"), 0o600))
	if _, err := s.List(ctx); fault.Status(err) != fault.Host || !strings.Contains(err.Error(), s.dir) {
		t.Errorf("a damaged store: %v", err)
	}
	i, err = s.Pull(ctx, ref)
	must(t, err)
	if now, err := os.ReadFile(config); err != nil || !bytes.Equal(now, whole) {
		t.Errorf("the config was not renewed: %v", err)
	}
	_, err = s.Remove(ctx, []*Stored{i})
	must(t, err)
	if _, err := os.Lstat(litter); err == nil {
		t.Error("the file of a killed pull is still there")
	}
	must(t, os.WriteFile(filepath.Join(s.dir, indexName), []byte("{"), 0o600))
	if _, err := s.List(ctx); fault.Status(err) != fault.Host || !strings.Contains(err.Error(), s.dir) {
		t.Errorf("a damaged index: %v", err)
	}
}

// TestStoreLies has a registry that sends other bytes than it promised.
func TestStoreLies(t *testing.T) {
	h := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	img, err := mutate.AppendLayers(empty.Image, testLayer(t, "a", "1"))
	must(t, err)
	layers, err := img.Layers()
	must(t, err)
	layer, err := layers[0].Digest()
	must(t, err)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, layer.String()) {
			_, _ = w.Write([]byte("something else"))
			return
		}
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	s := &Store{dir: t.TempDir()}
	ref := push(t, strings.TrimPrefix(srv.URL, "http://")+"/app", img)
	if _, err := s.Pull(t.Context(), ref); fault.Status(err) != fault.Input {
		t.Errorf("status %d, %v", fault.Status(err), err)
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != 0 || blobFiles(t, s) != 0 {
		t.Errorf("left behind: %v, %v, %d files", list, err, blobFiles(t, s))
	}
}

// TestStoreTogether pulls, lists and removes at once: no list is half.
func TestStoreTogether(t *testing.T) {
	host, _ := testRegistry(t)
	ctx := t.Context()
	s := &Store{dir: t.TempDir()}
	img := testImage(t)
	refs := []string{push(t, host+"/a", img), push(t, host+"/b", extended(t, img)), push(t, host+"/c", img)}
	var wg sync.WaitGroup
	for _, ref := range refs {
		wg.Go(func() {
			for range 8 {
				i, err := s.Pull(ctx, ref)
				if err != nil {
					t.Errorf("%s: %v", ref, err)
					return
				}
				if _, err := s.List(ctx); err != nil {
					t.Error(err)
				}
				if _, err := s.Remove(ctx, []*Stored{i}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := blobFiles(t, s); n != 0 {
		t.Errorf("%d files are left", n)
	}
}
