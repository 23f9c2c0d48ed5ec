package sysfs

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/inet"
)

func TestTree(t *testing.T) {
	mem.InitHost(64)
	_, root := vfs.NewNamespace(FS(), "sysfs")
	c, ctx := caller.NewKernelCtx(), vfs.NewFSContext(root)
	AddInterface(nil, &inet.Interface{Name: "lo", Index: 1, Loopback: true})
	AddInterface(nil, &inet.Interface{Name: "eth7", Index: 7, MTU: 1400})
	for path, want := range map[string]string{
		"/devices/system/cpu/online":                "0\n",
		"/kernel/mm/transparent_hugepage/enabled":   "always madvise [never]\n",
		"/class/net/eth7/mtu":                       "1400\n",
		"/class/net/lo/ifindex":                     "1\n",
		"/class/net/lo/operstate":                   "unknown\n",
		"/class/net/eth7/operstate":                 "up\n",
		"/class/net/eth7/carrier":                   "1\n",
		"/class/net/eth7/../eth7/tx_queue_len":      "1000\n",
		"/devices/system/cpu/cpu0/topology/core_id": "0\n",
	} {
		f, e := vfs.Open(c, ctx, nil, path, linux.O_RDONLY, 0)
		if e != 0 {
			t.Error(path, e)
			continue
		}
		b := make([]byte, 100)
		n, e := f.Ops.Read(c, f, uio.Bytes(b), 0)
		if string(b[:n]) != want || e != 0 {
			t.Errorf("%s: %q %v", path, b[:n], e)
		}
		if n, _ := f.Ops.Read(c, f, uio.Bytes(b), int64(n)); n != 0 {
			t.Error(path, "does not end")
		}
		f.Put()
	}
	if e := vfs.MkdirAt(c, ctx, nil, "/x", 0o755); e != linux.EPERM {
		t.Error(e)
	}
	if e := vfs.UnlinkAt(c, ctx, nil, "/devices/system/cpu/online"); e != linux.EPERM {
		t.Error(e)
	}
	if _, e := vfs.Lookup(c, ctx, nil, "/fs/cgroup", 0); e != linux.ENOENT {
		t.Error("control groups that do not work:", e)
	}
}
