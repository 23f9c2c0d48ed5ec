// Command stress does to channels what programs do, checks what comes out, and
// prints "ok" at the end. Its argument is how many rounds.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	rounds, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	for range rounds {
		for _, f := range []func(){
			many, ring, selects, everyKind, locked, procs, cores, syscalls, timers, dying, collector, mutexes, coroutines, all,
		} {
			f()
		}
	}
	fmt.Println("ok")
}

func check(ok bool, format string, args ...any) {
	if !ok {
		panic(fmt.Sprintf(format, args...))
	}
}

// talk sends n numbers from each of p goroutines to one, and checks the sum.
func talk(p, n, capacity int) {
	c := make(chan int, capacity)
	var wg sync.WaitGroup
	for range p {
		wg.Go(func() {
			for i := 1; i <= n; i++ {
				c <- i
			}
		})
	}
	go func() { wg.Wait(); close(c) }()
	sum := 0
	for v := range c {
		sum += v
	}
	check(sum == p*n*(n+1)/2, "sum %d of %d × %d", sum, p, n)
}

func many() { talk(8, 40000, 128) }

func ring() {
	const players, hops = 8, 40000
	var cs [players]chan int
	for i := range cs {
		cs[i] = make(chan int, i%2)
	}
	done := make(chan int)
	for i := range cs {
		go func() {
			for n := range cs[i] {
				if n == hops {
					done <- n
					return
				}
				cs[(i+1)%players] <- n + 1
			}
		}()
	}
	cs[0] <- 0
	check(<-done == hops, "the ring lost its number")
	for i := range cs {
		close(cs[i])
	}
}

// selects has senders and receivers that wait for several channels at once.
func selects() {
	a, b, d := make(chan int), make(chan int, 3), make(chan int, 100)
	stop := make(chan struct{})
	var sent, got atomic.Int64
	var senders, receivers sync.WaitGroup
	for g := range 4 {
		senders.Go(func() {
			for i := range 10000 {
				select {
				case a <- 1:
				case b <- 1:
				case d <- 1:
				}
				sent.Add(1)
				if (i+g)%64 == 0 {
					select {
					case v := <-d:
						got.Add(int64(v))
					default:
					}
				}
			}
		})
		receivers.Go(func() {
			for {
				select {
				case v := <-a:
					got.Add(int64(v))
				case v := <-b:
					got.Add(int64(v))
				case v := <-d:
					got.Add(int64(v))
				case <-stop:
					return
				}
			}
		})
	}
	senders.Wait()
	for got.Load()+int64(len(b)+len(d)) < sent.Load() {
		runtime.Gosched()
	}
	close(stop)
	receivers.Wait()
	for len(b) > 0 {
		got.Add(int64(<-b))
	}
	for len(d) > 0 {
		got.Add(int64(<-d))
	}
	check(got.Load() == sent.Load(), "sent %d, got %d", sent.Load(), got.Load())
}

// everyKind has channels that are nil, closed, of nothing, of pointers, of
// large elements, in both directions, and by reflection.
func everyKind() {
	var none chan int
	closed := make(chan int)
	close(closed)
	empty, ptrs, large := make(chan struct{}, 1), make(chan *int, 2), make(chan [500]int, 1)
	x := 7
	for range 3000 {
		select {
		case <-none:
			panic("received from nil")
		case none <- 1:
			panic("sent to nil")
		case v, ok := <-closed:
			check(v == 0 && !ok, "closed gave %d, %v", v, ok)
		}
		empty <- struct{}{}
		<-empty
		ptrs <- &x
		check(*<-ptrs == 7, "pointer")
		go func() { var l [500]int; l[499] = 3; large <- l }()
		check((<-large)[499] == 3, "large element")
	}
	func() {
		defer func() { check(recover() != nil, "sending to a closed channel did not panic") }()
		closed <- 1
	}()
	r := reflect.MakeChan(reflect.TypeFor[chan string](), 0)
	go func() { r.Send(reflect.ValueOf("hello")) }()
	i, v, ok := reflect.Select([]reflect.SelectCase{
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(none)},
		{Dir: reflect.SelectRecv, Chan: r},
	})
	check(i == 1 && ok && v.String() == "hello", "reflect.Select gave %d, %v", i, v)
}

// locked has goroutines that own their threads among the talkers.
func locked() {
	c, back := make(chan int, 4), make(chan int, 4)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			tid := syscall.Gettid()
			for v := range c {
				check(syscall.Gettid() == tid, "a locked goroutine changed its thread")
				back <- v
			}
		})
	}
	go func() {
		for i := range 6000 {
			c <- i
		}
		close(c)
		wg.Wait()
		close(back)
	}()
	n, sum := 0, 0
	for v := range back {
		n++
		sum += v
	}
	check(n == 6000 && sum == 6000*5999/2, "%d answers, sum %d", n, sum)
}

// procs changes GOMAXPROCS under the talk.
func procs() {
	was := runtime.GOMAXPROCS(0)
	var stop atomic.Bool
	done := make(chan bool)
	go func() {
		for i := 0; !stop.Load(); i++ {
			runtime.GOMAXPROCS(1 + i%4)
			time.Sleep(time.Duration(i%3) * time.Millisecond)
		}
		done <- true
	}()
	for range 6 {
		talk(5, 10000, 16)
	}
	stop.Store(true)
	<-done
	runtime.GOMAXPROCS(was)
}

