package guest

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/driver"
	"hardtack/driver/virtio/queue"
	"hardtack/driver/virtio/softdev"
	"hardtack/test/guest/ring/page"
)

const (
	ringMemory   = 128 << 20
	ringTime     = 3 * time.Second
	ringRequests = 1000        // or more, for what goes wrong once in some hundreds
	ringLimit    = time.Minute // for a machine that does not run both sides at once
)

// TestRing lets the driver's side of a virtqueue, in a guest, race with a device outside
// of it: at each request the device goes to sleep, asking for a notification, while the
// driver publishes the next, and completes one while the driver asks for an interrupt.
// Neither may miss the other. The machine has one processor: QEMU then leaves out what
// orders the driver's accesses to memory, where it can.
func TestRing(t *testing.T) {
	needGuest(t)
	if runtime.NumCPU() < 2 {
		t.Skip("needs two processors: the two sides have to run at once")
	}
	repo, dir := repository(t), t.TempDir()
	if err := goBuild(repo, filepath.Join(dir, "ring"), "./test/guest/ring"); err != nil {
		t.Fatal(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "ring")
	ram := ramFile(t)
	mem, err := unix.Mmap(int(ram.Fd()), 0, ringMemory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	magic := rand.Text()[:page.MagicSize]
	flags := []string{"--cpus", "1", "--memory", fmt.Sprint(ringMemory>>20, "M"), "--net", "none",
		"--qemu-arg", "-object", "--qemu-arg", fmt.Sprintf("memory-backend-file,id=ram,size=%d,mem-path=%s,share=on", ringMemory, ram.Name()),
		"--qemu-arg", "-machine", "--qemu-arg", "memory-backend=ram"}
	type end struct {
		out string
		err error
	}
	ended := make(chan end, 1)
	go func() {
		out, err := inGuest(t, tool, root, 2*ringLimit, flags, "/ring", magic)
		ended <- end{out, err}
	}()
	var shared []byte
	for shared == nil {
		select {
		case e := <-ended:
			t.Fatalf("%v\n%s", e.err, tail(e.out, 30))
		case <-time.After(100 * time.Millisecond):
			shared = findPage(mem, magic)
		}
	}
	requests, missed := device(shared)
	e := <-ended
	if e.err != nil || !strings.Contains(e.out, " 0 interrupts missed") {
		t.Errorf("the driver: %v\n%s", e.err, tail(e.out, 5))
	}
	if missed != 0 {
		t.Errorf("the device missed %d notifications of %d requests", missed, requests)
	}
	if requests < ringRequests/10 {
		t.Errorf("only %d requests in %v", requests, ringLimit)
	}
	t.Logf("%d requests", requests)
}

// ramFile makes a file that a machine's memory can be, in memory where it can.
func ramFile(t *testing.T) *os.File {
	dir := "/dev/shm"
	if _, err := os.Stat(dir); err != nil {
		dir = t.TempDir()
	}
	f, err := os.CreateTemp(dir, "guestram")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close(); os.Remove(f.Name()) })
	if err := f.Truncate(ringMemory); err != nil {
		t.Fatal(err)
	}
	return f
}

// findPage returns the page that has a magic number, nil if there is none yet.
func findPage(mem []byte, magic string) []byte {
	for off := 0; off < len(mem); off += page.Size {
		if p := mem[off:][:page.Size:page.Size]; string(p[page.MagicAt:][:page.MagicSize]) == magic {
			return p
		}
	}
	return nil
}

// device serves the queue until there were requests enough, and stops the driver. It
// returns how many there were, and of how many it would never have had word: it was
// asleep, and the driver was done with the request.
func device(shared []byte) (requests, missed uint32) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m := softdev.NewMachine()
	m.Place(0, shared)
	desc, avail, used := layout(m)
	ring := softdev.NewRing(m, page.QueueSize, desc, avail, used, true)
	w := page.WordsOf(shared)
	defer w.Stop.Store(1)
	var notified uint32
	var sleep page.Aim
	start := time.Now()
	for {
		for r, ok := ring.Next(); ok; r, ok = ring.Next() {
			ring.Push(r.Head, 0)
			if ring.Flush() {
				w.Interrupt.Add(1)
			}
			requests++
			w.Completed.Store(requests)
		}
		sleep.Wait()
		there := ring.WantNotify()
		sleep.Late(there)
		if there {
			continue
		}
		for turn := 1; w.Notified.Load() == notified; turn++ {
			if int32(w.Decided.Load()-requests) > 0 && w.Notified.Load() == notified {
				missed++
				break
			}
			if turn%1000 != 0 {
				continue
			}
			if d := time.Since(start); d > ringLimit || d > ringTime && requests >= ringRequests {
				return requests, missed
			}
		}
		notified = w.Notified.Load()
	}
}

// layout is where in the page the queue's parts are: where the driver puts them.
func layout(m *softdev.Machine) (desc, avail, used uint64) {
	mem, _ := m.AllocDMA(1)
	q, err := queue.New(driver.DMA{Virt: mem.Virt}, page.QueueSize, queue.Options{EventIndex: true}, 0, nil)
	if err != nil {
		panic(err)
	}
	return q.Layout()
}
