package source

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
)

const (
	layoutMarker = "oci-layout"
	indexName    = "index.json"
	dockerName   = "manifest.json"

	// documentMax bounds an index, a manifest, a config.
	documentMax = 8 << 20
	// indexDepth is how deep indexes may stand in indexes.
	indexDepth = 4
)

// blobs opens a file of a layout.
type blobs func(name string) (io.ReadCloser, error)

func openLayoutDir(dir string, b rootfs.Budget) (*rootfs.Tree, error) {
	// A Root cannot be left by links or "..": a layout's names are input.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return openLayout(func(name string) (io.ReadCloser, error) { return root.Open(name) }, b)
}

// openImageTar reads an image from a tar: an OCI layout or what `docker save`
// writes. It returns nothing when the tar is neither.
func openImageTar(r *io.SectionReader, b rootfs.Budget) (*rootfs.Tree, error) {
	names, err := topNames(r)
	if err != nil {
		return nil, err
	}
	switch {
	case names[layoutMarker] && names[indexName]:
		// The layout's files, found as in any other tree.
		files := rootfs.New(rootfs.Budget{Bytes: unpacked * b.Bytes, Entries: b.Entries})
		if err := files.ReadTar(r); err != nil {
			return nil, err
		}
		return openLayout(func(name string) (io.ReadCloser, error) {
			n, err := files.Lookup(name, true)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return io.NopCloser(n.Data.Open()), nil
		}, b)
	case names[dockerName] && isDocker(r):
		opener := func() (io.ReadCloser, error) {
			return io.NopCloser(io.NewSectionReader(r, 0, r.Size())), nil
		}
		img, err := tarball.Image(opener, nil)
		if err != nil {
			return nil, badImage(err)
		}
		return flatten(img, b)
	}
	return nil, nil
}

// topNames are the names at the top of a tar that mark it as an image. A
// damaged tar is told by whoever reads it.
func topNames(r *io.SectionReader) (map[string]bool, error) {
	names := map[string]bool{}
	err := members(r, func(h *tar.Header, _ io.Reader) (bool, error) {
		switch n := clean(h.Name); n {
		case layoutMarker, indexName, dockerName:
			names[n] = true
		}
		return false, nil
	})
	return names, err
}

// isDocker says whether manifest.json is the one of `docker save`, not a file
// of a root file system that happens to have the name.
func isDocker(r *io.SectionReader) bool {
	found := false
	_ = members(r, func(h *tar.Header, data io.Reader) (bool, error) {
		if clean(h.Name) != dockerName {
			return false, nil
		}
		var manifest []struct{ Layers []string }
		err := json.NewDecoder(io.LimitReader(data, documentMax)).Decode(&manifest)
		found = err == nil && len(manifest) > 0 && len(manifest[0].Layers) > 0
		return true, nil
	})
	return found
}

// members calls f for each member until it says stop or the tar ends or is
// found damaged.
func members(r *io.SectionReader, f func(h *tar.Header, data io.Reader) (stop bool, err error)) error {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if err != nil {
			return nil // told when the tar is read in earnest
		}
		if stop, err := f(h, tr); stop || err != nil {
			return err
		}
	}
}

func openLayout(open blobs, b rootfs.Budget) (*rootfs.Tree, error) {
	img, err := findImage(open, indexName, nil, indexDepth)
	if err != nil {
		return nil, err
	}
	if img == nil {
		return nil, fault.Bad("the layout has no image for %s/%s", platform.OS, platform.Architecture)
	}
	return flatten(img, b)
}

// findImage is the first image of the platform in an index.
func findImage(open blobs, name string, digest *v1.Hash, depth int) (v1.Image, error) {
	if depth == 0 {
		return nil, fault.Bad("bad image: indexes in indexes")
	}
	raw, err := readDocument(open, name, digest)
	if err != nil {
		return nil, err
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(raw))
	if err != nil {
		return nil, badImage(err)
	}
	for _, d := range index.Manifests {
		if p := d.Platform; p != nil && (p.OS != platform.OS || p.Architecture != platform.Architecture) {
			continue
		}
		var img v1.Image
		switch {
		case d.MediaType.IsIndex():
			img, err = findImage(open, blobName(d.Digest), &d.Digest, depth-1)
		case d.MediaType.IsImage():
			img, err = layoutImage(open, d)
		}
		if img != nil || err != nil {
			return img, err
		}
	}
	return nil, nil
}

func layoutImage(open blobs, d v1.Descriptor) (v1.Image, error) {
	raw, err := readDocument(open, blobName(d.Digest), &d.Digest)
	if err != nil {
		return nil, err
	}
	m, err := v1.ParseManifest(bytes.NewReader(raw))
	if err != nil {
		return nil, badImage(err)
	}
	config, err := readDocument(open, blobName(m.Config.Digest), &m.Config.Digest)
	if err != nil {
		return nil, err
	}
	img, err := partial.CompressedToImage(&layoutCore{open, d.MediaType, m, raw, config})
	if err != nil {
		return nil, badImage(err)
	}
	return img, nil
}

func blobName(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

// readDocument reads a small file and compares it with its digest.
func readDocument(open blobs, name string, digest *v1.Hash) ([]byte, error) {
	f, err := open(name)
	if err != nil {
		return nil, badImage(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, documentMax))
	if err != nil {
		return nil, badImage(err)
	}
	if digest != nil {
		got, _, err := v1.SHA256(bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		if got != *digest {
			return nil, fault.Bad("damaged image: %s is not what its name says", name)
		}
	}
	return raw, nil
}

// layoutCore is an image of a layout, as the library wants it.
type layoutCore struct {
	open     blobs
	media    types.MediaType
	manifest *v1.Manifest
	raw      []byte
	config   []byte
}

func (c *layoutCore) MediaType() (types.MediaType, error) { return c.media, nil }
func (c *layoutCore) RawManifest() ([]byte, error)        { return c.raw, nil }
func (c *layoutCore) RawConfigFile() ([]byte, error)      { return c.config, nil }

func (c *layoutCore) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	for _, d := range c.manifest.Layers {
		if d.Digest == h {
			return &layoutLayer{c.open, d}, nil
		}
	}
	return nil, fmt.Errorf("no layer %s", h)
}

type layoutLayer struct {
	open blobs
	d    v1.Descriptor
}

func (l *layoutLayer) Digest() (v1.Hash, error)            { return l.d.Digest, nil }
func (l *layoutLayer) Compressed() (io.ReadCloser, error)  { return l.open(blobName(l.d.Digest)) }
func (l *layoutLayer) Size() (int64, error)                { return l.d.Size, nil }
func (l *layoutLayer) MediaType() (types.MediaType, error) { return l.d.MediaType, nil }
