package devfs

import (
	"bytes"
	"os"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/random"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
)

func TestMain(m *testing.M) {
	for minor, open := range MemDevices {
		vfs.RegisterChar(linux.MEM_MAJOR, minor, open)
	}
	os.Exit(m.Run())
}

func machine(t *testing.T) (*caller.Ctx, *vfs.FSContext) {
	mem.InitHost(4096)
	random.Stir(nil, 256) // /dev/random is to be ready
	_, root := vfs.NewNamespace(tmpfs.New(tmpfs.Options{}).FileSystem, "rootfs")
	c, ctx := caller.NewKernelCtx(), vfs.NewFSContext(root)
	if e := Mount(c, ctx); e != 0 {
		t.Fatal(e)
	}
	return c, ctx
}

func TestMemoryDevices(t *testing.T) {
	c, ctx := machine(t)
	for _, x := range []struct {
		name    string
		read    int         // bytes of 10,000
		written linux.Errno // what a write gives
	}{{"null", 0, 0}, {"zero", 10000, 0}, {"full", 10000, linux.ENOSPC}, {"random", 10000, 0}, {"urandom", 10000, 0}} {
		f, e := vfs.Open(c, ctx, nil, "/dev/"+x.name, linux.O_RDWR, 0)
		if e != 0 {
			t.Fatal(x.name, e)
		}
		b := bytes.Repeat([]byte{7}, 10000)
		n, e := f.Ops.Read(c, f, uio.Bytes(b), 0)
		if n != x.read || e != 0 {
			t.Error(x.name, "read", n, e)
		}
		zero := bytes.Count(b[:n], []byte{0})
		if random := x.name == "random" || x.name == "urandom"; n > 0 && (zero == n) == random {
			t.Error(x.name, "gave", zero, "zeros of", n)
		}
		n, e = f.Ops.Write(c, f, uio.Bytes(make([]byte, 100)), 0)
		if e != x.written || e == 0 && n != 100 {
			t.Error(x.name, "write", n, e)
		}
		f.Put()
	}
	f, _ := vfs.Open(c, ctx, nil, "/dev/zero", linux.O_RDWR, 0)
	defer f.Put()
	if o, e := f.Ops.(vfs.Mapper).Map(c, f); e != 0 || o != mem.Anonymous {
		t.Error("mappings of /dev/zero are not anonymous memory")
	}
	if _, e := vfs.Open(c, ctx, nil, "/dev/kmsg", linux.O_WRONLY, 0); e != 0 {
		t.Error(e)
	}
	user := caller.NewKernelCtx()
	user.SetCred(&creds.Cred{UID: 1000, EUID: 1000, SUID: 1000, FSUID: 1000})
	if _, e := vfs.Open(user, ctx, nil, "/dev/kmsg", linux.O_RDONLY, 0); e != linux.EPERM {
		t.Error("a user reads the log:", e)
	}
	settings.DmesgRestrict.Set(0)
	if _, e := vfs.Open(user, ctx, nil, "/dev/kmsg", linux.O_RDONLY, 0); e != 0 {
		t.Error("a user reads the log that anybody may read:", e)
	}
	settings.DmesgRestrict.Set(1)
	vfs.MknodAt(c, ctx, nil, "/dev/none", linux.S_IFCHR|0o666, linux.Makedev(250, 1))
	if _, e := vfs.Open(c, ctx, nil, "/dev/none", linux.O_RDONLY, 0); e != linux.ENXIO {
		t.Error("a device nobody registered:", e)
	}
}

func TestPseudoTerminals(t *testing.T) {
	c, ctx := machine(t)
	if e := AddPTS(c, 3); e != 0 {
		t.Fatal(e)
	}
	p, e := vfs.Lookup(c, ctx, nil, "/dev/pts/3", 0)
	if e != 0 || p.Inode().Rdev != linux.Makedev(136, 3) || p.Inode().Mode() != linux.S_IFCHR|0o620 {
		t.Fatal(e)
	}
	for _, name := range []string{"/dev/ptmx", "/dev/pts/ptmx"} {
		ptmx, e := vfs.Lookup(c, ctx, nil, name, 0)
		if got := PTSPath(ptmx, 3); e != 0 || got != p {
			t.Errorf("%s: the path of the slave is another one (%v)", name, e)
		}
	}
	if elsewhere, e := vfs.Lookup(c, ctx, nil, "/dev/null", 0); e != 0 || PTSPath(elsewhere, 3) != p || !PTSPath(ctx.Root(), 3).Zero() {
		t.Error("a devpts is found beside what is not there", e)
	}
	if e := AddPTS(c, 3); e != linux.EEXIST {
		t.Error(e)
	}
	RemovePTS(3)
	if _, e := vfs.Lookup(c, ctx, nil, "/dev/pts/3", 0); e != linux.ENOENT {
		t.Error(e)
	}
}
