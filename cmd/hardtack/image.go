package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hardtack/tool/debian"
	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
	"hardtack/tool/source"
)

// imageBudget is more than any guest can hold. Whether the tree fits a guest is
// checked when it is run.
var imageBudget = rootfs.Budget{Bytes: 8 << 30, Entries: 4 << 20}

func newImage() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Make root file systems, pull and list images",
		Long: `Make a root file system: a tar for "hardtack run", or a disk for
"hardtack run --root". The same input gives the same tar.

Images of registries are kept in the user's cache (hardtack/images there, an OCI
layout), where they share layers. "hardtack run" takes them by name or ID.`,
		Example: `  hardtack image debian -o root.tar bash redis-server
  hardtack image oci -o root.tar docker.io/library/alpine:3.20
  hardtack image disk -o root.img --size 4G root.tar
  hardtack image pull alpine:3.20 && hardtack run alpine:3.20`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fault.Bad("unknown command %q; see %s --help", args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImageDebian(), newImageOCI(), newImageDisk(), newImagePull(), newImageLS(), newImageRM(), newImageInspect(), newImageWarm())
	return cmd
}

func newImageDebian() *cobra.Command {
	var out, kernel, memory string
	var run bool
	var o debian.Options
	cmd := &cobra.Command{
		Use:   "debian -o ROOT.tar PKG...",
		Short: "A root file system from Debian packages",
		Long: `Make a root file system from Debian packages and their dependencies, with the
host's apt and its sources. Root is not needed. Downloads are cached, and a set of
packages that was resolved once is rebuilt without apt or a network.

Debian's essential packages are in it, unless you give --minimal: an image lives in
the guest's memory. So documentation, manual pages, translations, character set
converters and service files are left out, unless you give --keep-docs.

Maintainer scripts are not run. The accounts, links and files that they would
create are created for base-files, base-passwd, redis, nginx and some others; the
list is in tool/debian/finish.go. For others this command says which were not run.
Packages that only they need (debconf, adduser and the like) are left out unless you
name them.

With --configure they are run, with dpkg, in a Hardtack machine that has no network:
accounts, alternatives, keys and dpkg's database are there as after apt-get install.
Nobody is asked anything, services are not started, and service files are kept.
This command says which scripts ran; if one failed, the tar is written and the exit
status is 1. Two such images are not the same bytes: scripts make keys, and note
times. Keys are the same in all machines that are run from one image.`,
		Example: `  hardtack image debian -o root.tar coreutils python3-minimal
  hardtack image debian -o web.tar --minimal --add site/ nginx
  hardtack image debian -o ssh.tar --configure openssh-server`,
		Args: atLeast(1, "at least one package"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Packages = args
			if o.Cache == "" {
				o.Cache = defaultCache()
			}
			if run && (o.Minimal || o.Applets) {
				return fault.Bad("--configure needs the essential packages: it excludes --minimal and --applets")
			}
			shown := newBars(os.Stderr)
			defer shown.end()
			o.Log, o.Progress = shown.below(), shown.set
			if run {
				o.Run = func(ctx context.Context, t *rootfs.Tree, program string) (*rootfs.Tree, error) {
					return guestRun(ctx, o.Log, kernel, memory, t, program)
				}
			}
			return writeDebian(cmd.Context(), out, o, shown)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&out, "output", "o", "", "write the tar to this `file` (required; - is standard output)")
	fl.StringVar(&o.Cache, "cache", "", "keep packages in this `directory` (default: build/debs in the source, else the user's cache)")
	fl.BoolVar(&o.Refresh, "refresh", false, "ask apt again, even for packages in the cache")
	fl.BoolVar(&o.Minimal, "minimal", false, "leave out the essential packages, which programs may do without")
	fl.BoolVar(&run, "configure", false, "run the maintainer scripts in a machine")
	fl.StringVar(&kernel, "kernel", "", "with --configure: the kernel `image` (default: as for hardtack run)")
	fl.StringVar(&memory, "memory", "1G", "with --configure: `size` of the machine's memory")
	fl.BoolVar(&o.KeepDocs, "keep-docs", false, "keep documentation, manuals, translations and service files")
	fl.BoolVar(&o.Applets, "applets", false, "with busybox-static: link the commands that no package provides to busybox")
	fl.StringArrayVar(&o.Add, "add", nil, "add the files of this `directory`, over those of the packages (repeatable)")
	return cmd
}

// writeDebian writes an image of packages. One whose maintainer scripts have failed is written,
// too.
func writeDebian(ctx context.Context, out string, o debian.Options, shown *bars) error {
	budget := imageBudget
	budget.Disk = o.Run != nil
	var failed *debian.ScriptsFailed
	err := writeTree(out, shown, func() (*rootfs.Tree, error) {
		t, err := debian.Build(ctx, o, budget)
		if errors.As(err, &failed) {
			err = nil
		}
		return t, err
	})
	if err == nil && failed != nil {
		return failed
	}
	return err
}

func newImageOCI() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "oci -o ROOT.tar REF|DIR|TAR",
		Short: "A root file system from an OCI image",
		Long: `Make a root file system from a container image: a layout directory, a layout in a
tar, the output of "docker save", or a reference to an image in a registry. Layers
are applied in order, with their whiteouts. The image's command, environment,
working directory and user are kept in the tar for "hardtack run". What comes from a
registry is kept in the cache: the registry is asked again, but layers that are there
are not brought again.`,
		Example: `  hardtack image oci -o root.tar docker.io/library/alpine:3.20
  hardtack image oci -o root.tar layout/
  docker save redis | gzip >redis.tgz && hardtack image oci -o root.tar redis.tgz`,
		Args: exactly(1, "one image"),
		RunE: func(cmd *cobra.Command, args []string) error {
			shown := newBars(os.Stderr)
			defer shown.end()
			return writeTree(out, shown, func() (*rootfs.Tree, error) { return openImage(cmd.Context(), args[0]) })
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write the tar to this `file` (required; - is standard output)")
	return cmd
}

// openImage opens a file if there is one of this name, else pulls a reference.
func openImage(ctx context.Context, name string) (*rootfs.Tree, error) {
	if _, err := os.Stat(name); err != nil {
		store, err := source.DefaultStore()
		if err != nil {
			return nil, err
		}
		shown := showProgress(store, os.Stderr)
		i, err := store.Pull(ctx, name)
		shown()
		if err != nil {
			return nil, err
		}
		return store.Tree(ctx, i, imageBudget)
	}
	t, err := source.Open(name, imageBudget)
	if err == nil && t.Config == nil {
		err = fault.Bad("%s: not an image, but a plain root file system; `hardtack run` takes it as it is", name)
	}
	return t, err
}

// When run brings an image, as docker has it.
const (
	pullNever   = "never"
	pullMissing = "missing"
	pullAlways  = "always"
)

// openRoot opens a root file system: a file, or an image of the cache. No registry is asked
// unless pull says so: a mistyped file name stays on this host.
func openRoot(ctx context.Context, root, pull string, b rootfs.Budget) (t *rootfs.Tree, image string, err error) {
	if _, err := os.Lstat(root); errors.Is(err, fs.ErrNotExist) {
		if store, err := source.DefaultStore(); err == nil {
			i, err := cached(ctx, store, root, pull)
			if err == nil {
				t, err = store.Tree(ctx, i, b)
				return t, i.ID.String(), err
			}
			if none := (*source.NotFound)(nil); !errors.As(err, &none) {
				return nil, "", err
			}
		}
	}
	t, err = source.Open(root, b)
	return t, "", err
}

// cached finds an image in the cache, or brings it there.
func cached(ctx context.Context, store *source.Store, name, pull string) (*source.Stored, error) {
	if pull != pullAlways {
		found, err := store.Find(ctx, name)
		if err == nil {
			return found[0], nil
		}
		if none := (*source.NotFound)(nil); pull == pullNever || !errors.As(err, &none) {
			return nil, err
		}
	}
	defer showProgress(store, os.Stderr)()
	return store.Pull(ctx, name)
}

// writeTree writes the tree that open returns to a tar.
func writeTree(out string, shown *bars, open func() (*rootfs.Tree, error)) error {
	if out == "" {
		return fault.Bad("-o is missing: name the tar to write")
	}
	t, stop := newTidy()
	defer stop()
	if err := t.dir(); err != nil {
		return err
	}
	tree, err := open()
	if err != nil {
		return err
	}
	return t.create(out, func(tmp string) error {
		f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		if err := tree.WriteTar(&counted{Writer: f, bars: shown, total: tree.TarSize()}); err != nil {
			f.Close()
			return err
		}
		return f.Close()
	})
}

// defaultCache is in the source's build directory or, without a source, in the
// user's cache.
func defaultCache() string {
	if dir, err := sourceDir(); err == nil {
		return filepath.Join(dir, "build", "debs")
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "hardtack", "debs")
	}
	return filepath.Join(os.TempDir(), "hardtack-debs")
}
