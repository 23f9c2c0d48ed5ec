// Package interop has the tests of the generated stubs across processes and
// languages: all four pairs of a client and a server in Go and C.
package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"hardtack/idl/ping"
	"hardtack/idl/shapes"
	"hardtack/idl/tasks"
	"hardtack/msg"
	"hardtack/msg/ump"
	"hardtack/msg/wire"
)

var pid = os.Getpid()

// contains reports whether s has all the words.
func contains(s string, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(s, w) {
			return false
		}
	}
	return true
}

// patience bounds what should take milliseconds.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	if mode := os.Getenv("INTEROP_MODE"); mode != "" {
		if err := child(mode, os.Getenv("INTEROP_NAME")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "interop")
	if err != nil {
		panic(err)
	}
	os.Setenv("HARDTACK_MSG_DIR", dir)
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// child is what the other process does when it is a Go program.
func child(mode, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if strings.HasPrefix(mode, "stream ") {
		return streamChild(ctx, mode, name)
	}
	if mode == "client" {
		return pingClient(ctx, name, 500)
	}
	s, err := ping.Export(ctx, name, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("ready")
	c, err := s.Accept(ctx)
	if err != nil {
		return err
	}
	if err := pingServe(ctx, c); !errors.Is(err, msg.ErrPeerClosed) {
		return err
	}
	fmt.Println("ended closed by the peer")
	return nil
}

func pingServe(ctx context.Context, c *ping.Conn) error {
	for {
		m, err := c.Recv(ctx)
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *ping.Ping:
			if err := c.Send(ctx, &ping.Pong{ClientID: m.ClientID, MsgID: m.MsgID}); err != nil {
				return err
			}
		case *ping.Pong:
			return fmt.Errorf("a server received %v", *m)
		}
	}
}

func pingClient(ctx context.Context, name string, n int) error {
	c, err := ping.Connect(ctx, name, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range n {
		if err := c.Send(ctx, &ping.Ping{ClientID: 7, MsgID: uint32(i)}); err != nil {
			return err
		}
		m, err := c.Recv(ctx)
		if err != nil {
			return err
		}
		if p, ok := m.(*ping.Pong); !ok || *p != (ping.Pong{ClientID: 7, MsgID: uint32(i)}) {
			return fmt.Errorf("pong %v to ping %d", m, i)
		}
	}
	return nil
}

// program compiles a C program of this folder with the stubs of interfaces.
func program(t testing.TB, name string, interfaces ...string) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("Linux only")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no C compiler")
	}
	out := filepath.Join(os.Getenv("HARDTACK_MSG_DIR"), name)
	if _, err := os.Stat(out); err == nil {
		return out // an earlier test has compiled it
	}
	args := []string{"-I../../msg/c"}
	for _, i := range interfaces {
		args = append(args, "-I../"+i+"/c")
	}
	objects := compile(t, "../../msg/c")
	for _, i := range interfaces {
		objects = append(objects, compile(t, "../"+i+"/c")...)
	}
	gcc(t, "", append(append(args, "-o", out, "c/"+name+".c"), objects...)...)
	return out
}

