// Command live is what TestLive runs in a machine, beside process 1 and as process 1.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

func main() {
	args := os.Args[1:]
	if len(args) == 0 {
		args = []string{"serve"}
	}
	switch args[0] {
	case "serve": // process 1
		signals := make(chan os.Signal, 8)
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGUSR1)
		fmt.Println("serving", strings.Join(args[1:], " "))
		for s := range signals {
			fmt.Println("process 1 got", s)
			if s == syscall.SIGTERM {
				os.Exit(3)
			}
		}
	case "copies": // process 1 of machines that are copied
		fmt.Fprintln(os.Stderr, serveCopies())
		os.Exit(1)
	case "exit":
		n, _ := strconv.Atoi(args[1])
		fmt.Println("leaving with", n)
		fmt.Fprintln(os.Stderr, "error", n)
		os.Exit(n)
	case "die":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Hour)
	case "cat":
		io.Copy(os.Stdout, os.Stdin)
	case "who":
		who()
	case "signal": // says so, and which signal ends it
		signals := make(chan os.Signal, 8)
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		fmt.Println("waiting")
		s := <-signals
		if len(args) > 1 {
			os.WriteFile(args[1], []byte(s.String()), 0o644)
		}
		fmt.Println("got", s)
		os.Exit(40 + int(s.(syscall.Signal)))
	case "await": // a file
		for {
			if b, err := os.ReadFile(args[1]); err == nil && len(b) > 0 {
				fmt.Println(string(b))
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	case "tty":
		tty()
	default:
		more(args)
	}
}

// more are the commands about files and processes.
func more(args []string) {
	switch args[0] {
	case "flood":
		b := make([]byte, 1<<16)
		for {
			if _, err := os.Stdout.Write(b); err != nil {
				os.Exit(9)
			}
		}
	case "leave": // a child that holds our output
		what, files := []string{"/live", "await", "/never"}, []*os.File{nil, os.Stdout, os.Stderr}
		if len(args) > 1 {
			what, files = append([]string{"/live"}, args[1:]...), nil
		}
		child, err := os.StartProcess("/live", what, &os.ProcAttr{Files: files})
		fmt.Println("left a child:", err == nil)
		_ = child
	case "show":
		b, err := os.ReadFile(args[1])
		if err != nil {
			fmt.Println(err)
		}
		os.Stdout.Write(b)
	case "put": // a text into a file that is there
		f, err := os.OpenFile(args[1], os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(args[2])
		}
		fmt.Println(err)
	case "fill":
		n, _ := strconv.Atoi(args[2])
		err := os.WriteFile(args[1], make([]byte, n), 0o644)
		var p *os.PathError
		if errors.As(err, &p) {
			fmt.Println(p.Err)
		} else {
			fmt.Println("done")
		}
	case "gone": // waits until no process but 1 and this one is left, zombies included
		for others() > 0 {
			time.Sleep(10 * time.Millisecond)
		}
		fmt.Println(others())
	case "count": // processes of this program
		list, _ := os.ReadDir("/proc")
		n := 0
		for _, e := range list {
			if b, err := os.ReadFile("/proc/" + e.Name() + "/cmdline"); err == nil && strings.HasPrefix(string(b), "/live\x00"+args[1]) {
				n++
			}
		}
		fmt.Println(n)
	}
}

// others counts the processes beside process 1 and this one.
func others() (n int) {
	list, _ := os.ReadDir("/proc")
	for _, e := range list {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != 1 && pid != os.Getpid() {
			n++
		}
	}
	return n
}

func who() {
	dir, _ := os.Getwd()
	sid, _ := unix.Getsid(0)
	name := "?"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	fmt.Println(os.Getuid(), os.Getgid(), name, dir, os.Getenv("HOME"), os.Getenv("A"), os.Getppid(), sid == os.Getpid(), syscall.Getpgrp() == os.Getpid(), term.IsTerminal(0))
}

// tty tells the size of its terminal, and again when that changes, until Ctrl-C.
func tty() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGINT, syscall.SIGHUP)
	own, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	name, _ := os.Readlink("/proc/self/fd/0")
	fmt.Println("terminal", name, term.IsTerminal(0) && term.IsTerminal(1) && term.IsTerminal(2), err == nil)
	for {
		w, h, _ := term.GetSize(0)
		fmt.Fprintln(own, "size", h, w)
		if s := <-signals; s != syscall.SIGWINCH {
			fmt.Println("got", s)
			os.Exit(5)
		}
	}
}
