// Package child runs other processes that say a word a line and are told to go
// on by a byte.
package child

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Child is a process that ends with this one.
type Child struct {
	Cmd  *exec.Cmd
	in   *os.File
	said *bufio.Reader
}

// Start starts a program.
func Start(name string, args ...string) (*Child, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	k := &Child{Cmd: exec.Command(name, args...), in: w}
	k.Cmd.Stdin, k.Cmd.Stderr = r, os.Stderr
	k.Cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := k.Cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	k.said = bufio.NewReader(out)
	return k, k.Cmd.Start()
}

// PID is its number.
func (k *Child) PID() int { return k.Cmd.Process.Pid }

// Go lets it go on.
func (k *Child) Go() { k.in.Write([]byte{1}) }

// Wait waits for the word.
func (k *Child) Wait(word string) error {
	if s, err := k.said.ReadString('\n'); strings.TrimSpace(s) != word {
		return fmt.Errorf("%s says %q, not %q: %w", k.Cmd.Path, s, word, err)
	}
	return nil
}

// Stop ends it.
func (k *Child) Stop() {
	k.in.Close()
	k.Cmd.Process.Kill()
	k.Cmd.Wait()
}
