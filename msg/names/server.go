package names

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Server answers the requests of a machine's processes.
type Server struct {
	listener *net.UnixListener
	store    *store
	embedded bool
	release  func() // gives the place back

	mu     sync.Mutex
	conns  map[*net.UnixConn]struct{} // guarded by mu
	closed bool                       // guarded by mu
	done   sync.WaitGroup
}

// serve answers on a listener until Close. release is called at the end.
func serve(l *net.UnixListener, embedded bool, release func()) *Server {
	s := &Server{
		listener: l, store: newStore(), embedded: embedded, release: release,
		conns: map[*net.UnixConn]struct{}{},
	}
	s.done.Add(1)
	go s.accept()
	return s
}

// Addr is the path of the server's socket.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends all connections. Clients look for, or start, another server.
func (s *Server) Close() error {
	s.stop()
	s.done.Wait()
	return nil
}

// Wait waits for the end of the server, by Close or because another server
// asked an embedded one for its place, or for ctx.
func (s *Server) Wait(ctx context.Context) error {
	ended := make(chan struct{})
	go func() { s.done.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.listener.Close()
	for c := range s.conns {
		c.Close()
	}
	s.release()
}

func (s *Server) accept() {
	defer s.done.Done()
	for {
		c, err := s.listener.AcceptUnix()
		if err != nil {
			if s.isClosed() || errors.Is(err, net.ErrClosed) {
				s.stop()
				return
			}
			// Out of descriptors or memory: those who are connected go on, and
			// the others wait in the backlog.
			time.Sleep(10 * time.Millisecond)
			continue
		}
		s.mu.Lock()
		if s.closed {
			c.Close()
		} else {
			s.conns[c] = struct{}{}
			s.done.Add(1)
			go s.serveConn(c)
		}
		s.mu.Unlock()
	}
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// serveConn reads the requests of one process. When the socket ends, so do the
// entries.
func (s *Server) serveConn(c *net.UnixConn) {
	defer s.done.Done()
	out := newOutbox()
	s.done.Add(1)
	go s.write(c, out)
	defer func() {
		out.close()
		c.SetWriteDeadline(time.Now().Add(time.Second)) // for the last words
	}()

	cred, err := credentials(c)
	if err != nil {
		out.put(failure(0, fmt.Errorf("%w: no credentials: %w", errProtocol, err)))
		return
	}
	o, err := s.store.join(cred.Uid, uint32(cred.Pid), out)
	if err != nil {
		out.put(failure(0, err))
		return
	}
	defer s.store.leave(o)
	if err := s.requests(c, o); err != nil {
		out.put(failure(0, err))
	}
}

// requests answers until the connection ends, and returns what the peer did
// wrong, if that was why.
func (s *Server) requests(c *net.UnixConn, o *owner) error {
	buf := make([]byte, maxPacket+1)
	hello := false
	for {
		n, err := c.Read(buf)
		if err != nil {
			return nil
		}
		p, err := decode(buf[:n])
		if err == nil {
			err = p.checkRequest()
		}
		if err == nil && (p.op == opHello) == hello {
			err = fmt.Errorf("%w: the first packet, and no other, is hello", errProtocol)
		}
		if err != nil {
			return err
		}
		hello = true
		if err := s.do(o, &p); errors.Is(err, errProtocol) {
			return err
		} else if err != nil {
			o.out.answer(failure(p.id, err))
		}
	}
}

// do carries one request out and answers it, or returns the error to answer.
func (s *Server) do(o *owner, p *packet) error {
	e := &p.entry
	answer := packet{id: p.id, op: opOK}
	switch p.op {
	case opHello:
		if e.Revision != wireVersion {
			return fmt.Errorf("%w: version %d is spoken here, not %d", errProtocol, wireVersion, e.Revision)
		}
		answer.entry = Entry{Revision: wireVersion, UID: uint32(os.Geteuid()), PID: uint32(os.Getpid())}
		if s.embedded {
			answer.arg = 1
		}
	case opSet:
		made, err := s.store.set(o, e.Name, e.Value, Flags(p.arg))
		if err != nil {
			return err
		}
		answer.op, answer.entry = opEntry, made
	case opGet:
		found, err := s.store.get(e.Name)
		if err != nil {
			return err
		}
		answer.op, answer.entry = opEntry, found
	case opWait:
		return s.store.wait(o, p.id, e.Name)
	case opWatch:
		return s.store.watch(o, p.id, e.Name)
	case opCount:
		n, err := s.store.count(e.Name)
		if err != nil {
			return err
		}
		answer.entry.Revision = uint64(n)
	case opList:
		if err := checkPrefix(e.Name); err != nil {
			return err
		}
		for from, more := e.Name, true; more; more = from != "" {
			var batch []Entry
			batch, from = s.store.list(e.Name, from)
			for _, e := range batch {
				o.out.answer(packet{id: p.id, op: opEntry, entry: e})
			}
		}
	case opDelete:
		if err := s.store.delete(o, e.Name); err != nil {
			return err
		}
	case opCancel:
		s.store.cancel(o, e.Revision)
	case opYield:
		if !s.embedded {
			return fmt.Errorf("%w: this server is not embedded", ErrDenied)
		}
		if o.uid != 0 && o.uid != uint32(os.Geteuid()) {
			return fmt.Errorf("%w: this server is of another user", ErrDenied)
		}
		o.out.answer(answer)
		go s.stop()
		return nil
	}
	o.out.answer(answer)
	return nil
}

// write sends what is queued, and closes the socket at the end.
func (s *Server) write(c *net.UnixConn, out *outbox) {
	defer s.done.Done()
	defer func() {
		c.Close() // the reader sees it, and leaves
		out.close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	buf := make([]byte, 0, 512)
	var batch []packet
	for {
		if batch = out.take(batch); batch == nil {
			return
		}
		for i := range batch {
			buf = batch[i].append(buf[:0])
			if _, err := c.Write(buf); err != nil {
				return
			}
		}
	}
}

// credentials are those of the process that opened the peer's socket, from the
// kernel.
func credentials(c *net.UnixConn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, os.NewSyscallError("getsockopt", failed)
	}
	return cred, nil
}

// listenAt makes the socket at a path, for the users that mode says.
func listenAt(path string, mode os.FileMode) (*net.UnixListener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if errors.Is(err, syscall.EINVAL) {
		return nil, fmt.Errorf("%s: the path of a socket has at most 107 bytes: %w", path, err)
	}
	if err != nil {
		return nil, err
	}
	// Until here others could connect if the umask let them, which harms nobody:
	// rights go by user.
	if err := os.Chmod(path, mode); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}
