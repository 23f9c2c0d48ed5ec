package msg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"time"
)

// Server is an exported service: a name at which connections arrive.
type Server struct {
	iface    *Interface
	opts     Options
	name     string
	stop     context.CancelFunc
	conns    chan *Conn
	backlog  chan struct{} // full while maxBacklog connections wait for Accept
	withdraw func() error
	done     chan struct{}
	work     sync.WaitGroup

	mu        sync.Mutex
	listeners []Listener
	sessions  map[token]*Conn // guarded by mu
	closed    bool            // guarded by mu
}

// greetTime is how long a peer may take to greet, and to wait for room among those that
// wait for Accept.
const greetTime = 5 * time.Second

// maxBacklog is how many connections wait for Accept. A peer beyond them is welcomed
// when there is room, or refused.
const maxBacklog = 256

// Export makes a service that speaks iface known as name. It lasts until Close
// or the end of ctx.
func Export(ctx context.Context, name string, iface *Interface, o *Options) (*Server, error) {
	needContext(ctx, "Export")
	opts, err := o.fill()
	if err != nil {
		return nil, err
	}
	if err := iface.check(); err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(ctx)
	s := &Server{iface: iface, opts: opts, name: name, stop: stop, conns: make(chan *Conn), backlog: make(chan struct{}, maxBacklog), done: make(chan struct{}), sessions: make(map[token]*Conn)}
	e := Endpoint{Interface: iface.Name, Fingerprint: iface.Fingerprint}
	for _, scheme := range opts.Schemes {
		l, err := s.listen(ctx, scheme)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("msg: exporting %s: %w", name, err)
		}
		s.listeners = append(s.listeners, l)
		e.Addrs = append(e.Addrs, l.Addr())
	}
	if s.withdraw, err = opts.Resolver.Publish(ctx, name, e); err != nil {
		s.Close()
		return nil, fmt.Errorf("msg: exporting %s: %w", name, err)
	}
	for _, l := range s.listeners {
		s.work.Add(1)
		go s.accept(run, l)
	}
	context.AfterFunc(run, func() { s.Close() })
	return s, nil
}

func (s *Server) listen(ctx context.Context, scheme string) (Listener, error) {
	d, err := driver(scheme)
	if err != nil {
		return nil, err
	}
	hint, err := s.opts.Resolver.Place(ctx, s.name, scheme)
	if err != nil {
		return nil, err
	}
	l, err := d.Listen(ctx, s.name, hint)
	if o, ok := l.(Opener); ok && err == nil && len(s.opts.Users) > 0 {
		if err = o.OpenToUsers(); err != nil {
			l.Close()
		}
	}
	return l, err
}

// Addrs are the addresses at which the service can be reached.
func (s *Server) Addrs() (addrs []string) {
	s.made("Addrs")
	for _, l := range s.listeners {
		addrs = append(addrs, l.Addr())
	}
	return addrs
}

