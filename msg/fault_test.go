package msg_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"hardtack/msg"
)

// kills is how often TestKill kills; HARDTACK_KILLS sets it.
func kills() int {
	if n, err := strconv.Atoi(os.Getenv("HARDTACK_KILLS")); err == nil {
		return n
	}
	return 15
}

func TestMain(m *testing.M) {
	if dir := os.Getenv("MSG_TEST_VICTIM"); dir != "" {
		victim(dir)
		return
	}
	if dir := os.Getenv("MSG_TEST_ECHO"); dir != "" {
		echo(dir)
		return
	}
	os.Exit(m.Run())
}

// victim sends and receives until it is killed. What it receives must go on
// from where it was, whoever sends.
func victim(dir string) {
	ctx := context.Background()
	c, err := msg.Connect(ctx, "killer", msg.TestIface, &msg.Options{Resolver: msg.Directory(dir)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go stream(ctx, c, 1<<40)
	expect(ctx, c, 1<<40)
}

// state counts what this process has of descriptors and shared memory.
func state(t *testing.T) (fds, maps int) {
	t.Helper()
	for range 3 {
		runtime.GC() // finds and returns mappings
		time.Sleep(10 * time.Millisecond)
	}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return len(list), strings.Count(string(text), "hardtack-msg")
}

// A peer that is killed at any point under load is told of by one clear error,
// nothing is received twice, and all memory and descriptors come back.
func TestKill(t *testing.T) {
	ctx := timeLimit(t)
	if n := kills(); n > 100 {
		long, cancel := context.WithTimeout(context.Background(), time.Duration(n)*time.Second)
		defer cancel()
		ctx = long
	}
	dir := t.TempDir()
	s, err := msg.Export(ctx, "killer", msg.TestIface, &msg.Options{Resolver: msg.Directory(dir)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fds, maps := state(t)
	var worst, late time.Duration
	for i := range kills() {
		took, after := killOne(ctx, t, s, dir, i)
		worst, late = max(worst, took), max(late, after)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d peers killed; noticed at most %v after the signal, and %v after the process was gone", kills(), worst, late)
	for end := time.Now().Add(time.Minute); ; {
		f, m := state(t)
		if f <= fds && m <= maps {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d descriptors, %d before; %d mappings, %d before", f, fds, m, maps)
		}
	}
}

func killOne(ctx context.Context, t *testing.T, s *msg.Server, dir string, i int) (took, late time.Duration) {
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), "MSG_TEST_VICTIM="+dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	c, err := s.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sent, received := make(chan error, 1), make(chan error, 1)
	go func() { sent <- stream(ctx, c, 1<<40) }()
	go func() {
		for n := uint64(0); ; n++ {
			_, b, err := c.Next(ctx)
			if err != nil {
				received <- err
				return
			}
			if got := binary.LittleEndian.Uint64(b); got != n {
				received <- fmt.Errorf("message %d instead of %d", got, n)
				return
			}
		}
	}()
	time.Sleep(time.Duration(rand.IntN(8000)) * time.Microsecond)
	start := time.Now()
	cmd.Process.Kill()
	gone := make(chan time.Duration, 1)
	go func() {
		cmd.Wait()
		gone <- time.Since(start)
	}()
	for _, ch := range []chan error{sent, received} {
		if err := <-ch; !errors.Is(err, msg.ErrPeerGone) {
			t.Errorf("kill %d: %v", i, err)
		}
	}
	took = time.Since(start)
	late = took - <-gone
	if !errors.Is(c.Err(), msg.ErrPeerGone) {
		t.Error(c.Err())
	}
	return took, late
}
