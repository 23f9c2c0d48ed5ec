package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Facts is what a copy of a machine says of itself.
type Facts struct {
	Random  string // of getrandom
	Device  string // of /dev/urandom
	Host    string
	Boot    string
	Machine string
	Time    int64 // nanoseconds
	Started int64 // when the first machine's program began, by CLOCK_MONOTONIC
	Up      int64 // since then, by CLOCK_MONOTONIC
	Wiped   bool  // memory that no child gets is empty
	Kept    bool  // other memory is not
	Inside  bool  // a connection within the machine works
	Outside string
}

// serveCopies answers with Facts on port 80. What it knows of connections with the outside is
// how the last one that sent nothing ended.
func serveCopies() error {
	const page = 4096
	wiped, err := unix.Mmap(-1, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	if err := unix.Madvise(wiped, unix.MADV_WIPEONFORK); err != nil {
		return err
	}
	wiped[7] = 1
	kept := []byte("kept")
	inside, err := echo()
	if err != nil {
		return err
	}
	began := time.Now()
	var outside atomic.Value
	outside.Store("")
	silent, err := net.Listen("tcp", ":81")
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			go func() {
				fmt.Fprintln(c, "go on")
				_, err := c.Read(make([]byte, 1))
				outside.Store(fmt.Sprint(err))
			}()
		}
	}()
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		f := Facts{Boot: text("/proc/sys/kernel/random/boot_id"), Machine: text("/etc/machine-id"), Time: time.Now().UnixNano(),
			Started: began.UnixNano(), Up: int64(time.Since(began)), Wiped: wiped[7] == 0, Kept: string(kept) == "kept", Outside: outside.Load().(string)}
		f.Host, _ = os.Hostname()
		var b [16]byte
		_, _ = rand.Read(b[:])
		f.Random = fmt.Sprintf("%x", b)
		if d, err := os.Open("/dev/urandom"); err == nil {
			_, _ = io.ReadFull(d, b[:])
			d.Close()
		}
		f.Device = fmt.Sprintf("%x", b)
		fmt.Fprint(inside, "ping")
		n, _ := io.ReadFull(inside, b[:4])
		f.Inside = string(b[:n]) == "ping"
		_ = json.NewEncoder(w).Encode(f)
	})
	fmt.Println("serving copies")
	return http.ListenAndServe(":80", nil)
}

func text(name string) string {
	b, _ := os.ReadFile(name)
	return strings.TrimSpace(string(b))
}

// echo is a connection with this program that answers what it is sent.
func echo() (net.Conn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(c, c)
		}
	}()
	return net.Dial("tcp", l.Addr().String())
}
