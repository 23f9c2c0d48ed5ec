package disktest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/driver"
	"hardtack/driver/ahci"
	"hardtack/driver/nvme"
	"hardtack/driver/qtest"
	"hardtack/driver/virtio"
	"hardtack/driver/virtio/blk"
	"hardtack/driver/virtio/mmio"
	virtiopci "hardtack/driver/virtio/pci"
	"hardtack/kernel/disk/blockdev"
)

// diskSize is that of all disks here.
const diskSize = 8 << 20

// wiring is a controller and how to reach it.
type wiring struct {
	name   string
	device string // QEMU's, for the drive "d"
	fua    bool
	open   func(t *testing.T, args []string) (*platform, blockdev.Device)
}

var wirings = []wiring{
	{"virtio mmio", "virtio-blk-device,drive=d,serial=s1,num-queues=2", false, openMMIO},
	{"virtio pci", "virtio-blk-pci,drive=d,serial=s1,num-queues=2", false, openPCI},
	{"virtio pin", "virtio-blk-pci,drive=d,serial=s1,vectors=0", false, openPCI},
	{"ahci", "ide-hd,drive=d,serial=s1,bus=ide.0", false, openPCI},
	{"nvme", "nvme,drive=d,serial=s1", true, openPCI},
}

// platform is a machine whose devices can be pulled out.
type platform struct {
	*qtest.Machine
	pulled atomic.Bool
}

func (p *platform) MapDevice(phys, size uint64) driver.MMIO {
	return registers{p.Machine.MapDevice(phys, size), p}
}

// registers read as ones when the device is gone.
type registers struct {
	m driver.MMIO
	p *platform
}

func get[T uint8 | uint16 | uint32 | uint64](r registers, off uint64, read func(uint64) T) T {
	if r.p.pulled.Load() {
		return ^T(0)
	}
	return read(off)
}

func set[T any](r registers, off uint64, v T, write func(uint64, T)) {
	if !r.p.pulled.Load() {
		write(off, v)
	}
}

func (r registers) Read8(off uint64) uint8       { return get(r, off, r.m.Read8) }
func (r registers) Read16(off uint64) uint16     { return get(r, off, r.m.Read16) }
func (r registers) Read32(off uint64) uint32     { return get(r, off, r.m.Read32) }
func (r registers) Read64(off uint64) uint64     { return get(r, off, r.m.Read64) }
func (r registers) Write8(off uint64, v uint8)   { set(r, off, v, r.m.Write8) }
func (r registers) Write16(off uint64, v uint16) { set(r, off, v, r.m.Write16) }
func (r registers) Write32(off uint64, v uint32) { set(r, off, v, r.m.Write32) }
func (r registers) Write64(off uint64, v uint64) { set(r, off, v, r.m.Write64) }

func openMMIO(t *testing.T, args []string) (*platform, blockdev.Device) {
	p := &platform{Machine: qtest.Start(t, "microvm,ioapic2=off", "/machine/ioapic", 0,
		append([]string{"-global", "virtio-mmio.force-legacy=false"}, args...)...)}
	for n := range uint32(8) {
		tr, err := mmio.Probe(p, 0xfeb00000+uint64(n)*mmio.Size, 16+n)
		if err != nil {
			t.Fatal(err)
		}
		if tr != nil {
			return p, openVirtio(t, p, tr)
		}
	}
	t.Fatal("no device")
	return nil, nil
}

