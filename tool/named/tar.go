package named

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"

	"hardtack/idl/live"
	"hardtack/tool/fault"
)

// TarOut writes a tar of a file or a folder of the machine, whose names begin with its last
// part, as docker cp does. Owners are those of the machine.
func TarOut(ctx context.Context, c *live.Client, from string, w io.Writer, follow bool) error {
	from = path.Clean("/" + from)
	st, err := stat(ctx, c, from, follow)
	if err != nil {
		return err
	}
	if st == nil {
		return fault.With(fault.Host, "there is no %s in the machine", from)
	}
	tw := tar.NewWriter(w)
	if err := tarOut(ctx, c, from, strings.TrimPrefix(path.Base(from), "/"), tw, st, 0); err != nil {
		return err
	}
	return tw.Close()
}

func tarOut(ctx context.Context, c *live.Client, from, name string, tw *tar.Writer, st *live.StatReply, depth int) error {
	if depth > depthMost {
		return fault.With(fault.Host, "%s in the machine: too many folders in each other", from)
	}
	h := &tar.Header{Name: name, Mode: int64(st.Mode & 0o7777), Uid: int(st.UID), Gid: int(st.GID), ModTime: time.Unix(0, int64(st.Mtime)), Format: tar.FormatPAX}
	switch st.Mode & typeMask {
	case typeLink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, st.Target
		return tw.WriteHeader(h)
	case typeFile:
		h.Typeflag, h.Size = tar.TypeReg, int64(min(st.Size, 1<<62))
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		return fileToTar(ctx, c, from, tw, h.Size)
	case typeDir:
	default:
		return fault.With(fault.Host, "%s in the machine is neither file, folder nor link", from)
	}
	if h.Typeflag, h.Name = tar.TypeDir, name+"/"; name != "" {
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
	}
	return eachIn(ctx, c, from, func(full, child string, st *live.StatReply) error {
		return tarOut(ctx, c, full, path.Join(name, child), tw, st, depth+1)
	})
}

// fileToTar writes so many bytes of a file: what it grows by meanwhile is left out, and a file
// that shrinks has zeros at its end.
func fileToTar(ctx context.Context, c *live.Client, from string, w io.Writer, size int64) error {
	for at := int64(0); at < size; {
		out, err := c.Read(ctx, live.ReadCall{At: uint64(at), Path: from})
		if err == nil {
			err = guestError("reading", from, out.Errno)
		}
		if err != nil {
			return err
		}
		b := out.Data[:min(int64(len(out.Data)), size-at)]
		if len(b) == 0 {
			b = make([]byte, min(chunk, size-at))
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		at += int64(len(b))
	}
	return nil
}

// TarIn unpacks a tar in a folder of the machine, which must be there. Files are root's, or with
// archive those of the tar's owners. A name that leads out of the folder is refused.
func TarIn(ctx context.Context, c *live.Client, r io.Reader, to string, archive bool) error {
	to = path.Clean("/" + to)
	st, err := stat(ctx, c, to, true)
	if err != nil {
		return err
	}
	if st == nil || st.Mode&typeMask != typeDir {
		return fault.With(fault.Host, "%s in the machine is not a folder", to)
	}
	x := &tarIn{copyIn: copyIn{ctx: ctx, c: c, archive: archive}, to: to, made: map[string]bool{to: true}}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return x.times()
		}
		if err != nil {
			return fault.Bad("the tar: %w", err)
		}
		if err := x.member(h, tr); err != nil {
			return err
		}
	}
}

type tarIn struct {
	copyIn
	to   string
	made map[string]bool // folders of the machine, those above them too
	dirs []*tar.Header   // whose times are set last
}

// member makes a file.
func (x *tarIn) member(h *tar.Header, r io.Reader) error {
	if !fs.ValidPath(path.Clean(h.Name)) {
		return fault.Bad("the tar: %q leads out of the folder", h.Name)
	}
	name := path.Join(x.to, h.Name)
	if name == x.to {
		return nil
	}
	if err := x.above(path.Dir(name)); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		x.made[name] = true
		x.dirs = append(x.dirs, h)
		return x.header(name, typeDir, h, "")
	case tar.TypeSymlink:
		return x.header(name, typeLink, h, h.Linkname)
	case tar.TypeReg:
		st, err := stat(x.ctx, x.c, name, false)
		if err != nil {
			return err
		}
		if st != nil && st.Mode&typeMask != typeFile {
			return fault.With(fault.Host, "%s in the machine is no file", name)
		}
		if err := x.write(r, name); err != nil {
			return err
		}
		return x.header(name, typeFile, h, "")
	case tar.TypeXGlobalHeader:
		return nil
	}
	return fault.Bad("the tar: %q is neither file, folder nor symbolic link", h.Name)
}

// above makes sure of a folder. A symbolic link in its place, which the tar may have brought
// to lead elsewhere, is refused.
func (x *tarIn) above(dir string) error {
	if x.made[dir] {
		return nil
	}
	if err := x.above(path.Dir(dir)); err != nil {
		return err
	}
	st, err := stat(x.ctx, x.c, dir, false)
	switch {
	case err != nil:
		return err
	case st == nil:
		err = x.header(dir, typeDir, &tar.Header{Mode: 0o755, ModTime: time.Now()}, "")
	case st.Mode&typeMask != typeDir:
		return fault.With(fault.Host, "%s in the machine is not a folder", dir)
	}
	x.made[dir] = err == nil
	return err
}

// header gives a file its attributes, and makes it if it is a folder or a link.
func (x *tarIn) header(name string, kind uint32, h *tar.Header, target string) error {
	in := live.MakeCall{Mode: kind | uint32(h.Mode)&0o777, Mtime: uint64(h.ModTime.UnixNano()), Path: name, Target: target}
	if x.archive && h.Uid >= 0 && h.Gid >= 0 {
		in.UID, in.GID = uint32(h.Uid), uint32(h.Gid)
	}
	out, err := x.c.Make(x.ctx, in)
	if err == nil {
		err = guestError("making", name, out.Errno)
	}
	return err
}

// times sets those of folders again, the inner ones first.
func (x *tarIn) times() error {
	for i := len(x.dirs) - 1; i >= 0; i-- {
		err := x.header(path.Join(x.to, x.dirs[i].Name), typeDir, x.dirs[i], "")
		if err != nil && !errors.Is(err, syscall.ENOENT) {
			return err
		}
	}
	return nil
}
