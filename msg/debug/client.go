package debug

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Processes lists the processes of dir that can be looked into, and removes the
// sockets of those that have ended.
func Processes(dir string) ([]int, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var pids []int
	for _, f := range files {
		pid, err := strconv.Atoi(f.Name())
		if err != nil || pid <= 0 {
			continue
		}
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			os.Remove(filepath.Join(dir, f.Name()))
			continue
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// ask sends a request to a process.
func ask(ctx context.Context, dir string, pid int, req Request) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", filepath.Join(dir, strconv.Itoa(pid)))
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	if err := json.NewEncoder(c).Encode(req); err != nil {
		c.Close()
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	return c, nil
}

// LookAt describes a process.
func LookAt(ctx context.Context, dir string, pid int) (s Snapshot, err error) {
	c, err := ask(ctx, dir, pid, Request{})
	if err != nil {
		return s, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(askTime))
	if err := json.NewDecoder(io.LimitReader(c, 64<<20)).Decode(&s); err != nil {
		return s, fmt.Errorf("process %d: %w", pid, err)
	}
	return s, nil
}

// Trace yields what passes in a process until ctx is done or the process ends.
func Trace(ctx context.Context, dir string, pid int, req Request) iter.Seq2[Traced, error] {
	return func(yield func(Traced, error) bool) {
		req.Trace = true
		c, err := ask(ctx, dir, pid, req)
		if err != nil {
			if ctx.Err() == nil {
				yield(Traced{}, err)
			}
			return
		}
		defer c.Close()
		defer context.AfterFunc(ctx, func() { c.Close() })()
		lines := json.NewDecoder(bufio.NewReader(c))
		for {
			var t Traced
			if err := lines.Decode(&t); err != nil {
				if ctx.Err() == nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					yield(t, fmt.Errorf("process %d: %w", pid, err))
				}
				return
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}
