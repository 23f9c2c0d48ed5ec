package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"net"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
)

// platform is the only one the guest can run.
var platform = v1.Platform{OS: "linux", Architecture: "amd64"}

// layersMax bounds an image's layers; the largest that tools make have 128.
const layersMax = 1024

// flatten lays an image's layers over each other.
func flatten(img v1.Image, b rootfs.Budget) (*rootfs.Tree, error) {
	config, err := img.ConfigFile()
	if err != nil {
		return nil, badImage(err)
	}
	if config.Architecture != "" && config.Architecture != platform.Architecture {
		return nil, fault.Bad("an image for %s, not for %s", config.Architecture, platform.Architecture)
	}
	if config.OS != "" && config.OS != platform.OS {
		return nil, fault.Bad("an image for %s, not for %s", config.OS, platform.OS)
	}
	layers, err := img.Layers()
	if err != nil {
		return nil, badImage(err)
	}
	if len(layers) > layersMax {
		return nil, fault.Bad("an image of %d layers", len(layers))
	}
	if len(layers) != len(config.RootFS.DiffIDs) {
		return nil, fault.Bad("damaged image: %d layers, %d of them in its config", len(layers), len(config.RootFS.DiffIDs))
	}
	layerMax := 2 * b.Bytes // later layers may take away what an earlier one has
	b.Bytes, b.Entries = unpacked*b.Bytes, unpacked*b.Entries
	t := rootfs.New(b)
	for i, layer := range layers {
		plain, err := fetch(layer, config.RootFS.DiffIDs[i], layerMax)
		if err == nil {
			err = t.ReadLayer(plain)
		}
		if err != nil {
			return nil, fault.With(fault.Status(err), "layer %d: %w", i+1, err)
		}
	}
	c := config.Config
	t.Config = &rootfs.Config{User: c.User, Env: c.Env, Entrypoint: c.Entrypoint, Cmd: c.Cmd, WorkingDir: c.WorkingDir}
	return t, nil
}

// fetch brings a layer's plain tar to a scratch file and compares it with the
// digest in the image's config. (The layer's own DiffID may be computed from
// the very bytes in question.)
func fetch(layer v1.Layer, want v1.Hash, limit int64) (*io.SectionReader, error) {
	r, err := layer.Uncompressed()
	if err != nil {
		return nil, badImage(err)
	}
	defer r.Close()
	h := &hashing{r: r, sum: sha256.New()}
	plain, err := rootfs.Spool(h, limit)
	if err != nil {
		return nil, badImage(err)
	}
	if got := hex.EncodeToString(h.sum.Sum(nil)); want.Algorithm != "sha256" || got != want.Hex {
		return nil, fault.Bad("damaged: its digest is not the one in the image's config")
	}
	return plain, nil
}

type hashing struct {
	r   io.Reader
	sum hash.Hash
}

func (h *hashing) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	h.sum.Write(p[:n])
	return n, err
}

// badImage makes what the image library complains of the user's error, on one
// line. It has no error type that tells a damaged image from a failing host.
func badImage(err error) error {
	if fault.Status(err) != fault.Host {
		return err
	}
	return fault.Bad("bad image: %s", strings.Join(strings.Fields(err.Error()), " "))
}

// parse reads a reference to an image. What looks like a path is none.
func parse(ref string) (name.Reference, error) {
	r, err := name.ParseReference(ref)
	if err != nil || ref[0] == '.' || ref[0] == '/' {
		return nil, fault.Bad("%s: neither a file nor a reference to an image", ref)
	}
	return r, nil
}

// remoteImage is an image of a registry. Credentials are those that `docker login` left, if
// any.
func remoteImage(ctx context.Context, r name.Reference) (v1.Image, error) {
	return remote.Image(r, remote.WithContext(ctx), remote.WithPlatform(platform), remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

func pullError(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return fault.With(fault.Host, "the registry does not answer: %w", op)
	}
	return badImage(err)
}
