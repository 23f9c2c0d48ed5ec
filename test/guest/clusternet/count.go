package main

import (
	"fmt"
	"io"
	"net"
	"time"
)

// count prints what round trips and bytes cost, where the clock counts instructions: those
// of all processors together.
func count() {
	for _, to := range []int{1, 0} {
		name, server := "two clusters", "10.0.3.2"
		if to == 0 {
			name, server = "one kernel", "127.0.0.1"
			l, err := net.Listen("tcp", server+port)
			if err != nil {
				wrong("listen: %v", err)
				return
			}
			go echo(l)
		} else {
			started(1, "echo")
		}
		c := dial(server)
		one := make([]byte, 1)
		const trips = 2000
		trip := func(n int) time.Duration {
			begin := time.Now()
			for range n {
				c.Write(one)
				io.ReadFull(c, one)
			}
			return time.Since(begin)
		}
		trip(500)
		fmt.Printf("%s: a round trip %d\n", name, trip(trips).Nanoseconds()/trips)
		const size, piece = 32 << 20, 64 << 10
		flow := func() time.Duration {
			begin := time.Now()
			done := make(chan bool)
			go func() {
				io.CopyN(io.Discard, c, size)
				close(done)
			}()
			b := make([]byte, piece)
			for range size / piece {
				c.Write(b)
			}
			<-done
			return time.Since(begin)
		}
		flow()
		fmt.Printf("%s: a KiB there and back %d\n", name, flow().Nanoseconds()/(size>>10))
	}
}
