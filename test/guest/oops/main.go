// Program oops is process 1 of a machine whose kernel panics on demand
// (/proc/hardtack/oops). With "kill" it has processes die of panics without a lock and
// sees that the others go on; with another word it provokes that panic and prints what
// it finds afterwards, if the machine still runs.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const trigger = "/proc/hardtack/oops"

func main() {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "provoke":
		provoke(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "echo":
		io.Copy(os.Stdout, os.Stdin)
		return
	}
	if err := mount(); err != nil {
		fmt.Println("mount:", err)
		os.Exit(1)
	}
	if os.Args[1] != "kill" {
		fmt.Printf("%s: %s\n", os.Args[1], run(os.Args[1], 0))
		return
	}
	neighbour, ask := start()
	fmt.Println("as another user:", run("panic", 1000))
	for range 2 {
		for _, how := range []string{"panic", "nil", "index"} {
			fmt.Printf("%s: %s\n", how, run(how, 0))
		}
	}
	fmt.Println("another word:", run("nothing", 0))
	fmt.Println("the neighbour says", ask("hello"))
	neighbour.Process.Kill()
	neighbour.Wait()
	b, err := os.ReadFile(trigger)
	fmt.Printf("oopses: %s, %v\n", strings.TrimSpace(string(b)), err)
}

func mount() error {
	if _, err := os.Stat(trigger); err == nil {
		return nil
	}
	return syscall.Mount("proc", "/proc", "proc", 0, "")
}

// start starts a process that says what it hears.
func start() (*exec.Cmd, func(string) string) {
	cmd := exec.Command("/oops", "echo")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		fmt.Println("start:", err)
		os.Exit(1)
	}
	lines := bufio.NewReader(out)
	return cmd, func(s string) string {
		fmt.Fprintln(in, s)
		line, _ := lines.ReadString('\n')
		return strings.TrimSpace(line)
	}
}

// run has a process of a user provoke a panic and says how it ended. The descriptor is
// root's.
func run(how string, uid uint32) string {
	f, err := os.OpenFile(trigger, os.O_WRONLY, 0)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	cmd := exec.Command("/oops", "provoke", how)
	cmd.ExtraFiles = []*os.File{f}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.Output()
	if err != nil {
		return strings.TrimSpace(string(out) + err.Error())
	}
	return strings.TrimSpace(string(out))
}

// provoke writes to descriptor 3 while other threads sleep in the kernel and run.
func provoke(how string) {
	go func() {
		for n := 0; ; n++ {
		}
	}()
	go func() {
		var b [1]byte
		r, _, _ := os.Pipe()
		syscall.Read(int(r.Fd()), b[:])
	}()
	time.Sleep(20 * time.Millisecond)
	var err error
	if how == "position" { // write(2) holds the lock of the file's position
		_, err = syscall.Write(3, []byte("panic"))
	} else {
		_, err = syscall.Pwrite(3, []byte(how), 0)
	}
	fmt.Println("the write returned", err)
	os.Exit(0)
}
