package vfs_test

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
)

func newTree(t testing.TB) (*caller.Ctx, *vfs.FSContext) {
	mem.InitHost(4096)
	fs := tmpfs.New(tmpfs.Options{Mode: 0o755})
	_, root := vfs.NewNamespace(fs.FileSystem, "test")
	ctx := vfs.NewFSContext(root)
	ctx.SetUmask(0)
	return caller.NewKernelCtx(), ctx
}

// thing is a file of the model; a hard link is the same thing twice.
type thing struct {
	kind   byte // 'd', 'f', 'l'
	kids   map[string]*thing
	target string
	links  int
}

// model is the slow reference of the tree: plain maps, every rule written out.
type model struct{ root *thing }

// walk resolves path from dir; at the end the parent and name of the last component.
func (m *model) walk(path string, follow bool, budget *int) (parent *thing, name string, found *thing, e linux.Errno) {
	return m.walkFrom(m.root, path, follow, budget, []*thing{})
}

func (m *model) walkFrom(dir *thing, path string, follow bool, budget *int, above []*thing) (*thing, string, *thing, linux.Errno) {
	if strings.HasPrefix(path, "/") {
		dir, above = m.root, nil
	}
	slash := strings.HasSuffix(path, "/")
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	if len(parts) == 0 {
		return nil, "", dir, 0
	}
	for i, p := range parts {
		last := i == len(parts)-1
		var next *thing
		switch p {
		case ".":
			next = dir
		case "..":
			next = dir
			if len(above) > 0 {
				next = above[len(above)-1]
				above = above[:len(above)-1]
			}
			dir = next
			if last {
				return nil, p, next, 0
			}
			continue
		default:
			next = dir.kids[p]
		}
		if next == nil {
			if last {
				return dir, p, nil, linux.ENOENT
			}
			return nil, "", nil, linux.ENOENT
		}
		if next.kind == 'l' && (!last || follow || slash) {
			if *budget--; *budget < 0 {
				return nil, "", nil, linux.ELOOP
			}
			rest := strings.Join(parts[i+1:], "/")
			text := next.target
			if rest != "" {
				text += "/" + rest
			}
			if slash {
				text += "/"
			}
			return m.walkFrom(dir, text, follow, budget, slices.Clone(above))
		}
		if last {
			if slash && next.kind != 'd' {
				return nil, "", nil, linux.ENOTDIR
			}
			if p == "." {
				return nil, p, next, 0
			}
			return dir, p, next, 0
		}
		if next.kind != 'd' {
			return nil, "", nil, linux.ENOTDIR
		}
		if p != "." {
			above = append(above, dir)
			dir = next
		}
	}
	panic("unreachable")
}

func (m *model) lookup(path string, follow bool) (*thing, linux.Errno) {
	budget := 40
	_, _, t, e := m.walk(path, follow, &budget)
	return t, e
}

func (m *model) parent(path string) (*thing, string, *thing, linux.Errno) {
	budget := 40
	return m.walk(path, false, &budget)
}

// make creates a plain name.
func (m *model) make(path string, t *thing) linux.Errno {
	dir, name, old, e := m.parent(path)
	if old != nil {
		return linux.EEXIST
	}
	if dir == nil {
		return e
	}
	dir.kids[name] = t
	t.links++
	return 0
}

func (m *model) remove(path string, dirs bool) linux.Errno {
	dir, name, old, e := m.parent(path)
	if old == nil {
		return e
	}
	switch {
	case dirs && old.kind != 'd':
		return linux.ENOTDIR
	case !dirs && old.kind == 'd':
		return linux.EISDIR
	case dirs && len(old.kids) > 0:
		return linux.ENOTEMPTY
	}
	delete(dir.kids, name)
	old.links--
	return 0
}

func (t *thing) contains(x *thing) bool {
	if t == x {
		return true
	}
	for _, k := range t.kids {
		if k.contains(x) {
			return true
		}
	}
	return false
}

