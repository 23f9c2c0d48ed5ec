package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/idl/shapes"
	"hardtack/msg"
)

// One end of a connection under load in both directions is killed, at any
// moment, again and again. The other sees that, and nothing else: no message is
// missing or comes twice, and what the connection had is given back.
// HARDTACK_KILLS says how often, for each pair; 1,000 take some minutes.
func kills() int {
	if n, err := strconv.Atoi(os.Getenv("HARDTACK_KILLS")); err == nil {
		return n
	}
	return 50
}

// victim is a process that is to be killed.
type victim struct {
	cmd *exec.Cmd
	out io.ReadCloser
}

func startVictim(t *testing.T, env []string, name string, args ...string) *victim {
	t.Helper()
	v := &victim{cmd: exec.Command(name, args...)}
	v.cmd.Env = append(os.Environ(), env...)
	v.cmd.Stderr = os.Stderr
	var err error
	if v.out, err = v.cmd.StdoutPipe(); err == nil {
		err = v.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// kill lets it live for a while and returns when it is dead. Mostly that is a
// while from when it is connected on, else from its start.
func (v *victim) kill(connected func() bool) {
	if rand.IntN(4) > 0 {
		for end := time.Now().Add(patience); !connected() && time.Now().Before(end); {
			time.Sleep(50 * time.Microsecond)
		}
	}
	time.Sleep(time.Duration(math.Exp(rand.Float64()*math.Log(3000))) * 20 * time.Microsecond) // to 60 ms
	v.cmd.Process.Kill()
	v.cmd.Wait()
}

func startClient(t *testing.T, lang, self, prog, name string) *victim {
	t.Helper()
	if lang == "Go" {
		return startVictim(t, []string{"INTEROP_MODE=stream client", "INTEROP_NAME=" + name}, self)
	}
	return startVictim(t, nil, prog, "client", name, strconv.Itoa(math.MaxInt32), "0")
}

// streamChild is a Go program that streams until it is killed.
func streamChild(ctx context.Context, mode, name string) error {
	if mode == "stream client" {
		c, err := shapes.Connect(ctx, name, nil)
		if err != nil {
			return err
		}
		return streamBoth(ctx, c, math.MaxInt, 0, "")
	}
	s, err := shapes.Export(ctx, name, nil)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	c, err := s.Accept(ctx)
	if err != nil {
		return err
	}
	return streamBoth(ctx, c, math.MaxInt, 0, "")
}

// holdings are the descriptors and mapped memory files of this process.
func holdings() (files, memory int) {
	names, _ := os.ReadDir("/proc/self/fd")
	maps, _ := os.ReadFile("/proc/self/maps")
	return len(names), strings.Count(string(maps), "hardtack-msg")
}

// settle waits until this process has no more than it had, and says what is left.
func settle(files, memory int) error {
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		runtime.GC() // it gives mapped memory back
		f, m := holdings()
		if f <= files && m <= memory {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d descriptors and %d memory files, %d and %d at first", f, m, files, memory)
		}
	}
}

// goneOnly reports what is wrong with the errors of the two directions.
func goneOnly(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	for _, e := range joined.Unwrap() {
		if !errors.Is(e, msg.ErrPeerGone) {
			return e
		}
	}
	return nil
}

func TestKillClient(t *testing.T) {
	prog := program(t, "stream", "shapes")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range []string{"Go", "C"} {
		t.Run(lang+" to Go", func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			name := "kill-client-" + lang
			s, err := shapes.Export(ctx, name, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var active, seen atomic.Int32
			wrong := make(chan error, 1)
			go func() {
				for {
					c, err := s.Accept(ctx)
					if err != nil {
						return
					}
					active.Add(1)
					seen.Add(1)
					go func() {
						defer active.Add(-1)
						if err := goneOnly(streamBoth(ctx, c, math.MaxInt, 0, "")); err != nil {
							select {
							case wrong <- err:
							default:
							}
						}
						c.Close()
					}()
				}
			}()
			files, memory := holdings()
			for range kills() {
				was := seen.Load()
				v := startClient(t, lang, self, prog, name)
				v.kill(func() bool { return seen.Load() > was })
			}
			for end := time.Now().Add(patience); active.Load() > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%d connections to the dead", active.Load())
				}
			}
			select {
			case err := <-wrong:
				t.Fatal(err)
			default:
			}
			if err := settle(files, memory); err != nil {
				t.Error(err)
			}
			t.Logf("%d of %d had a connection", seen.Load(), kills())
			if seen.Load() == 0 {
				t.Error("none was killed while it had a connection")
			}
		})
	}
}

func TestKillServer(t *testing.T) {
	prog := program(t, "stream", "shapes")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range []string{"Go", "C"} {
		t.Run("Go to "+lang, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			files, memory := holdings()
			for i := range kills() {
				name := fmt.Sprintf("kill-server-%s-%d", lang, i)
				var v *victim
				if lang == "Go" {
					v = startVictim(t, []string{"INTEROP_MODE=stream server", "INTEROP_NAME=" + name}, self)
				} else {
					v = startVictim(t, nil, prog, "server", name, strconv.Itoa(math.MaxInt32), "0")
				}
				if _, err := v.out.Read(make([]byte, 6)); err != nil { // "ready"
					t.Fatal(err)
				}
				c, err := shapes.Connect(ctx, name, nil)
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() { done <- streamBoth(ctx, c, math.MaxInt, 0, "") }()
				v.kill(func() bool { return true })
				select {
				case err := <-done:
					if err := goneOnly(err); err != nil {
						t.Fatal(err)
					}
				case <-time.After(patience):
					t.Fatal("the end of the server is not noticed")
				}
				c.Close()
			}
			if err := settle(files, memory); err != nil {
				t.Error(err)
			}
		})
	}
}

// The survivor is a C program.
func TestKillC(t *testing.T) {
	prog := program(t, "stream", "shapes")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s := startWith(t, r, nil, prog, "survive", "kill-c", "0", "0")
	r.Close()
	s.line(t, "ready")
	type status struct{ conns, ended, files, memory int }
	ask := func() (st status, reason string) {
		t.Helper()
		fmt.Fprintln(w)
		line, err := s.out.ReadString('\n')
		if err != nil {
			t.Fatalf("the survivor is dead: %v\n%s", err, s.err.String())
		}
		at := strings.Index(line, "the last: ")
		end := strings.IndexByte(line, ';')
		if at < 0 || end < at {
			t.Fatal(line)
		}
		fmt.Sscanf(line, "%d connections, %d ended", &st.conns, &st.ended)
		fmt.Sscanf(line[end:], "; %d descriptors, %d memory files", &st.files, &st.memory)
		return st, line[at+len("the last: ") : end]
	}
	first, _ := ask()
	for _, lang := range []string{"Go", "C"} {
		before, _ := ask()
		for range kills() {
			was, _ := ask()
			startClient(t, lang, self, prog, "kill-c").kill(func() bool {
				now, _ := ask()
				return now.conns > 0
			})
			for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
				now, reason := ask()
				if now.ended > was.ended && reason != "the peer is gone" || now.ended > was.ended+1 {
					t.Fatalf("%d ends, the last: %s", now.ended-was.ended, reason)
				}
				if now.conns == 0 && now.files == first.files && now.memory == first.memory {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("it has %+v, at first %+v", now, first)
				}
			}
		}
		after, _ := ask()
		t.Logf("%d of %d %s programs had a connection", after.ended-before.ended, kills(), lang)
		if after.ended == before.ended {
			t.Error("none was killed while it had a connection")
		}
	}
	w.Close()
	s.ended(t)
}