// Accept waits for the next connection. At most 256 wait for it: more peers wait to be
// welcomed, and are refused after 5 s. A connection that ends before it is accepted is
// dropped, unless the peer sent something on it.
func (s *Server) Accept(ctx context.Context) (*Conn, error) {
	s.made("Accept")
	needContext(ctx, "Accept")
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.done:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close withdraws the name. Connections that were accepted stay, but cannot be
// bound again.
func (s *Server) Close() error {
	s.made("Close")
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	close(s.done)
	s.stop()
	var err error
	if s.withdraw != nil {
		err = s.withdraw()
	}
	for _, l := range s.listeners {
		err = errors.Join(err, l.Close())
	}
	s.work.Wait()
	return err
}

// accept takes in what arrives at one address.
func (s *Server) accept(ctx context.Context, l Listener) {
	defer s.work.Done()
	for {
		link, err := l.Accept(ctx)
		if err != nil {
			return // closed; Accept skips what concerns one link only
		}
		go s.greet(ctx, link, l.Addr())
	}
}

// greet exchanges greetings with whoever dialled, and makes a connection of the
// link or gives the link to the session that it asks for. addr is where it came.
func (s *Server) greet(ctx context.Context, link Link, addr string) {
	limit, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	stop := context.AfterFunc(limit, func() { link.Close() })
	frame, files, err := link.Recv(limit)
	for _, f := range files {
		f.Close()
	}
	if err != nil || !stop() {
		link.Close()
		return
	}
	theirs, err := parseGreeting(frame)
	if other := (*VersionError)(nil); errors.As(err, &other) && frame[0] == frameHello {
		g := newGreeting(frameRefuse, s.iface, token{ProtocolVersion}, link)
		g.reason = refuseVersion
		f := g.frame()
		f[1] = byte(other.Peers) // a version that it reads
		link.Send(limit, f, nil)
		link.Close()
		return
	}
	if err != nil || theirs.kind != frameHello {
		link.Close()
		return
	}
	switch {
	case s.opts.allowPeer(link, 0) != nil:
		s.refuse(limit, link, refuseUser)
	case theirs.fingerprint != s.iface.Fingerprint:
		s.refuse(limit, link, refuseMismatch)
	case theirs.token != (token{}):
		s.welcomeBack(limit, link, &theirs)
	default:
		s.admit(limit, link, &theirs, addr)
	}
}

// refuse says why the server does not take a link, and closes it.
func (s *Server) refuse(limit context.Context, link Link, reason byte) {
	g := newGreeting(frameRefuse, s.iface, token{}, link)
	g.reason = reason
	link.Send(limit, g.frame(), nil)
	link.Close()
}

// welcomeBack binds a session to a new link.
func (s *Server) welcomeBack(limit context.Context, link Link, theirs *greeting) {
	s.mu.Lock()
	c := s.sessions[theirs.token]
	s.mu.Unlock()
	if c == nil {
		s.refuse(limit, link, refuseSession)
		return
	}
	c.startMove()
	defer c.endMove()
	// A peer that has its welcome may at once dial again: the order of
	// welcomes is that of new binds.
	err := c.oneBind(limit, func() error {
		g := c.greeting(frameWelcome, theirs.token, link)
		b, err := bind(link, theirs)
		if err == nil {
			err = link.Send(limit, g.frame(), nil)
		}
		if err != nil {
			return err
		}
		if err := c.rebind(b, theirs.delivered); err != nil {
			c.fail(err)
		}
		return nil
	})
	if err != nil {
		link.Close()
	}
}

// admit welcomes a link when fewer than maxBacklog connections wait for Accept.
func (s *Server) admit(limit context.Context, link Link, theirs *greeting, addr string) {
	select {
	case s.backlog <- struct{}{}:
		s.welcome(limit, link, theirs, addr)
		<-s.backlog
	case <-s.done:
		link.Close()
	case <-limit.Done():
		late, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.refuse(late, link, refuseBusy)
	}
}

// welcome makes a connection of a link, and waits until Accept takes it. One that ends
// before is forgotten, unless it holds messages.
func (s *Server) welcome(limit context.Context, link Link, theirs *greeting, addr string) {
	tok := newToken()
	g := newGreeting(frameWelcome, s.iface, tok, link)
	b, err := bind(link, theirs)
	if err == nil {
		err = link.Send(limit, g.frame(), nil)
	}
	if err != nil {
		link.Close()
		return
	}
	c := newConn(s.iface, &s.opts, b, session{token: tok, addr: addr, gone: func() { s.forget(tok) }})
	s.mu.Lock()
	s.sessions[tok] = c // before it can end
	s.mu.Unlock()
	c.start(b)
	select {
	case s.conns <- c:
		return
	case <-s.done:
	case <-c.done:
		if c.unread() {
			select {
			case s.conns <- c:
				return
			case <-s.done:
			}
		}
	}
	c.Close()
}

func (s *Server) forget(tok token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, tok)
}

