// Command ring drives a virtqueue whose device is on the host: TestRing in test/guest
// tells the rest. Its argument is the magic number of its page.
package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"hardtack/driver"
	"hardtack/driver/virtio/queue"
	"hardtack/test/guest/ring/page"
)

type notifier struct{ w *page.Words }

func (n notifier) Notify(int) { n.w.Notified.Add(1) }

func main() {
	mem, err := unix.Mmap(-1, 0, page.Size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		fail(err)
	}
	w := page.WordsOf(mem)
	// The device knows no addresses but offsets in the page.
	q, err := queue.New(driver.DMA{Virt: mem}, page.QueueSize, queue.Options{EventIndex: true}, 0, notifier{w})
	if err != nil {
		fail(err)
	}
	q.EnableInterrupts(0)
	copy(mem[page.MagicAt:], os.Args[1])
	requests, missed := serve(q, w)
	fmt.Printf("ring: %d requests, %d late notifications, %d interrupts missed\n", requests, q.Late(), missed)
}

func fail(err error) {
	fmt.Println("ring:", err)
	os.Exit(1)
}

// serve makes one request after the other and waits for each as drivers do: it takes what
// is complete, asks for an interrupt, and sleeps if nothing has come meanwhile. Its sleep
// is a look at the word that the device interrupts by. That nothing would have woken it
// is seen by the device's other word.
func serve(q *queue.Queue, w *page.Words) (requests, missed uint32) {
	var done uint32
	var enable page.Aim
	out := []queue.Segment{{Phys: 0, Len: 4}}
	for w.Stop.Load() == 0 {
		if w.Completed.Load() != done {
			continue // the device may still interrupt
		}
		interrupts := w.Interrupt.Load()
		q.Add(requests, out, nil)
		q.Publish()
		requests++
		w.Decided.Store(requests)
		for done < requests {
			for _, _, ok := q.Pop(); ok; _, _, ok = q.Pop() {
				done++
			}
			if q.Err() != nil {
				fail(q.Err())
			}
			enable.Wait()
			more := q.EnableInterrupts(0)
			enable.Late(more)
			if more {
				continue
			}
			for w.Interrupt.Load() == interrupts && done < requests && w.Stop.Load() == 0 {
				if int32(w.Completed.Load()-done) > 0 && w.Interrupt.Load() == interrupts {
					missed++
					break
				}
			}
			interrupts = w.Interrupt.Load()
			if w.Stop.Load() != 0 {
				return requests, missed
			}
		}
	}
	return requests, missed
}