// compile compiles the C files of a folder, once.
func compile(t testing.TB, folder string) (objects []string) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.c")
	lib, liberr := filepath.Abs("../../msg/c")
	if err != nil || liberr != nil || len(files) == 0 {
		t.Fatal("no C files in", folder, err, liberr)
	}
	dir := os.Getenv("HARDTACK_MSG_DIR")
	args := []string{"-I" + lib, "-c"}
	for i, f := range files {
		objects = append(objects, filepath.Join(dir, strings.TrimSuffix(filepath.Base(f), "c")+"o"))
		if files[i], err = filepath.Abs(f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(objects[0]); err != nil {
		gcc(t, dir, append(args, files...)...)
	}
	return objects
}

func gcc(t testing.TB, dir string, args ...string) {
	t.Helper()
	args = append([]string{"-std=c11", "-Wall", "-Wextra", "-Werror", "-O0"}, append(sanitizers(), args...)...)
	cmd := exec.Command("gcc", args...)
	cmd.Dir = dir
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
}

// sanitizers are the flags for programs that watch their memory and what is not
// defined, where the compiler has what that takes.
var sanitizers = sync.OnceValue(func() []string {
	flags := []string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all"}
	try := exec.Command("gcc", append(flags, "-x", "c", "-", "-o", filepath.Join(os.Getenv("HARDTACK_MSG_DIR"), "try"))...)
	try.Stdin = strings.NewReader("int main(void) { return 0; }")
	if try.Run() != nil || exec.Command(try.Args[len(try.Args)-1]).Run() != nil {
		return nil
	}
	return flags
})

// process is another program that runs.
type process struct {
	cmd *exec.Cmd
	out *bufio.Reader
	err bytes.Buffer
}

func start(t testing.TB, env []string, name string, args ...string) *process {
	t.Helper()
	return startWith(t, nil, env, name, args...)
}

func startWith(t testing.TB, in io.Reader, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(name, args...)}
	p.cmd.Stdin = in
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = &p.err
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(patience, func() { p.cmd.Process.Kill() })
	t.Cleanup(func() { stop.Stop(); p.cmd.Process.Kill(); p.cmd.Wait() })
	return p
}

// startHeld is start with an input that does not end before the process does.
func startHeld(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	p := startWith(t, r, env, name, args...)
	r.Close()
	return p
}

func (p *process) line(t *testing.T, want string) {
	t.Helper()
	if s, err := p.out.ReadString('\n'); strings.TrimSpace(s) != want {
		t.Fatalf("the other process says %q, not %q (%v)\n%s", s, want, err, p.err.String())
	}
}

// ended waits for the process and returns what else it said.
func (p *process) ended(t *testing.T) string {
	t.Helper()
	rest, _ := io.ReadAll(p.out)
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, p.err.String())
	}
	return strings.TrimSpace(string(rest))
}

func TestFourPairs(t *testing.T) {
	c := program(t, "pingpong", "ping")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, lang, mode, name string) *process {
		if lang == "C" {
			args := []string{mode, name, "500"}
			if mode == "server" {
				args[2] = "1"
			}
			return start(t, nil, c, args...)
		}
		return start(t, []string{"INTEROP_MODE=" + mode, "INTEROP_NAME=" + name}, self)
	}
	for _, client := range []string{"Go", "C"} {
		for _, server := range []string{"Go", "C"} {
			t.Run(client+" to "+server, func(t *testing.T) {
				name := "pairs-" + client + server
				s := run(t, server, "server", name)
				s.line(t, "ready")
				run(t, client, "client", name).ended(t)
				s.line(t, "ended closed by the peer")
				s.ended(t)
			})
		}
	}
}

