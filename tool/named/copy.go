package named

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"hardtack/idl/live"
	"hardtack/tool/fault"
)

const (
	typeMask = syscall.S_IFMT
	typeDir  = syscall.S_IFDIR
	typeFile = syscall.S_IFREG
	typeLink = syscall.S_IFLNK

	depthMost = 200     // folders in each other
	namesMost = 1 << 20 // names in one folder
)

// stat asks for a file's attributes; nil if it is not there.
func stat(ctx context.Context, c *live.Client, name string, follow bool) (*live.StatReply, error) {
	out, err := c.Stat(ctx, live.StatCall{Follow: follow, Path: name})
	if err != nil {
		return nil, err
	}
	if e := syscall.Errno(out.Errno); e == syscall.ENOENT {
		return nil, nil
	}
	return &out, guestError("looking at", name, out.Errno)
}

// CopyOut copies a file or a folder of the machine to the host. What the guest says of
// names and links leads nowhere outside of the destination (os.Root). With follow the file
// that a symbolic link leads to is copied. A folder's name that ends in /. means what is in it.
func CopyOut(ctx context.Context, c *live.Client, from, to string, follow bool) error {
	inside := strings.HasSuffix(from, "/.") || from == "."
	from = path.Clean("/" + from)
	st, err := stat(ctx, c, from, follow)
	if err != nil {
		return err
	}
	if st == nil {
		return fault.With(fault.Host, "there is no %s in the machine", from)
	}
	base := path.Base(from)
	if local, err := os.Stat(to); err == nil && local.IsDir() {
		if base == "/" || inside && st.Mode&typeMask == typeDir { // its content goes there
			root, err := os.OpenRoot(to)
			if err != nil {
				return err
			}
			defer root.Close()
			return out(ctx, c, from, root, ".", st, 0)
		}
		to = filepath.Join(to, base)
	} else if strings.HasSuffix(to, "/") && st.Mode&typeMask != typeDir {
		return fault.With(fault.Host, "%s is not a folder", to)
	}
	to = filepath.Clean(to)
	root, err := os.OpenRoot(filepath.Dir(to))
	if err != nil {
		return err
	}
	defer root.Close()
	return out(ctx, c, from, root, filepath.Base(to), st, 0)
}

// out copies one file, and what is in it.
func out(ctx context.Context, c *live.Client, from string, root *os.Root, to string, st *live.StatReply, depth int) error {
	if depth > depthMost {
		return fault.With(fault.Host, "%s in the machine: too many folders in each other", from)
	}
	switch st.Mode & typeMask {
	case typeLink:
		if err := root.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return root.Symlink(st.Target, to)
	case typeFile:
		return fileOut(ctx, c, from, root, to, st)
	case typeDir:
	default:
		return fault.With(fault.Host, "%s in the machine is neither file, folder nor link", from)
	}
	if err := root.Mkdir(to, 0o700); err != nil && (!errors.Is(err, fs.ErrExist) || !isDir(root, to)) {
		return err
	}
	err := eachIn(ctx, c, from, func(full, name string, st *live.StatReply) error {
		return out(ctx, c, full, root, path.Join(to, name), st, depth+1)
	})
	if err != nil {
		return err
	}
	if to == "." {
		return nil
	}
	if err := root.Chmod(to, os.FileMode(st.Mode&0o777)); err != nil {
		return err
	}
	return root.Chtimes(to, time.Time{}, time.Unix(0, int64(st.Mtime)))
}

func isDir(root *os.Root, name string) bool {
	st, err := root.Lstat(name)
	return err == nil && st.IsDir()
}

func fileOut(ctx context.Context, c *live.Client, from string, root *os.Root, to string, st *live.StatReply) (err error) {
	f, err := root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	for at := uint64(0); ; {
		out, err := c.Read(ctx, live.ReadCall{At: at, Path: from})
		if err == nil {
			err = guestError("reading", from, out.Errno)
		}
		if err == nil && len(out.Data) > 0 {
			_, err = f.Write(out.Data)
		}
		if err != nil {
			return err
		}
		if at += uint64(len(out.Data)); len(out.Data) == 0 {
			break
		}
	}
	if err := f.Chmod(os.FileMode(st.Mode & 0o777)); err != nil {
		return err
	}
	return root.Chtimes(to, time.Time{}, time.Unix(0, int64(st.Mtime)))
}

