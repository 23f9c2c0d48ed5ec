package source

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"

	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
)

// Store keeps the images that were pulled: an OCI layout whose files are named by their
// digests, so that images share layers and a second pull brings what is new. The index says
// which images have names; what no image needs any more goes when an image is removed.
//
// The lock is held shared while files are read or added and exclusively while some are
// removed. The index is another file whenever it changes, under a lock of its own.
type Store struct {
	dir string

	// Progress, if it is not nil, wraps what a layer that is brought is read from. Closing the
	// result closes r.
	Progress func(layer string, size int64, r io.ReadCloser) io.ReadCloser
}

// DefaultStore is in the user's cache.
func DefaultStore() (*Store, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil, fault.With(fault.Host, "the cache of images: %w", err)
	}
	return &Store{dir: filepath.Join(dir, "hardtack", "images")}, nil
}

// Stored is an image of a store.
type Stored struct {
	Name     string  // the whole reference; none: another image took the name
	Digest   v1.Hash // of the manifest
	ID       v1.Hash // of the config, as docker has it
	Size     int64   // of its files in the store
	Manifest *v1.Manifest
	Config   *v1.ConfigFile
	desc     v1.Descriptor
}

// Split is the name's repository and tag as people write them.
func (i *Stored) Split() (repository, tag string) {
	r, err := name.ParseReference(i.Name)
	if err != nil {
		return "<none>", "<none>"
	}
	repository = r.Context().RepositoryStr()
	if r.Context().RegistryStr() != name.DefaultRegistry {
		repository = r.Context().Name()
	}
	repository = strings.TrimPrefix(repository, "library/")
	if t, ok := r.(name.Tag); ok {
		return repository, t.TagStr()
	}
	return repository, "<none>"
}

// Familiar is the name as people write it, or the ID of an image without one.
func (i *Stored) Familiar() string {
	repository, tag := i.Split()
	switch {
	case i.Name == "":
		return i.ID.String()
	case tag == "<none>":
		return repository + "@" + i.Digest.String()
	}
	return repository + ":" + tag
}

const (
	nameKey  = "org.opencontainers.image.ref.name"
	lockName = "lock"
	newName  = "new-" // what is being written
)

// lock takes a lock of the store's. It is given back by closing the file.
func (s *Store) lock(ctx context.Context, file string, how int) (*os.File, error) {
	if err := os.MkdirAll(filepath.Join(s.dir, "blobs", "sha256"), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.dir, file), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			f.Close()
			return nil, &fs.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond): // flock does not listen to ctx
		}
	}
}

// open opens a file of the layout, and nothing outside of it.
func (s *Store) open(name string) (io.ReadCloser, error) { return os.OpenInRoot(s.dir, name) }

func (s *Store) index() (*v1.IndexManifest, error) {
	raw, err := os.ReadFile(filepath.Join(s.dir, indexName))
	if errors.Is(err, fs.ErrNotExist) {
		return &v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}, nil
	}
	if err != nil {
		return nil, err
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(raw))
	if err != nil {
		return nil, s.damaged(err)
	}
	return index, nil
}

func (s *Store) damaged(err error) error {
	return fault.With(fault.Host, "the cache of images is damaged (%w): remove %s and pull again", err, s.dir)
}

