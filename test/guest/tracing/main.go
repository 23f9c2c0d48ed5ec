// Command tracing runs a program and prints its system calls as /proc/hardtack/trace shows
// them: tracing PROGRAM. It is its own child, which waits until it is traced.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		b := make([]byte, 1)
		os.Stdin.Read(b)
		err := unix.Exec(os.Args[2], os.Args[2:], nil)
		fmt.Println("exec:", err)
		os.Exit(127)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
}

func run(program string) error {
	f, err := os.OpenFile("/proc/hardtack/trace", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := os.OpenFile("/proc/hardtack/trace", os.O_RDWR, 0); !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("a second session: %v", err)
	}
	for _, bad := range []string{"pid 99999", "pid x", "nonsense", "calls read,nothing"} {
		if _, err := f.WriteString(bad); err == nil {
			return fmt.Errorf("%q was taken", bad)
		}
	}
	c := exec.Command("/proc/self/exe", "child", program)
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f, "pid %d\n", c.Process.Pid); err != nil {
		return err
	}
	if _, err := in.Write([]byte{1}); err != nil {
		return err
	}
	fmt.Println("begin")
	if _, err := io.Copy(os.Stdout, f); err != nil {
		return err
	}
	fmt.Println("end")
	c.Wait()
	return nil
}