func (m *model) rename(from, to string, flags uint32) linux.Errno {
	fd, fn, src, e := m.parent(from)
	if src == nil && e != linux.ENOENT || fd == nil {
		return e
	}
	td, tn, dst, e2 := m.parent(to)
	if td == nil {
		return e2
	}
	if src == nil {
		return linux.ENOENT
	}
	exchange := flags&linux.RENAME_EXCHANGE != 0
	switch {
	case exchange && dst == nil:
		return linux.ENOENT
	case dst != nil && flags&linux.RENAME_NOREPLACE != 0:
		return linux.EEXIST
	case src.contains(td):
		return linux.EINVAL
	case dst != nil && dst.contains(fd) && exchange:
		return linux.EINVAL
	case dst != nil && dst.contains(fd):
		return linux.ENOTEMPTY
	case src == dst:
		return 0
	}
	if exchange {
		fd.kids[fn], td.kids[tn] = dst, src
		return 0
	}
	if dst != nil {
		switch {
		case src.kind == 'd' && dst.kind != 'd':
			return linux.ENOTDIR
		case src.kind != 'd' && dst.kind == 'd':
			return linux.EISDIR
		case len(dst.kids) > 0:
			return linux.ENOTEMPTY
		}
		dst.links--
	}
	delete(fd.kids, fn)
	td.kids[tn] = src
	return 0
}

var names = []string{"a", "b", "c"}

// drawPath draws a path of up to four components, sometimes with dots.
func drawPath(t *rapid.T, label string) string {
	n := rapid.IntRange(1, 4).Draw(t, label+"depth")
	p := ""
	for i := range n {
		name := rapid.SampledFrom(names).Draw(t, label)
		if i < n-1 {
			name = rapid.SampledFrom([]string{name, name, name, name, ".", ".."}).Draw(t, label+"dots")
		}
		p += "/" + name
	}
	return p
}

// Random changes of names against the model; after each the whole tree is compared.
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, ctx := newTree(nil)
		m := &model{root: &thing{kind: 'd', kids: map[string]*thing{}}}
		same := func(op string, got, want linux.Errno) {
			if got != want {
				t.Fatalf("%s: %v, want %v", op, got, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"mkdir": func(t *rapid.T) {
				p := drawPath(t, "p")
				want := m.make(p, &thing{kind: 'd', kids: map[string]*thing{}})
				same("mkdir "+p, vfs.MkdirAt(c, ctx, nil, p, 0o755), want)
			},
			"create": func(t *rapid.T) {
				p := drawPath(t, "p")
				want := m.make(p, &thing{kind: 'f'})
				f, e := vfs.Open(c, ctx, nil, p, linux.O_CREAT|linux.O_EXCL|linux.O_RDWR, 0o644)
				if f != nil {
					f.Put()
				}
				same("create "+p, e, want)
			},
			"symlink": func(t *rapid.T) {
				p, to := drawPath(t, "p"), drawPath(t, "to")
				if rapid.Bool().Draw(t, "relative") {
					to = to[1:]
				}
				want := m.make(p, &thing{kind: 'l', target: to})
				same("symlink "+p, vfs.SymlinkAt(c, ctx, to, nil, p), want)
			},
			"link": func(t *rapid.T) {
				from, p := drawPath(t, "from"), drawPath(t, "p")
				src, want := m.lookup(from, false)
				if want == 0 {
					switch dir, _, old, e := m.parent(p); {
					case old != nil:
						want = linux.EEXIST
					case dir == nil:
						want = e
					case src.kind == 'd':
						want = linux.EPERM
					default:
						want = m.make(p, src)
					}
				}
				same("link "+from+" "+p, vfs.LinkAt(c, ctx, nil, from, nil, p, 0), want)
			},
			"unlink": func(t *rapid.T) {
				p := drawPath(t, "p")
				same("unlink "+p, vfs.UnlinkAt(c, ctx, nil, p), m.remove(p, false))
			},
			"rmdir": func(t *rapid.T) {
				p := drawPath(t, "p")
				same("rmdir "+p, vfs.RmdirAt(c, ctx, nil, p), m.remove(p, true))
			},
			"rename": func(t *rapid.T) {
				from, to := drawPath(t, "from"), drawPath(t, "to")
				flags := rapid.SampledFrom([]uint32{0, 0, linux.RENAME_NOREPLACE, linux.RENAME_EXCHANGE}).Draw(t, "flags")
				same(fmt.Sprintf("rename %s %s %d", from, to, flags),
					vfs.RenameAt(c, ctx, nil, from, nil, to, flags), m.rename(from, to, flags))
			},
			"lookup": func(t *rapid.T) {
				p := drawPath(t, "p")
				if rapid.Bool().Draw(t, "slash") {
					p += "/"
				}
				follow := rapid.Bool().Draw(t, "follow")
				flags := vfs.WalkFlags(0)
				if follow {
					flags = vfs.FollowLast
				}
				want, we := m.lookup(p, follow)
				got, e := vfs.Lookup(c, ctx, nil, p, flags)
				same("lookup "+p, e, we)
				if e == 0 && kindOf(got.Inode()) != want.kind {
					t.Fatalf("lookup %s: %c, want %c", p, kindOf(got.Inode()), want.kind)
				}
			},
			"": func(t *rapid.T) { compare(t, c, ctx, "", m.root) },
		})
	})
}

