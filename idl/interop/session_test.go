package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hardtack/idl/shapes"
	"hardtack/msg"
)

// The messages of c/stream.c.
const (
	streamFile = iota
	streamBulk
	streamLong
	streamShort
)

func streamKind(i int) int {
	switch {
	case i%97 == 0:
		return streamFile
	case i%50 == 0:
		return streamBulk
	case i%7 == 3:
		return streamLong
	}
	return streamShort
}

func streamLength(i int) int {
	if streamKind(i) == streamBulk {
		return 700 + i%5000
	}
	return 20 + i%300
}

var streamText = strings.Repeat("x", 6000)

func streamSend(ctx context.Context, c *shapes.Conn, i int) error {
	switch streamKind(i) {
	case streamFile:
		fd, err := unix.MemfdCreate("number", unix.MFD_CLOEXEC)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), "number")
		defer f.Close()
		fmt.Fprint(f, i)
		return c.Send(ctx, &shapes.Caps{First: msg.Cap{File: f}})
	case streamBulk, streamLong:
		return c.Send(ctx, &shapes.Texts{Unbound: streamText[:streamLength(i)], Heading: strconv.Itoa(i)})
	}
	return c.Send(ctx, &shapes.Ask{Type: uint64(i)})
}

// streamNumber is the number of a message, if it is whole.
func streamNumber(m shapes.Msg) (int, error) {
	switch m := m.(type) {
	case *shapes.Caps:
		if m.First.File == nil {
			return 0, errors.New("no file")
		}
		defer m.First.Close()
		b := make([]byte, 20)
		n, err := m.First.File.ReadAt(b, 0)
		if err != nil && err != io.EOF {
			return 0, err
		}
		return strconv.Atoi(string(b[:n]))
	case *shapes.Texts:
		i, err := strconv.Atoi(m.Heading)
		if err == nil && m.Unbound != streamText[:streamLength(i)] {
			err = fmt.Errorf("text of %d bytes in message %d", len(m.Unbound), i)
		}
		return i, err
	case *shapes.Ask:
		return int(m.Type), nil
	default:
		return 0, fmt.Errorf("message %v", m)
	}
}

// streamBoth is one end: n messages each way, and new binds in between, to addr.
func streamBoth(ctx context.Context, c *shapes.Conn, n, every int, addr string) error {
	errs := make(chan error, 2)
	go func() {
		for i := range n {
			if err := streamSend(ctx, c, i); err != nil {
				errs <- fmt.Errorf("sending %d: %w", i, err)
				return
			}
		}
		errs <- nil
	}()
	go func() {
		for i := range n {
			m, err := c.Recv(ctx)
			if err != nil {
				errs <- fmt.Errorf("receiving %d: %w", i, err)
				return
			}
			if got, err := streamNumber(m); err != nil || got != i {
				errs <- fmt.Errorf("message %d instead of %d: %w", got, i, err)
				return
			}
			if every > 0 && rand.IntN(every) == 0 {
				go c.Rebind(ctx, addr) // an answer is not awaited, as in C
			}
		}
		errs <- nil
	}()
	return errors.Join(<-errs, <-errs)
}

// Connections are bound again while both ends send all they can, by either end,
// in all pairs of languages: nothing is lost, doubled or out of order.
func TestRebind(t *testing.T) {
	prog := program(t, "stream", "shapes")
	n, every := 12000, 300
	if os.Getenv("HARDTACK_STRESS") != "" {
		n = 1000000
	}
	args := func(mode, name string, every int) []string {
		return []string{mode, name, strconv.Itoa(n), strconv.Itoa(every)}
	}
	for _, by := range []string{"client", "server", "nobody"} {
		client, server := 0, 0
		switch by {
		case "client":
			client = every
		case "server":
			server = every
		}
		t.Run("C to C by "+by, func(t *testing.T) {
			s := start(t, nil, prog, args("server", "cc"+by, server)...)
			s.line(t, "ready")
			want := fmt.Sprintf("%d and %d messages", n, n)
			c := start(t, nil, prog, args("client", "cc"+by, client)...)
			if got := c.ended(t); got != want {
				t.Errorf("the client: %s", got)
			}
			if got := s.ended(t); got != want {
				t.Errorf("the server: %s", got)
			}
			t.Log(c.err.String(), s.err.String())
		})
		t.Run("Go to C by "+by, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			s := start(t, nil, prog, args("server", "gc"+by, server)...)
			s.line(t, "ready")
			c, err := shapes.Connect(ctx, "gc"+by, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := streamBoth(ctx, c, n, client, ""); err != nil {
				s.cmd.Process.Kill()
				s.cmd.Wait()
				t.Fatal(err, s.err.String())
			}
			c.Close()
			s.ended(t)
			t.Log(s.err.String())
		})
		t.Run("C to Go by "+by, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			s, err := shapes.Export(ctx, "cg"+by, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			p := start(t, nil, prog, args("client", "cg"+by, client)...)
			c, err := s.Accept(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := streamBoth(ctx, c, n, server, s.Addrs()[0]); err != nil {
				p.cmd.Process.Kill()
				p.cmd.Wait()
				t.Fatal(err, p.err.String())
			}
			p.ended(t)
			c.Close()
			t.Log(p.err.String())
		})
	}
}