// Connect connects to the service called name, which must speak iface. While nobody has
// the name, or nobody answers there, it waits, for Options.Wait or until the end of ctx;
// then the error wraps ErrNoName. What waiting cannot fix is returned at once:
// *MismatchError, *VersionError, *UserError, *PeerError, fs.ErrPermission, an address of a
// driver that is not imported.
func Connect(ctx context.Context, name string, iface *Interface, o *Options) (*Conn, error) {
	needContext(ctx, "Connect")
	opts, err := o.fill()
	if err != nil {
		return nil, err
	}
	if err := iface.check(); err != nil {
		return nil, err
	}
	limit := ctx
	if opts.Wait > 0 {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeout(ctx, opts.Wait)
		defer cancel()
	}
	begun := time.Now()
	failed := func(err error) error {
		if cerr := ctx.Err(); cerr != nil && !errors.Is(err, cerr) {
			err = fmt.Errorf("%w: %w", cerr, err)
		}
		if waited := time.Since(begun); waited > time.Millisecond {
			return fmt.Errorf("msg: connecting to %s, for %v: %w", name, waited.Round(time.Millisecond), err)
		}
		return fmt.Errorf("msg: connecting to %s: %w", name, err)
	}
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		e, err := opts.Resolver.Resolve(limit, name, opts.Wait > 0)
		if err != nil {
			if limit.Err() != nil && !errors.Is(err, ErrNoName) {
				err = fmt.Errorf("%w: %w", ErrNoName, err)
			}
			return nil, failed(err)
		}
		c, later, err := dialAny(limit, &e, iface, &opts)
		if err == nil {
			return c, nil
		}
		// The name is there but nobody is: the service is starting or ending.
		if opts.Wait < 0 || !later {
			return nil, failed(err)
		}
		select {
		case <-limit.Done():
			return nil, failed(fmt.Errorf("%w: nobody answers: %w", ErrNoName, err))
		case <-time.After(wait):
		}
	}
}

// dialAny dials the addresses of an endpoint in turn. later says of an error that one of
// them may answer another time.
func dialAny(ctx context.Context, e *Endpoint, iface *Interface, opts *Options) (c *Conn, later bool, err error) {
	if e.Fingerprint != (Fingerprint{}) && e.Fingerprint != iface.Fingerprint {
		return nil, false, &MismatchError{OurName: iface.Name, PeerName: e.Interface, Ours: iface.Fingerprint, Peers: e.Fingerprint}
	}
	if err := opts.allow(e.Owner, "the name"); err != nil {
		return nil, false, err
	}
	if len(e.Addrs) == 0 {
		return nil, true, fmt.Errorf("%w: it has no address", ErrNoName)
	}
	var all error
	for i, addr := range e.Addrs {
		c, err := dial(ctx, addr, iface, opts, e.Owner)
		if err == nil {
			return c, false, nil
		}
		switch wrong := (*MismatchError)(nil); {
		case errors.As(err, &wrong), errors.Is(err, fs.ErrPermission):
			return nil, false, err // of the service, wherever it is reached
		case i == 0:
			all = err
		default:
			all = errors.Join(all, err)
		}
		later = later || mayCome(err)
	}
	return nil, later, all
}

// mayCome says whether an error of dialling an address may pass when the service has
// started.
func mayCome(err error) bool {
	var version *VersionError
	var peer *PeerError
	return !errors.As(err, &version) && !errors.As(err, &peer) &&
		!errors.Is(err, errNoDriver) && !errors.Is(err, syscall.EPROTOTYPE)
}

// Dial connects to a service by its address, once.
func Dial(ctx context.Context, addr string, iface *Interface, o *Options) (*Conn, error) {
	needContext(ctx, "Dial")
	opts, err := o.fill()
	if err != nil {
		return nil, err
	}
	if err := iface.check(); err != nil {
		return nil, err
	}
	return dial(ctx, addr, iface, &opts, 0)
}

// dial is Dial for the service of a name that belongs to the user owner.
func dial(ctx context.Context, addr string, iface *Interface, opts *Options, owner int) (*Conn, error) {
	link, err := dialLink(ctx, addr, opts.rings(iface))
	if err != nil {
		return nil, err
	}
	if err := opts.allowPeer(link, owner); err != nil {
		link.Close()
		return nil, err
	}
	mine := newGreeting(frameHello, iface, token{}, link)
	theirs, err := greet(ctx, link, &mine)
	if err != nil {
		link.Close()
		return nil, err
	}
	b, err := bind(link, theirs)
	if err != nil {
		link.Close()
		return nil, err
	}
	c := newConn(iface, opts, b, session{token: theirs.token, dialled: true, addr: addr})
	c.start(b)
	return c, nil
}