// A C program sends back every shape of message as it came.
func TestEcho(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s := start(t, nil, program(t, "shapes_peer", "shapes"), "echo", "echo")
	s.line(t, "ready")
	c, err := shapes.Connect(ctx, "echo", nil)
	if err != nil {
		t.Fatal(err)
	}
	region := shapes.Region{Base: 1, Length: 1 << 40, Kind: shapes.MappingNone, Cores: shapes.Mask{1, 2, 3, 1 << 63}}
	regions := []shapes.Region{region, {}, region}
	for _, m := range []shapes.Msg{
		&shapes.Nothing{},
		&shapes.Scalars{A: 1, B: 2, C: 3, D: 1 << 60, E: -1, F: -2, G: -3, H: -4, I: true, J: 'x', K: 9, L: 10, M: 11, N: -12, O: 13, P: -14, Q: 15, R: 16, S: 17, T: 18, U: shapes.MappingPrivate},
		&shapes.Arrays{Mac: [6]byte{1, 2, 3, 4, 5, 6}, Words: []uint16{1, 65535}, Raw: []byte("raw"), Text: []byte("text"), One: region.Cores, Two: shapes.Masks{region.Cores, {9}}, All: regions, Names: []string{"one", "", "three\x00with zero"}, Sum: shapes.Digest{31: 1}},
		&shapes.Arrays{Words: []uint16{}, Raw: bytes.Repeat([]byte{7}, 4096), Text: bytes.Repeat([]byte("long "), 12000), All: []shapes.Region{}, Names: []string{strings.Repeat("n", 65536)}},
		&shapes.Texts{Unbound: strings.Repeat("u", 60000), Bound: "b", Heading: "h"},
		&shapes.Texts{Bound: strings.Repeat("fragments ", 25)},
		&shapes.Nested{Seg: shapes.Segment{Regions: regions, Note: "note", Heading: "heading", Tag: [4]byte{'a', 'b'}}, From: shapes.Address{Port: 80, Addr: [16]byte{15: 1}}},
		&shapes.Ask{Type: 5}, &shapes.Answer{Register: 4, Type: 3}, &shapes.RegionMsg{Region: region}, &shapes.MsgMsg{S: "s"},
	} {
		for range 70 { // more than the ring has slots
			if err := c.Send(ctx, m); err != nil {
				t.Fatal(err)
			}
			got, err := c.Recv(ctx)
			if err != nil {
				t.Fatalf("%T: %v", m, err)
			}
			if fmt.Sprint(m) != fmt.Sprint(got) || reflect.TypeOf(m) != reflect.TypeOf(got) {
				t.Fatalf("sent %.300v\nreceived %.300v", m, got)
			}
		}
	}
	capsThereAndBack(ctx, t, c)
	k := shapes.NewClient(c, nil)
	for i := range uint32(100) {
		r, err := k.ReadBlock(ctx, shapes.ReadBlockCall{Lba: i})
		if err != nil || r.Err != wire.Errval(i) || r.Buffer[0] != byte(i) {
			t.Fatal(r, err)
		}
	}
	r, err := k.LookUp(ctx, shapes.LookUpCall{Name: "name", ID: 77})
	if err != nil || r.Found != 77 || r.Seg.Note != "name" || r.Seg.Memory.File == nil {
		t.Fatalf("%+v %v", r, err)
	}
	r.Seg.Memory.Close()
	c.Close()
	s.line(t, "ended closed by the peer")
	s.ended(t)
}