// cores takes CPUs away from the process under the talk, down to one, and gives
// them back, as a cgroup or taskset may at any time.
func cores() {
	var all unix.CPUSet
	check(unix.SchedGetaffinity(0, &all) == nil, "no affinity")
	set := func(to *unix.CPUSet) {
		threads, err := os.ReadDir("/proc/self/task")
		check(err == nil, "%v", err)
		for _, t := range threads {
			tid, _ := strconv.Atoi(t.Name())
			unix.SchedSetaffinity(tid, to) // it may have ended meanwhile
		}
	}
	var stop atomic.Bool
	done := make(chan bool)
	go func() {
		for i := 0; !stop.Load(); i++ {
			var one unix.CPUSet
			for cpu, left := 0, i%all.Count(); cpu < 1024; cpu++ {
				if all.IsSet(cpu) {
					if left == 0 {
						one.Set(cpu)
					}
					left--
				}
			}
			set(&one)
			time.Sleep(time.Duration(i%5) * time.Millisecond)
			set(&all)
			time.Sleep(time.Duration(i%3) * time.Millisecond)
		}
		done <- true
	}()
	for range 6 {
		talk(5, 10000, 16)
		talk(2, 3000, 0)
	}
	stop.Store(true)
	<-done
	set(&all)
}

// syscalls has talkers that block in the kernel between messages.
func syscalls() {
	r, w, err := os.Pipe()
	check(err == nil, "%v", err)
	c := make(chan byte, 8)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var b [1]byte
			for i := range 500 {
				syscall.Write(int(w.Fd()), []byte{byte(i)})
				syscall.Read(int(r.Fd()), b[:])
				ts := syscall.Timespec{Nsec: 1000}
				syscall.Nanosleep(&ts, nil)
				c <- b[0]
			}
		})
	}
	for range 2000 {
		<-c
	}
	wg.Wait()
	r.Close()
	w.Close()
}

func timers() {
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	c := make(chan int, 1)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case c <- i:
				case <-c:
				case <-tick.C:
				case <-time.After(time.Second):
					panic("nothing for a second")
				case <-ctx.Done():
					return
				}
			}
		})
	}
	wg.Wait()
}

// dying has a million channels in all, made, used and dropped, and asks that
// their memory comes back.
func dying() {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 250000 {
				c := make(chan int, i%4)
				if i%4 > 0 {
					c <- i
					<-c
				}
				if i%1000 == 0 {
					d := make(chan int)
					go func() {
						for range 600 {
							d <- 1
						}
						close(d)
					}()
					for range d {
					}
				}
			}
		})
	}
	wg.Wait()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	check(after.HeapAlloc < before.HeapAlloc+4<<20, "the heap grew from %d to %d", before.HeapAlloc, after.HeapAlloc)
}

// collector has talkers that allocate, with collections and stack growth among them.
func collector() {
	c := make(chan []byte, 16)
	var grow func(n int) int
	grow = func(n int) int {
		var pad [128]byte
		if n == 0 {
			return int(pad[0])
		}
		return grow(n-1) + int(pad[n%128])
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 3000 {
				c <- make([]byte, 100+i%1000)
				if i%100 == 0 {
					grow(200)
				}
				if i%1000 == 0 {
					runtime.GC()
				}
			}
		})
	}
	go func() { wg.Wait(); close(c) }()
	n := 0
	for b := range c {
		check(b[0] == 0, "memory that is not zero")
		n++
	}
	check(n == 12000, "%d slices", n)
}

func mutexes() {
	var mu sync.Mutex
	cond := sync.NewCond(&mu)
	c := make(chan int, 2)
	n := 0
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for i := range 3000 {
				select {
				case c <- i:
				case <-c:
				}
				mu.Lock()
				n++
				cond.Broadcast()
				mu.Unlock()
				if i%50 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	mu.Lock()
	for n < 18000 {
		// The last ones may wait for each other at c.
		mu.Unlock()
		select {
		case c <- 0:
		case <-c:
		default:
		}
		mu.Lock()
	}
	mu.Unlock()
	wg.Wait()
}

func coroutines() {
	next := make(chan int)
	go func() {
		defer close(next)
		for v := range func(yield func(int) bool) {
			for i := range 5000 {
				if !yield(i) {
					return
				}
			}
		} {
			next <- v
		}
	}()
	want := 0
	for v := range next {
		check(v == want, "%d for %d", v, want)
		want++
	}
}

// all runs several conversations and some arithmetic side by side.
func all() {
	var wg sync.WaitGroup
	for _, f := range []func(){
		many, ring, selects, locked, collector, func() { talk(3, 30000, 0) },
		func() {
			x := uint64(1)
			for range 20_000_000 {
				x = x*6364136223846793005 + 1
			}
			check(x != 0, "arithmetic")
		},
	} {
		wg.Go(f)
	}
	wg.Wait()
}
