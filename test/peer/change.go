package peer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"hardtack/abi/linux"
	"hardtack/ext4"
)

// changer changes a disk at random by our library: what peer.c does on Linux. It
// finds the directories d0 to d7 or makes them.
type changer struct {
	fs   *ext4.FS
	rng  *rand.Rand
	dirs []*ext4.Inode
}

// acl is an access control list as setxattr(2) takes it: user 1000 may read.
var acl = []byte{2, 0, 0, 0,
	0x01, 0, 7, 0, 0xff, 0xff, 0xff, 0xff, 0x02, 0, 4, 0, 0xe8, 3, 0, 0, 0x04, 0, 0, 0, 0xff, 0xff, 0xff, 0xff,
	0x10, 0, 4, 0, 0xff, 0xff, 0xff, 0xff, 0x20, 0, 1, 0, 0xff, 0xff, 0xff, 0xff}

func change(fs *ext4.FS, seed uint64, steps int) error {
	c := changer{fs: fs, rng: rand.New(rand.NewPCG(seed, 1))}
	root, err := fs.Root()
	if err != nil {
		return err
	}
	defer fs.Put(root)
	for i := range 8 {
		d, err := c.lookup(root, fmt.Sprint("d", i))
		if err == nil && d == nil {
			d, err = fs.Create(root, fmt.Sprint("d", i), ext4.NewInode{Mode: linux.S_IFDIR | 0o755})
		}
		if err != nil {
			return err
		}
		defer fs.Put(d)
		c.dirs = append(c.dirs, d)
	}
	for i := range steps {
		if err := c.step(i); err != nil && !harmless(err) {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return c.names(root)
}

// harmless are errors that a random change may meet.
func harmless(err error) bool {
	for _, e := range []linux.Errno{linux.EEXIST, linux.ENOSPC, linux.ENOENT, linux.ENOTEMPTY, linux.EISDIR, linux.ENOTDIR, linux.EPERM, linux.ENODATA, linux.EINVAL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// lookup finds a file, nil if there is none.
func (c *changer) lookup(dir *ext4.Inode, name string) (*ext4.Inode, error) {
	ino, err := c.fs.Lookup(dir, name)
	if err != nil || ino == 0 {
		return nil, err
	}
	return c.fs.Get(ino)
}

func (c *changer) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 1 + byte(c.rng.Uint32N(255))
	}
	return b
}

func isReg(in *ext4.Inode) bool { return in.Mode()&linux.S_IFMT == linux.S_IFREG }
func isDir(in *ext4.Inode) bool { return in.Mode()&linux.S_IFMT == linux.S_IFDIR }

// step does one thing.
func (c *changer) step(n int) error {
	fs, rng := c.fs, c.rng
	dir, other := c.dirs[rng.IntN(8)], c.dirs[rng.IntN(8)]
	name := fmt.Sprintf("f%d", rng.IntN(60))
	in, err := c.lookup(dir, name)
	if err != nil {
		return err
	}
	if in != nil {
		defer fs.Put(in)
	}
	if in == nil {
		return c.create(dir, other, name)
	}
	switch rng.IntN(12) {
	case 0, 1:
		if isReg(in) {
			return c.write(in)
		}
	case 2:
		if !isDir(in) {
			return fs.Link(other, fmt.Sprintf("link%d", n), in)
		}
	case 3, 4:
		if !isDir(in) {
			return fs.Rename(dir, name, other, fmt.Sprintf("renamed-%s-%d", strings.Repeat("r", rng.IntN(100)), n), uint32(rng.IntN(2)))
		}
	case 5:
		return fs.Unlink(dir, name, in)
	case 6:
		if isReg(in) {
			size := int64(rng.IntN(100000))
			if rng.IntN(4) == 0 {
				size = 7 << 30
			}
			return fs.Truncate(in, size)
		}
	case 7:
		if isReg(in) {
			modes := []uint32{0, linux.FALLOC_FL_KEEP_SIZE, linux.FALLOC_FL_KEEP_SIZE | linux.FALLOC_FL_PUNCH_HOLE, linux.FALLOC_FL_ZERO_RANGE}
			return fs.Fallocate(in, modes[rng.IntN(4)], int64(rng.IntN(100000)), 1+int64(rng.IntN(100000)))
		}
	case 8:
		names := []string{"trusted.x", "security.y", "user.a", "user.bcd", "user.a-longer-name-than-that"}
		of := 2 // only files and directories have attributes of users
		if isReg(in) || isDir(in) {
			of = len(names)
		}
		return fs.Setxattr(in, names[rng.IntN(of)], c.bytes(rng.IntN(40)*(1+rng.IntN(10))), 0)
	case 9:
		if in.Mode()&linux.S_IFMT == linux.S_IFLNK {
			return nil
		}
		if isDir(in) {
			return fs.Setxattr(in, "system.posix_acl_default", acl, 0)
		}
		return fs.Setxattr(in, "system.posix_acl_access", acl, 0)
	case 10:
		if list, err := fs.Listxattr(in); err == nil && len(list) > 0 {
			return fs.Removexattr(in, list[rng.IntN(len(list))])
		}
	case 11:
		mode, uid, gid := rng.Uint32N(0o10000), rng.Uint32N(70000), rng.Uint32N(70000)
		mtime := rng.Int64N(9e18) - 2e18 // from 1906 to 2191
		return fs.SetAttr(in, ext4.Attr{Mode: &mode, UID: &uid, GID: &gid, Mtime: &mtime})
	}
	return nil
}

// write writes somewhere, and sometimes makes it durable.
func (c *changer) write(in *ext4.Inode) error {
	if _, err := c.fs.WriteAt(in, c.bytes(1+c.rng.IntN(60000)), int64(c.rng.IntN(200000))); err != nil {
		return err
	}
	if c.rng.IntN(4) == 0 {
		return c.fs.Fsync(in, c.rng.IntN(2) == 0)
	}
	return nil
}

// create makes a file of any kind.
func (c *changer) create(dir, other *ext4.Inode, name string) error {
	n := ext4.NewInode{Mode: linux.S_IFREG | c.rng.Uint32N(0o1000), UID: c.rng.Uint32N(70000)}
	switch c.rng.IntN(10) {
	case 0:
		n.Mode = linux.S_IFDIR | 0o755
	case 1:
		n.Mode, n.Target = linux.S_IFLNK|0o777, strings.Repeat("t", 1+c.rng.IntN(59)*(1+c.rng.IntN(5)))
	case 2:
		n.Mode, n.Rdev = linux.S_IFCHR|0o600, linux.Makedev(c.rng.Uint32N(4000), c.rng.Uint32N(1000000))
	case 3:
		n.Mode = linux.S_IFIFO | 0o600
	}
	in, err := c.fs.Create(dir, name, n)
	if err != nil {
		return err
	}
	defer c.fs.Put(in)
	if !isReg(in) {
		return nil
	}
	for i := range 1 + c.rng.IntN(2)*c.rng.IntN(30) { // in many pieces, sometimes
		if _, err := c.fs.WriteAt(in, c.bytes(1+c.rng.IntN(20000)), int64(i)*3*65536); err != nil {
			return err
		}
	}
	return nil
}

// names makes a directory with an index, and takes names from it, whoever made
// them.
func (c *changer) names(root *ext4.Inode) error {
	dir, err := c.lookup(root, "names")
	if err == nil && dir == nil {
		dir, err = c.fs.Create(root, "names", ext4.NewInode{Mode: linux.S_IFDIR | 0o755})
	}
	if err != nil {
		return err
	}
	defer c.fs.Put(dir)
	for range 500 {
		name := fmt.Sprintf("a-name-that-takes-some-room-%d", c.rng.IntN(900))
		in, err := c.lookup(dir, name)
		if err == nil && in == nil {
			in, err = c.fs.Create(dir, name, ext4.NewInode{Mode: linux.S_IFREG | 0o644})
		} else if err == nil && c.rng.IntN(2) == 0 {
			err = c.fs.Unlink(dir, name, in)
		}
		if in != nil {
			if e := c.fs.Put(in); err == nil {
				err = e
			}
		}
		if err != nil && !harmless(err) {
			return err
		}
	}
	return nil
}