// edit changes the list of images.
func (s *Store) edit(ctx context.Context, change func([]v1.Descriptor) []v1.Descriptor) error {
	lock, err := s.lock(ctx, "index.lock", unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	index, err := s.index()
	if err != nil {
		return err
	}
	index.Manifests = change(index.Manifests)
	raw, err := json.MarshalIndent(index, "", "  ")
	if err == nil {
		err = s.replace(layoutMarker, []byte(`{"imageLayoutVersion":"1.0.0"}`))
	}
	if err == nil {
		err = s.replace(indexName, append(raw, '\n'))
	}
	return err
}

// replace writes a file, at once or not at all.
func (s *Store) replace(name string, content []byte) error {
	file := filepath.Join(s.dir, name)
	if err := os.WriteFile(file+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// put adds a file if the store does not have it.
func (s *Store) put(d v1.Hash, size int64, open func() (io.ReadCloser, error)) error {
	if d.Algorithm != "sha256" {
		return fault.Bad("bad image: the digest %s is not of SHA-256", d)
	}
	file := filepath.Join(s.dir, blobName(d))
	if st, err := os.Lstat(file); err == nil && st.Mode().IsRegular() && st.Size() == size {
		return nil
	}
	r, err := open()
	if err != nil {
		return pullError(err)
	}
	defer r.Close()
	tmp := filepath.Join(filepath.Dir(file), newName+rand.Text())
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(tmp) // fails once it has the name that it was written for
	sum := sha256.New()
	n, err := io.Copy(f, io.TeeReader(io.LimitReader(r, size+1), sum))
	if err != nil {
		f.Close()
		return pullError(err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	if n != size || hex.EncodeToString(sum.Sum(nil)) != d.Hex {
		return fault.Bad("bad image: %s is not what the registry said it is", d)
	}
	return os.Rename(tmp, file)
}

// putImage adds an image's files and gives the image a name. An image that had the name
// stays, without one.
func (s *Store) putImage(ctx context.Context, full string, img v1.Image) (*Stored, error) {
	lock, err := s.lock(ctx, lockName, unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	layers, err := img.Layers()
	if err != nil {
		return nil, pullError(err)
	}
	if len(layers) > layersMax {
		return nil, fault.Bad("an image of %d layers", len(layers))
	}
	for i, l := range layers {
		d, err := l.Digest()
		size, serr := l.Size()
		if err = cmp.Or(err, serr); err == nil {
			err = s.put(d, size, func() (io.ReadCloser, error) {
				r, err := l.Compressed()
				if err != nil || s.Progress == nil {
					return r, err
				}
				return s.Progress(d.Hex[:min(12, len(d.Hex))], size, r), nil
			})
		}
		if err != nil {
			return nil, fault.With(fault.Status(pullError(err)), "layer %d: %w", i+1, pullError(err))
		}
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return nil, pullError(err)
	}
	manifest, err := img.RawManifest()
	if err != nil {
		return nil, pullError(err)
	}
	digest, err := img.Digest()
	id, ierr := img.ConfigName()
	media, merr := img.MediaType()
	if err := cmp.Or(err, ierr, merr); err != nil {
		return nil, badImage(err)
	}
	for d, raw := range map[v1.Hash][]byte{id: config, digest: manifest} {
		if err := s.put(d, int64(len(raw)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }); err != nil {
			return nil, err
		}
	}
	desc := v1.Descriptor{MediaType: media, Digest: digest, Size: int64(len(manifest)), Platform: &platform,
		Annotations: map[string]string{nameKey: full}}
	if err := s.edit(ctx, func(list []v1.Descriptor) []v1.Descriptor { return withEntry(list, desc) }); err != nil {
		return nil, err
	}
	return s.stored(desc)
}

// withEntry adds an image to the list.
func withEntry(list []v1.Descriptor, add v1.Descriptor) []v1.Descriptor {
	var out []v1.Descriptor
	for _, d := range list {
		if d.Annotations[nameKey] == add.Annotations[nameKey] {
			d.Annotations = nil
		}
		if d.Digest == add.Digest && d.Annotations[nameKey] == "" {
			continue // it has a name now
		}
		out = append(out, d)
	}
	return append(out, add)
}

// Pull brings an image from its registry, or what is new of it.
func (s *Store) Pull(ctx context.Context, ref string) (*Stored, error) {
	r, err := parse(ref)
	if err != nil {
		return nil, err
	}
	img, err := remoteImage(ctx, r)
	if err != nil {
		return nil, named(ref, pullError(err))
	}
	i, err := s.putImage(ctx, r.Name(), img)
	if err != nil {
		return nil, named(ref, err)
	}
	return i, nil
}

// Tree lays an image's layers over each other.
func (s *Store) Tree(ctx context.Context, i *Stored, b rootfs.Budget) (*rootfs.Tree, error) {
	lock, err := s.lock(ctx, lockName, unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	img, err := layoutImage(s.open, i.desc)
	if err != nil {
		return nil, s.damaged(err)
	}
	t, err := flatten(img, b)
	if err != nil {
		return nil, named(i.Familiar(), err)
	}
	return t, nil
}

// stored reads what the store has of an image.
func (s *Store) stored(d v1.Descriptor) (*Stored, error) {
	img, err := layoutImage(s.open, d)
	if err != nil {
		return nil, s.damaged(err)
	}
	i := &Stored{Name: d.Annotations[nameKey], Digest: d.Digest, Size: d.Size, desc: d}
	m, err := img.Manifest()
	if err != nil {
		return nil, s.damaged(err)
	}
	if i.Config, err = img.ConfigFile(); err != nil {
		return nil, s.damaged(err)
	}
	i.Manifest, i.ID = m, m.Config.Digest
	i.Size += m.Config.Size
	for _, l := range m.Layers {
		i.Size += l.Size
	}
	return i, nil
}

// List returns the images, the newest first.
func (s *Store) List(ctx context.Context) ([]*Stored, error) {
	if _, err := os.Lstat(s.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // and nothing is made
	}
	lock, err := s.lock(ctx, lockName, unix.LOCK_SH)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	return s.list()
}

// list is List under the lock.
func (s *Store) list() (list []*Stored, err error) {
	index, err := s.index()
	if err != nil {
		return nil, err
	}
	for _, d := range index.Manifests {
		i, err := s.stored(d)
		if err != nil {
			return nil, err
		}
		list = append(list, i)
	}
	slices.SortStableFunc(list, func(a, b *Stored) int {
		return cmp.Or(b.Config.Created.Compare(a.Config.Created.Time), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// prefixLeast is how much of an ID is enough: less is rather a mistyped name.
const prefixLeast = 4

// Find returns the image of a name, or the entries of the one whose ID or digest begins so.
func (s *Store) Find(ctx context.Context, what string) ([]*Stored, error) {
	list, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	if r, err := parse(what); err == nil {
		for _, i := range list {
			if i.Name == r.Name() {
				return []*Stored{i}, nil
			}
		}
	}
	_, digest, _ := strings.Cut(what, "@") // REPOSITORY@DIGEST
	prefix := strings.TrimPrefix(cmp.Or(digest, what), "sha256:")
	var found []*Stored
	for _, i := range list {
		if len(prefix) < prefixLeast || !strings.HasPrefix(i.ID.Hex, prefix) && !strings.HasPrefix(i.Digest.Hex, prefix) {
			continue
		}
		if len(found) > 0 && found[0].ID != i.ID {
			return nil, fault.With(fault.Host, "%q fits the IDs of several images", what)
		}
		found = append(found, i)
	}
	if len(found) == 0 {
		return nil, &NotFound{what}
	}
	return found, nil
}

// NotFound says that a store has no such image.
type NotFound struct{ What string }

func (e *NotFound) Error() string {
	return fmt.Sprintf("there is no image %q; hardtack image ls lists those there are", e.What)
}

// Remove takes entries from the list, and the files that no image needs any more. It returns
// the images that are gone.
func (s *Store) Remove(ctx context.Context, entries []*Stored) (gone []v1.Hash, err error) {
	lock, err := s.lock(ctx, lockName, unix.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	err = s.edit(ctx, func(list []v1.Descriptor) []v1.Descriptor {
		return slices.DeleteFunc(list, func(d v1.Descriptor) bool {
			return slices.ContainsFunc(entries, func(i *Stored) bool {
				return i.Digest == d.Digest && i.Name == d.Annotations[nameKey]
			})
		})
	})
	if err != nil {
		return nil, err
	}
	left, err := s.list()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !slices.ContainsFunc(left, func(i *Stored) bool { return i.ID == e.ID }) && !slices.Contains(gone, e.ID) {
			gone = append(gone, e.ID)
		}
	}
	return gone, s.sweep(left)
}

// sweep removes files that no image needs, and those of pulls that were killed. The lock is
// held exclusively.
func (s *Store) sweep(left []*Stored) error {
	needed := map[string]bool{}
	for _, i := range left {
		needed[i.Digest.Hex], needed[i.ID.Hex] = true, true
		for _, l := range i.Manifest.Layers {
			needed[l.Digest.Hex] = true
		}
	}
	dir := filepath.Join(s.dir, "blobs", "sha256")
	files, err := os.ReadDir(dir)
	for _, f := range files {
		if !needed[f.Name()] && err == nil {
			err = os.Remove(filepath.Join(dir, f.Name()))
		}
	}
	return err
}