func kindOf(i *vfs.Inode) byte {
	switch i.Type() {
	case linux.S_IFDIR:
		return 'd'
	case linux.S_IFLNK:
		return 'l'
	}
	return 'f'
}

// compare checks a directory and all below: names, kinds, links, "..", paths.
func compare(t *rapid.T, c *caller.Ctx, ctx *vfs.FSContext, path string, want *thing) {
	p, e := vfs.Lookup(c, ctx, nil, path+"/", 0)
	if e != 0 {
		t.Fatalf("%s: %v", path, e)
	}
	if s, ok := p.String(ctx.Root()); !ok || s != path && path != "" {
		t.Fatalf("%s calls itself %s", path, s)
	}
	f, e := vfs.OpenPath(c, p, linux.O_RDONLY)
	if e != 0 {
		t.Fatal(e)
	}
	var got []string
	f.Ops.(vfs.DirReader).ReadDir(c, f, func(d *vfs.Dirent) bool {
		if d.Name != "." && d.Name != ".." {
			got = append(got, d.Name)
		}
		return true
	})
	f.Put()
	sort.Strings(got)
	if names := slices.Sorted(maps.Keys(want.kids)); !slices.Equal(got, names) {
		t.Fatalf("%s has %v, want %v", path, got, names)
	}
	subdirs := 0
	for name, k := range want.kids {
		q, e := vfs.Lookup(c, ctx, nil, path+"/"+name, 0)
		if e != 0 || kindOf(q.Inode()) != k.kind {
			t.Fatalf("%s/%s: %v", path, name, e)
		}
		if k.kind == 'd' {
			subdirs++
			compare(t, c, ctx, path+"/"+name, k)
		} else if int(q.Inode().Nlink()) != k.links {
			t.Fatalf("%s/%s has %d links, want %d", path, name, q.Inode().Nlink(), k.links)
		}
	}
	if n := int(p.Inode().Nlink()); n != 2+subdirs {
		t.Fatalf("%s has %d links, want %d", path, n, 2+subdirs)
	}
}

// The end of a file system does not use more stack the deeper its tree is.
func TestDropDeepTree(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 18))
	newTree(t)
	fs := tmpfs.New(tmpfs.Options{Mode: 0o755, MaxInodes: 1 << 20})
	_, root := vfs.NewNamespace(fs.FileSystem, "test")
	c, ctx := caller.NewKernelCtx(), vfs.NewFSContext(root)
	for range 10000 {
		for _, name := range []string{"a", "b"} {
			if e := vfs.MkdirAt(c, ctx, nil, name, 0o755); e != 0 {
				t.Fatal(e)
			}
		}
		next, e := vfs.Lookup(c, ctx, nil, "a", vfs.FollowLast)
		if e == 0 {
			e = ctx.Chdir(c, next)
		}
		if e != 0 {
			t.Fatal(e)
		}
	}
	var st linux.Statfs
	ctx.Release()
	vfs.DropTree(fs.Root)
	fs.FileSystem.Stat(&st)
	if used := st.Files - st.Ffree; used != 1 {
		t.Errorf("%d inodes are left", used)
	}
}
