package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
)

// Addresses of cluster 0 and cluster 1.
const (
	first  = "10.0.3.254:8080"
	second = "10.0.3.1:8080"
)

// serveHTTP sends back what it is sent, and says so when it is ready.
func serveHTTP() {
	l, err := net.Listen("tcp", ":8080")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	http.Serve(l, http.HandlerFunc(echo))
}

func echo(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	w.Write(b)
}

// connected is a connection to the other cluster that has done something.
func connected() net.Conn {
	c, err := net.Dial("tcp", second)
	if err != nil {
		wrong("dial: %v", err)
		os.Exit(1)
	}
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if n, err := c.Read(make([]byte, 4096)); n == 0 {
		wrong("an answer: %v", err)
	}
	return c
}

// get asks a server many times, from several goroutines.
func get(server string) {
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			for n := range 50 {
				body := bytes.Repeat([]byte{byte(i), byte(n)}, 7*n*n)
				if n == 49 {
					body = bytes.Repeat([]byte{byte(i), 1}, 1<<20)
				}
				r, err := http.Post("http://"+server, "text/plain", bytes.NewReader(body))
				if err != nil {
					wrong("request %d of %d bytes: %v", n, len(body), err)
					return
				}
				b, err := io.ReadAll(r.Body)
				r.Body.Close()
				if err != nil || !bytes.Equal(b, body) {
					wrong("the answer to request %d has %d bytes of %d: %v", n, len(b), len(body), err)
				}
			}
		})
	}
	wait.Wait()
}

// network: unmodified programs of two clusters reach each other over TCP, both ways.
func network() {
	server := started(there("/helper", "http"))
	get(second)
	server.Process.Kill()
	server.Wait()
	l, err := net.Listen("tcp", first)
	if err != nil {
		wrong("listen: %v", err)
		return
	}
	go http.Serve(l, http.HandlerFunc(echo))
	if out, err := there("/helper", "get", first).CombinedOutput(); err != nil || len(out) > 0 {
		wrong("requests from the other cluster: %v\n%s", err, out)
	}
	l.Close()
	fmt.Println("network")
}
