// Package debian makes a root file system from Debian packages, without root and without
// running any of their programs on the host.
//
// apt solves the dependencies against an empty system and downloads what is
// chosen; the packages are unpacked here. Maintainer scripts are not run, unless there is
// a machine to run them in: see configure.go. What they would have done for the packages
// that server images hold (accounts, links, files copied from templates) is done here
// otherwise: see finish.go.
package debian

import (
	"context"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
)

// Options say what goes into the image.
type Options struct {
	Packages []string
	Cache    string   // directory of downloaded packages
	Refresh  bool     // ask apt again although the cache knows the answer
	Minimal  bool     // without the essential packages
	KeepDocs bool     // documentation, manuals, translations, character sets
	Applets  bool     // links to busybox for commands that nothing else provides
	Add      []string // directories laid over the packages, all files root's
	Log      io.Writer
	Progress Progress // may be nil; never called from two goroutines at a time
	// Run runs a program of the tree in a machine that has it as its root, and returns what
	// the root became. If it is set, the maintainer scripts are run there.
	Run func(ctx context.Context, t *rootfs.Tree, program string) (*rootfs.Tree, error)
}

// base is in every image: the directories, the accounts, name resolution.
var base = []string{"base-files", "base-passwd"}

// kind is how much the image has beside the packages.
func (o *Options) kind() kind {
	switch {
	case o.Run != nil:
		return whole
	case o.Minimal:
		return minimal
	}
	return standard
}

// Build makes the tree. If maintainer scripts have failed, it returns both the tree and a
// *ScriptsFailed.
func Build(ctx context.Context, o Options, b rootfs.Budget) (*rootfs.Tree, error) {
	for _, p := range o.Packages {
		if !validName(p) {
			return nil, fault.Bad("%q is not the name of a package", p)
		}
	}
	c := cache{dir: o.Cache, log: o.Log, progress: o.Progress}
	debs, err := c.fetch(ctx, o.Packages, o.kind(), o.Refresh)
	if err != nil {
		return nil, err
	}
	t := rootfs.New(b)
	if err := mergedUsr(t); err != nil {
		return nil, err
	}
	packages, err := unpackAll(ctx, &c, debs)
	if err != nil {
		return nil, err
	}
	for i := range packages {
		p := &packages[i]
		keep := func(name string) bool {
			p.names = append(p.names, name)
			return o.keeps(name)
		}
		if err := t.ReadTarIf(p.data, keep); err != nil {
			return nil, fault.With(fault.Status(err), "%s: %w", p.File, err)
		}
	}
	f := finisher{t: t, time: newest(t), has: map[string]bool{}}
	for _, d := range debs {
		f.has[d.Package] = true
	}
	var failed error
	if o.Run == nil {
		notRun(o.Log, packages)
		err = f.finish(o.Applets)
	} else if t, err = configure(ctx, &o, t, packages); isScripts(err) {
		failed, err = err, nil
	}
	if err != nil {
		return nil, err
	}
	for _, dir := range o.Add {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fault.Bad("--add %s: not a directory", dir)
		}
		if err := t.ReadDir(dir, rootfs.Superuser); err != nil {
			return nil, err
		}
	}
	return t, failed
}

// keeps reports whether a file of a package goes into the image.
func (o *Options) keeps(name string) bool {
	return o.KeepDocs || !isIn(docs, name) && (o.Run != nil || !isIn(services, name))
}

// unpacked is a package and what is in it.
type unpacked struct {
	deb
	data    *io.SectionReader // the plain tar of its files
	control members
	names   []string // of its files, as in its tar, but without a leading slash
}

// unpackAll makes the plain tars of packages, several at a time: that is
// most of the work.
func unpackAll(ctx context.Context, c *cache, debs []deb) ([]unpacked, error) {
	list := make([]unpacked, len(debs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	var total, done int64
	for _, d := range debs {
		total += c.size(d)
	}
	var mu sync.Mutex
	c.progress.tell(unpacking, 0, total)
	for i, d := range debs {
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			p := unpacked{deb: d}
			var err error
			if p.data, err = unpack(c.path(d.File)); err == nil {
				p.control, err = membersOf(c.path(d.File))
			}
			if err != nil {
				return fault.With(fault.Status(err), "%s: %w", d.File, err)
			}
			list[i] = p
			mu.Lock()
			defer mu.Unlock()
			done += c.size(d)
			c.progress.tell(unpacking, done, total)
			return nil
		})
	}
	return list, g.Wait()
}

// size is that of a package's file.
func (c *cache) size(d deb) int64 {
	if st, err := os.Stat(c.path(d.File)); err == nil {
		return st.Size()
	}
	return 0 // which is told when it is opened
}

// validName allows what Debian does, and "name=version" as apt reads it. To apt
// a leading dash is an option and a trailing one a removal.
func validName(p string) bool {
	if p == "" || p[0] == '-' || p[0] == '+' {
		return false
	}
	return !strings.ContainsFunc(p, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789+-.:~=", r)
	}) && !strings.HasSuffix(p, "-")
}

// mergedUsr makes the links through which /bin and the like are in /usr.
func mergedUsr(t *rootfs.Tree) error {
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := t.MakeDir("usr/" + name); err != nil {
			return err
		}
		if err := t.Put(name, &rootfs.Inode{Mode: rootfs.Symlink | 0o777, Target: "usr/" + name}); err != nil {
			return err
		}
	}
	return nil
}

// docs are the directories that a program does not read to do its work. The
// image lives in the guest's memory.
var docs = []string{
	"usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale",
	"usr/share/lintian", "usr/share/bug", "usr/share/doc-base", "usr/share/linda",
}

// services are those that only maintainer scripts read, or what they set up: for
// upgrading, booting and hardening a host, and other languages.
var services = []string{
	"usr/share/i18n", "usr/lib/x86_64-linux-gnu/gconv", "lib/x86_64-linux-gnu/gconv",
	"usr/share/apport", "lib/systemd", "usr/lib/systemd", "etc/init.d", "etc/logrotate.d", "etc/cron.daily",
	"etc/ufw", "etc/apparmor.d",
}

func isIn(dirs []string, name string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return name == d || strings.HasPrefix(name, d+"/") })
}

// newest is the youngest time in the tree: the time of what we make, so that
// the same packages give the same image.
func newest(t *rootfs.Tree) int64 {
	var at int64
	_ = t.Walk(func(_ string, n *rootfs.Inode) error {
		at = max(at, n.Mtime)
		return nil
	})
	return at
}
