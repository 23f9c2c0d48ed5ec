// Command clusterdevices runs on a machine whose clusters have devices of their own:
//
//	devices  process 1 of cluster 1: writes to its disk, serves a page, ends when it was read
//	init     process 1 of cluster 2, whose root file system is on a disk
//	served   process 1 of cluster 0: starts cluster 1 again
package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "devices":
		check(devices())
	case "init":
		check(onDisk())
		time.Sleep(time.Hour)
	default:
		served()
	}
}

func check(err error) {
	if err != nil {
		fmt.Println("WRONG:", err)
	}
}

func foreign() {
	b, err := os.ReadFile("/proc/hardtack/protection")
	check(err)
	_, n, _ := strings.Cut(string(b), "foreign ")
	n, _, _ = strings.Cut(n, "\n")
	fmt.Println("foreign pages:", n)
}

// devices counts its lives on the disk.
func devices() error {
	f, err := os.OpenFile("/dev/vda", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	size, err := f.Seek(0, 2)
	if err != nil {
		return err
	}
	fmt.Printf("disk of %d bytes\n", size)
	b := make([]byte, 512)
	if _, err := f.ReadAt(b, 0); err != nil {
		return err
	}
	life := 1
	if bytes.HasPrefix(b, []byte("written in life 1")) {
		life = 2
	}
	copy(b, fmt.Sprintf("written in life %d", life))
	if _, err := f.WriteAt(b, 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	foreign()
	l, err := net.Listen("tcp", ":80")
	if err != nil {
		return err
	}
	read := make(chan struct{}, 1)
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "life %d", life)
		fmt.Println("life", life)
		read <- struct{}{}
	}))
	<-read
	time.Sleep(500 * time.Millisecond) // the answer is on its way
	return nil
}

func onDisk() error {
	b, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 2 && f[1] == "/" {
			fmt.Println("root on", f[2])
		}
	}
	name := "/written"
	if err := os.WriteFile(name, []byte("by cluster 2"), 0o644); err != nil {
		return err
	}
	foreign()
	return nil
}

func state() string {
	b, err := os.ReadFile("/proc/hardtack/clusters")
	check(err)
	return string(b)
}

func await(what string) {
	for range 60000 {
		if strings.Contains(state(), what) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Printf("WRONG: no %q in %s\n", what, state())
}

func served() {
	foreign()
	await("1 exited 0 lives 1")
	check(os.WriteFile("/proc/hardtack/clusters", []byte("restart 1"), 0))
	await("1 running lives 2")
	await("1 exited 0 lives 2")
	await("2 running")
	for _, name := range []string{"/dev/vda", "/dev/vdb"} {
		if _, err := os.Stat(name); err == nil {
			fmt.Println("WRONG:", name, "is another cluster's")
		}
	}
	fmt.Println("the end")
}