// eachIn calls do for what is in a folder of the machine, but for what goes meanwhile.
func eachIn(ctx context.Context, c *live.Client, dir string, do func(full, name string, st *live.StatReply) error) error {
	names, err := list(ctx, c, dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		full := path.Join(dir, name)
		st, err := stat(ctx, c, full, false)
		if err == nil && st != nil {
			err = do(full, name, st)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// list are the names in a folder of the machine. A guest that says none is refused.
func list(ctx context.Context, c *live.Client, dir string) (names []string, err error) {
	for place := uint64(0); ; {
		out, err := c.List(ctx, live.ListCall{Place: place, Path: dir})
		if err == nil {
			err = guestError("listing", dir, out.Errno)
		}
		if err != nil {
			return nil, err
		}
		for name := range strings.SplitSeq(strings.TrimSuffix(string(out.Names), "\x00"), "\x00") {
			if name == "" && len(out.Names) == 0 {
				continue
			}
			if name == "" || name == "." || name == ".." || strings.Contains(name, "/") {
				return nil, fault.With(fault.Host, "%s in the machine has a file called %q", dir, name)
			}
			names = append(names, name)
		}
		if place = out.Next; place == 0 {
			return names, nil
		}
		if len(names) > namesMost || len(out.Names) == 0 {
			return nil, fault.With(fault.Host, "%s in the machine has too many files", dir)
		}
	}
}

// CopyIn copies a file or a folder of the host to the machine. Files there are process 1's
// user's, if archive is not set.
func CopyIn(ctx context.Context, c *live.Client, from, to string, uid, gid uint32, archive, follow bool) error {
	look := os.Lstat
	if follow {
		look = os.Stat
	}
	st, err := look(from)
	if err != nil {
		return err
	}
	slash := strings.HasSuffix(to, "/")
	to = path.Clean("/" + to)
	there, err := stat(ctx, c, to, true)
	if err != nil {
		return err
	}
	switch {
	case there != nil && there.Mode&typeMask == typeDir:
		if base := filepath.Base(from); base != "." && base != ".." && base != "/" && !strings.HasSuffix(from, "/.") {
			to = path.Join(to, base)
		}
	case slash && !st.IsDir():
		return fault.With(fault.Host, "%s in the machine is not a folder", to)
	}
	in := &copyIn{ctx: ctx, c: c, uid: uid, gid: gid, archive: archive}
	return in.copy(from, to, st)
}

type copyIn struct {
	ctx      context.Context
	c        *live.Client
	uid, gid uint32
	archive  bool
}

// make gives a file of the machine its attributes, and makes it if it is a folder or a link.
func (x *copyIn) make(to string, kind uint32, st os.FileInfo, target string) error {
	in := live.MakeCall{Mode: kind | uint32(st.Mode().Perm()), UID: x.uid, GID: x.gid,
		Mtime: uint64(st.ModTime().UnixNano()), Path: to, Target: target}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && x.archive {
		in.UID, in.GID = sys.Uid, sys.Gid
	}
	out, err := x.c.Make(x.ctx, in)
	if err != nil {
		return err
	}
	return guestError("making", to, out.Errno)
}

func (x *copyIn) copy(from, to string, st os.FileInfo) error {
	switch {
	case st.Mode().IsRegular():
		return x.file(from, to, st)
	case st.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return x.make(to, typeLink, st, target)
	case !st.IsDir():
		return fault.With(fault.Host, "%s is neither file, folder nor link", from)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := x.make(to, typeDir, st, ""); err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went meanwhile
		}
		if err == nil {
			err = x.copy(filepath.Join(from, e.Name()), path.Join(to, e.Name()), info)
		}
		if err != nil {
			return err
		}
	}
	return x.make(to, typeDir, st, "") // its time again
}

func (x *copyIn) file(from, to string, st os.FileInfo) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := x.write(f, to); err != nil {
		return err
	}
	return x.make(to, typeFile, st, "")
}

// write makes a file of the machine of what is read.
func (x *copyIn) write(r io.Reader, to string) error {
	buf := make([]byte, chunk)
	for at, fresh := uint64(0), true; ; fresh = false {
		n, err := io.ReadFull(r, buf)
		over := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !over {
			return err
		}
		if n > 0 || fresh {
			out, err := x.c.Write(x.ctx, live.WriteCall{At: at, Fresh: fresh, Data: buf[:n], Path: to})
			if err == nil {
				err = guestError("writing", to, out.Errno)
			}
			if err != nil {
				return err
			}
			at += uint64(n)
		}
		if over {
			return nil
		}
	}
}

// ParsePlace splits MACHINE:PATH. Without a machine it is a path of the host, as is what
// has a slash before the colon.
func ParsePlace(s string) (machine, name string, err error) {
	m, p, ok := strings.Cut(s, ":")
	if !ok || strings.ContainsAny(m, "/") || m == "" || m == "." {
		return "", s, nil
	}
	if p == "" {
		return "", "", fmt.Errorf("%q: want MACHINE:PATH", s)
	}
	return m, p, CheckName(m)
}