// capsThereAndBack sends a file and the end of a connection to a C program, which
// sends both back.
func capsThereAndBack(ctx context.Context, t *testing.T, c *shapes.Conn) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("contents"); err != nil {
		t.Fatal(err)
	}
	here, there, err := ping.Pair(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	if err := here.Send(ctx, &ping.Ping{MsgID: 1}); err != nil {
		t.Fatal(err)
	}
	end, err := there.End()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Send(ctx, &shapes.Caps{First: msg.Cap{File: file}, Second: msg.Cap{End: end}}); err != nil {
		t.Fatal(err)
	}
	m, err := c.Recv(ctx)
	if err != nil {
		t.Fatal(err)
	}
	caps, ok := m.(*shapes.Caps)
	if !ok || caps.First.File == nil || caps.Second.End == nil || caps.More[0].Kind() != msg.CapNone {
		t.Fatalf("received %v", m)
	}
	defer caps.First.Close()
	b := make([]byte, 8)
	if _, err := caps.First.File.ReadAt(b, 0); err != nil || string(b) != "contents" {
		t.Errorf("the file has %q, %v", b, err)
	}
	back, err := ping.Adopt(caps.Second.End, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if m, err := back.Recv(ctx); err != nil || m.(*ping.Ping).MsgID != 1 {
		t.Error(m, err)
	}
	if err := back.Send(ctx, &ping.Pong{MsgID: 2}); err != nil {
		t.Fatal(err)
	}
	if m, err := here.Recv(ctx); err != nil || m.(*ping.Pong).MsgID != 2 {
		t.Error(m, err)
	}
}

// A C program has many calls under way at a Go server, and another does the
// same at a C server.
func TestCalls(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	peer := program(t, "shapes_peer", "shapes")
	const calls = "3000"
	s, err := shapes.Export(ctx, "calls", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := start(t, nil, peer, "calls", "calls", calls)
	c, err := s.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c.Share()
	var work sync.WaitGroup
	for {
		m, err := c.Recv(ctx)
		if err != nil {
			if !errors.Is(err, msg.ErrPeerClosed) {
				t.Error(err)
			}
			break
		}
		call := *m.(*shapes.ReadBlockCall)
		work.Add(1)
		go func() { // they answer in any order
			defer work.Done()
			lba := call.Lba
			if err := c.ReplyReadBlock(ctx, &call, &shapes.ReadBlockReply{Buffer: []byte{byte(lba), byte(lba >> 8)}, Err: wire.Errval(lba)}); err != nil {
				t.Error(err)
			}
		}()
	}
	work.Wait()
	if got := p.ended(t); got != calls+" calls" {
		t.Error(got)
	}

	e := start(t, nil, peer, "echo", "calls-c")
	e.line(t, "ready")
	if got := start(t, nil, peer, "calls", "calls-c", calls).ended(t); got != calls+" calls" {
		t.Error(got)
	}
	e.line(t, "ended closed by the peer")
	e.ended(t)
}

// Ends that come from different interfaces are refused with both names, by a
// server in either language.
func TestMismatch(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := program(t, "pingpong", "ping")
	s := start(t, nil, c, "server", "mismatch-c")
	s.line(t, "ready")
	_, err := tasks.Connect(ctx, "mismatch-c", nil)
	var mismatch *msg.MismatchError
	if !errors.As(err, &mismatch) || mismatch.PeerName != "ping" || mismatch.OurName != "tasks" {
		t.Errorf("Go to C: %v", err)
	}
	g, err := tasks.Export(ctx, "mismatch-go", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	out, err := exec.CommandContext(ctx, c, "client", "mismatch-go").CombinedOutput()
	if err == nil || !strings.Contains(string(out), `interface mismatch (this end speaks "ping"`) || !strings.Contains(string(out), `the peer "tasks"`) {
		t.Errorf("C to Go: %v, %s", err, out)
	}
}

// A C program is sent bodies of any bytes: it closes the connection or sends
// something back, and ends as it always does.
func TestHostile(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	prog := program(t, "shapes_peer", "shapes")
	rng := rand.New(rand.NewPCG(1, 2))
	var refused, echoed int
	for round := range 60 {
		name := fmt.Sprintf("hostile%d", round)
		s := start(t, nil, prog, "echo", name)
		s.line(t, "ready")
		c, err := shapes.Connect(ctx, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 50 {
			num := uint16(1 + rng.IntN(len(shapes.Interface.Messages)))
			d := shapes.Interface.Message(num)
			if d.Kind == msg.Reply || d.Caps > 0 { // it waits for no replies
				continue
			}
			n := d.Min
			if d.Max > n {
				n += rng.IntN(min(d.Max-n, 2000) + 1)
			}
			b, err := c.BeginLong(ctx, n)
			if err != nil {
				break
			}
			for i := range b { // small numbers are likelier to be lengths
				if b[i] = 0; rng.IntN(4) == 0 {
					b[i] = byte(rng.IntN(1 << rng.IntN(9)))
				}
			}
			if err := c.CommitLong(ctx, num); err != nil {
				break
			}
			if _, _, err := c.Next(ctx); err != nil {
				if !errors.Is(err, msg.ErrPeerGone) && !errors.Is(err, msg.ErrPeerClosed) {
					t.Fatal(err)
				}
				refused++
				break
			}
			if d.Name == "ping" {
				c.Next(ctx) // the reply after the message
			}
			echoed++
		}
		c.Close()
		if out := s.ended(t); out != "ended closed by the peer" && out != "ended the peer broke the protocol" {
			t.Fatalf("it said %q", out)
		}
	}
	if refused == 0 || echoed == 0 {
		t.Errorf("%d refused, %d echoed", refused, echoed)
	}
}

// A C program is sent frames of any bytes, and finds anything in its ring: it
// closes that connection and ends as it always does.
func TestHostileRing(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	prog := program(t, "shapes_peer", "shapes")
	rng := rand.New(rand.NewPCG(3, 4))
	reasons := map[string]int{}
	for round := range 80 {
		name := fmt.Sprintf("ring%d", round)
		s := start(t, nil, prog, "echo", name)
		s.line(t, "ready")
		link, err := ump.Driver{}.Dial(ctx, "unix:"+filepath.Join(os.Getenv("HARDTACK_MSG_DIR"), name+".sock"))
		if err != nil {
			t.Fatal(err)
		}
		hello := make([]byte, 44) // see msg/frame.go
		hello[0], hello[1] = 1, 1
		copy(hello[4:], shapes.Interface.Fingerprint[:])
		if err := link.Send(ctx, append(hello, "shapes"...), nil); err != nil {
			t.Fatal(err)
		}
		if b, _, err := link.Recv(ctx); err != nil || b[0] != 2 {
			t.Fatal("no welcome", err)
		}
		tx, _ := link.Shared().Pages()
		if round%4 == 0 { // frames
			for range 20 {
				b := make([]byte, 1+rng.IntN(60))
				for i := range b {
					b[i] = byte(rng.IntN(1 << rng.IntN(9)))
				}
				b[0] = []byte{4, 4, 5, 5, 7, 9, 0xf1, 0xf2, b[0]}[rng.IntN(9)]
				var files []*os.File
				for range rng.IntN(3) {
					files = append(files, os.Stderr)
				}
				if link.Send(ctx, b, files) != nil {
					break
				}
			}
		}
		for at := 256; at < len(tx); at += 64 {
			slot := tx[at : at+64]
			for i := range slot[:56] {
				slot[i] = byte(rng.IntN(1 << rng.IntN(9)))
			}
			h := rng.Uint64()
			if rng.IntN(10) > 0 { // a header that could be one
				num, flags, n := uint64(1+rng.IntN(16)), uint64(1)<<rng.IntN(5)&0xf, uint64(rng.IntN(57))
				h = num<<16 | flags<<28 | n<<48 | h&(0xf<<32)
			}
			binary.LittleEndian.PutUint64(slot[56:], h&^0xffff|1)
		}
		link.Shared().Wake()
		link.Send(ctx, []byte{6}, nil)
		link.Close()
		rest, _ := io.ReadAll(s.out)
		err = s.cmd.Wait() // its status says only whether it could echo everything
		out := strings.TrimSpace(string(rest))
		if status, ok := err.(*exec.ExitError); err != nil && (!ok || status.ExitCode() != 1) || !strings.HasPrefix(out, "ended ") {
			t.Fatalf("round %d: %v, it said %q\n%s", round, err, out, s.err.String())
		}
		reasons[out]++
	}
	if reasons["ended the peer broke the protocol"] == 0 {
		t.Errorf("reasons: %v", reasons)
	}
}

// The survivor of a kill sees it, in either language.
func TestKilled(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	prog := program(t, "pingpong", "ping")
	s := start(t, nil, prog, "server", "killed-c")
	s.line(t, "ready")
	c, err := ping.Connect(ctx, "killed-c", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Send(ctx, &ping.Ping{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Recv(ctx); err != nil {
		t.Fatal(err)
	}
	s.cmd.Process.Kill()
	if _, err := c.Recv(ctx); !errors.Is(err, msg.ErrPeerGone) {
		t.Errorf("Go sees %v", err)
	}

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		g := start(t, []string{"INTEROP_MODE=server", "INTEROP_NAME=killed-go"}, self)
		g.line(t, "ready")
		p := start(t, nil, prog, "client", "killed-go", "1000000000")
		time.Sleep(wait) // wherever it is then
		g.cmd.Process.Kill()
		g.cmd.Wait()
		io.Copy(io.Discard, p.out)
		err := p.cmd.Wait()
		if err != nil && strings.Contains(p.err.String(), "no such name") && wait < patience {
			continue // it had not got that far
		}
		if err == nil || !strings.Contains(p.err.String(), "the peer is gone") {
			t.Errorf("C ends with %v: %s", err, p.err.String())
		}
		break
	}
}
