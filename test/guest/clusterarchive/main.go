// Command clusterarchive changes files of the boot archive in one of two kernels that share its pages.
package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

func main() {
	if os.Args[0] == "/writes" {
		archive()
		return
	}
	keeps()
}

func read(name string) string { return string(must(os.ReadFile("/proc/hardtack/" + name))) }

// await waits until a file has a text.
func await(name, text string) {
	for !strings.Contains(read(name), text) {
		time.Sleep(10 * time.Millisecond)
	}
}

// subject is a file of the boot archive, whose pages all kernels share.
const subject = "/subject"

func must[T any](v T, err error) T {
	if err != nil {
		fmt.Println("WRONG", err)
		os.Exit(3)
	}
	return v
}

// sum is what the subject is found to be.
func sum() string { return fmt.Sprintf("%.4x", sha256.Sum256(must(os.ReadFile(subject)))) }

// archive changes the subject in every way: only this kernel's file changes.
func archive() {
	fmt.Println("sum", sum())
	before := must(os.ReadFile(subject))
	r := must(os.Open(subject))
	seen := must(syscall.Mmap(int(r.Fd()), 0, len(before), syscall.PROT_READ, syscall.MAP_SHARED))
	private := must(syscall.Mmap(int(r.Fd()), 0, len(before), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE))
	private[4096] ^= 1
	if !bytes.Equal(seen, before) {
		fmt.Println("WRONG a private mapping's store shows")
	}
	w := must(os.OpenFile(subject, os.O_RDWR, 0))
	shared := must(syscall.Mmap(int(w.Fd()), 0, len(before), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED))
	shared[0] ^= 1
	must(w.WriteAt([]byte("written"), 3*4096+5))
	if seen[0] != before[0]^1 || string(seen[3*4096+5:][:7]) != "written" || private[4096] != before[4096]^1 {
		fmt.Println("WRONG mappings do not follow")
	}
	if err := os.Truncate("/cut", 12345); err != nil {
		fmt.Println("WRONG truncate:", err)
	}
	if err := os.Truncate("/emptied", 0); err != nil {
		fmt.Println("WRONG truncate:", err)
	}
	if err := os.Remove("/removed"); err != nil {
		fmt.Println("WRONG remove:", err)
	}
	fmt.Println("changed")
	c := must(must(net.Listen("tcp", ":7")).Accept())
	c.Read(make([]byte, 1)) // until the other has gone
}

// changed waits until cluster 1 has changed all.
func changed() {
	for {
		if c, err := net.Dial("tcp", "10.0.3.2:7"); err == nil {
			c.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// keeps has cluster 1 change the files, changes its own, and has it start anew.
func keeps() {
	own := sum()
	fmt.Println("sum", own)
	changed()
	await("clusters", "1 exited 0")
	if sum() != own {
		fmt.Println("WRONG another kernel's write shows")
	}
	must(must(os.OpenFile(subject, os.O_RDWR, 0)).WriteAt([]byte("first"), 8192))
	if sum() == own {
		fmt.Println("WRONG the file has not changed")
	}
	if err := os.WriteFile("/proc/hardtack/clusters", []byte("restart 1"), 0); err != nil {
		fmt.Println("WRONG", err)
	}
	changed()
	await("clusters", "1 exited 0")
	for _, name := range []string{"/cut", "/emptied", "/removed"} {
		if must(os.Stat(name)).Size() < 1<<20 {
			fmt.Println("WRONG", name)
		}
	}
	_, foreign, _ := bytes.Cut([]byte(read("protection")), []byte("foreign "))
	fmt.Printf("foreign pages: %s\nkept\n", bytes.Fields(foreign)[0])
}