func openVirtio(t *testing.T, p *platform, tr virtio.Transport) blockdev.Device {
	d, err := blk.New(p, tr, 2)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func openPCI(t *testing.T, args []string) (*platform, blockdev.Device) {
	p := &platform{Machine: qtest.Start(t, "q35", "/machine/q35/ioapic", 0, args...)}
	for _, f := range qtest.Functions(p) {
		switch {
		case ahci.Is(f):
			c, problems, err := ahci.New(p, f)
			if err != nil || len(problems) > 0 {
				t.Fatal(err, problems)
			}
			if len(c.Disks()) == 1 {
				return p, c.Disks()[0]
			}
		case nvme.Is(f):
			c, err := nvme.New(p, f, 2)
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Disks()) != 1 {
				t.Fatalf("%d namespaces", len(c.Disks()))
			}
			return p, c.Disks()[0]
		default:
			tr, err := virtiopci.Probe(p, f)
			if err != nil {
				t.Fatal(err)
			}
			if tr != nil {
				return p, openVirtio(t, p, tr)
			}
		}
	}
	t.Fatal("no device")
	return nil, nil
}

// image makes a disk's file.
func image(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(file, make([]byte, diskSize), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// rig drives a device by hand.
type rig struct {
	t       *testing.T
	p       *platform
	dev     blockdev.Device
	limits  blockdev.Limits
	mu      sync.Mutex
	waiting map[*blockdev.Command]chan struct{}
	strays  atomic.Int32 // completions that nobody waits for
}

// start opens a wiring with a drive "d"; more are its properties, like
// ",readonly=on", or, beginning with a dash, whole arguments instead.
func (w *wiring) start(t *testing.T, file, more string) *rig {
	args := []string{"-drive", "if=none,id=d,format=raw,discard=unmap,file=" + file + more}
	if strings.HasPrefix(more, "-") {
		args = strings.Fields(more)
	}
	p, dev := w.open(t, append(args, "-device", w.device))
	r := &rig{t: t, p: p, dev: dev, limits: dev.Limits(), waiting: map[*blockdev.Command]chan struct{}{}}
	dev.Start(func(_ int, batch []*blockdev.Command) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, c := range batch {
			if ch := r.waiting[c]; ch != nil {
				close(ch)
				delete(r.waiting, c)
			} else {
				r.strays.Add(1)
			}
		}
	})
	return r
}

// memory returns n bytes that the device can reach, in pieces of up to piece
// bytes that are not neighbours.
func (r *rig) memory(n, piece int) (b [][]byte, segs []blockdev.Segment) {
	for n > 0 {
		k := min(n, piece)
		m, ok := r.p.AllocDMA(driver.Pages(k) + 1) // a hole behind it
		if !ok {
			r.t.Fatal("no memory")
		}
		b, segs = append(b, m.Virt[:k]), append(segs, blockdev.Segment{Phys: m.Phys, Len: uint32(k)})
		n -= k
	}
	return b, segs
}

// submit starts a command, when the device takes it.
func (r *rig) submit(queue int, c *blockdev.Command) <-chan struct{} {
	r.t.Helper()
	ch := make(chan struct{})
	r.mu.Lock()
	r.waiting[c] = ch
	r.mu.Unlock()
	for range 20000 {
		if r.dev.Submit(queue, []*blockdev.Command{c}) == 1 {
			return ch
		}
		time.Sleep(time.Millisecond)
	}
	r.t.Fatalf("the device does not take a %v", c.Op)
	return nil
}

// patience is longer than any machine needs.
const patience = 60 * time.Second

func (r *rig) wait(ch <-chan struct{}, what any) {
	r.t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		r.t.Fatalf("no completion: %v", what)
	}
}

// do executes a command.
func (r *rig) do(c *blockdev.Command) error {
	r.t.Helper()
	r.wait(r.submit(0, c), c.Op)
	if c.Err != 0 {
		return c.Err
	}
	return nil
}

func (r *rig) must(c *blockdev.Command) {
	r.t.Helper()
	if err := r.do(c); err != nil {
		r.t.Fatalf("%v of %d sectors at %d: %v", c.Op, c.Sectors, c.Sector, err)
	}
}

// blkdebug are the arguments of a drive "d" that errs.
func blkdebug(file, inject string) string {
	return fmt.Sprintf("-blockdev driver=file,node-name=f,filename=%s -blockdev driver=blkdebug,node-name=b,image=f,%s -blockdev driver=raw,node-name=d,file=b", file, inject)
}
