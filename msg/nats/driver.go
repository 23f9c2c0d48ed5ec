package nats

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"hardtack/msg"
)

// Scheme is what addresses of this driver begin with.
const Scheme = "nats"

const (
	openAgain  = 250 * time.Millisecond // an open without answer is sent again
	maxBacklog = 256                    // links that wait for Accept
)

// Scheme implements msg.Driver.
func (n *Node) Scheme() string { return Scheme }

// Dial implements msg.Driver.
func (n *Node) Dial(ctx context.Context, addr string) (msg.Link, error) {
	name, ok := strings.CutPrefix(addr, Scheme+":")
	if !ok || !isToken(name) {
		return nil, fmt.Errorf("nats: %q is not an address of this driver", addr)
	}
	l := newLink(n, peerID{n.process, randomID()}, addr)
	if err := n.add(l); err != nil {
		return nil, err
	}
	open := (&packet{kind: kindOpen, payload: l.local.append(nil)}).append(nil)
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	// The listener answers to the link. The request is for what the server says
	// in its place.
	for {
		absent := make(chan struct{})
		go func() {
			if n.drop != nil && n.drop(open) {
				return
			}
			asking, cancel := context.WithTimeout(asking, openAgain)
			defer cancel()
			if _, err := n.nc.RequestWithContext(asking, n.subject("s", name), open); err == nats.ErrNoResponders {
				close(absent)
			}
		}()
		var err error
		select {
		case <-l.accepted:
			l.mu.Lock()
			err = l.err
			l.mu.Unlock()
			if err == nil {
				n.meet(l)
				return l, nil
			}
		case <-absent:
			err = fmt.Errorf("nats: nobody listens at %s", addr)
		case <-ctx.Done():
			err = ctx.Err()
		case <-n.stopped:
			err = msg.ErrClosed
		case <-time.After(openAgain):
			continue
		}
		l.failNow(err)
		n.remove(l)
		return nil, err
	}
}

// Listen implements msg.Driver. Without a hint the address is a random one.
func (n *Node) Listen(ctx context.Context, name, hint string) (msg.Listener, error) {
	if hint == "" {
		hint = randomID()
	}
	if !isToken(hint) {
		return nil, fmt.Errorf("nats: %q cannot be part of a subject", hint)
	}
	l := &listener{
		node: n, addr: Scheme + ":" + hint,
		arrived: make(chan *link, maxBacklog), closed: make(chan struct{}), known: map[peerID]*link{},
	}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil, msg.ErrClosed
	}
	n.listeners[l] = struct{}{}
	n.mu.Unlock()
	var err error
	if l.sub, err = n.nc.Subscribe(n.subject("s", hint), l.incoming); err == nil {
		err = n.nc.FlushWithContext(withTimeout(ctx))
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("nats: %w", err)
	}
	return l, nil
}

// withTimeout gives ctx an end, which the library asks for.
func withTimeout(ctx context.Context) context.Context {
	if _, ok := ctx.Deadline(); ok {
		return ctx
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	context.AfterFunc(ctx, cancel)
	return ctx
}

func isToken(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_' && c != '/' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= 255 && s[0] != '.' && s[len(s)-1] != '.' && !strings.Contains(s, "..")
}

// listener implements msg.Listener.
type listener struct {
	node    *Node
	addr    string
	sub     *nats.Subscription
	arrived chan *link
	closed  chan struct{}
	once    sync.Once

	mu    sync.Mutex
	known map[peerID]*link // by who opened them, to know repetitions; guarded by mu
}

// incoming is the subscription's callback.
func (l *listener) incoming(m *nats.Msg) {
	p, err := decode(m.Data)
	if err != nil || p.kind != kindOpen {
		return
	}
	peer, err := decodePeerID(p.payload)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		return // closed
	}
	k := l.known[peer]
	if k == nil {
		if len(l.arrived) == cap(l.arrived) {
			l.node.refuse(peer, "too many connections wait")
			return
		}
		k = newLink(l.node, peerID{l.node.process, randomID()}, l.addr)
		k.mu.Lock()
		k.accept(peer)
		k.mu.Unlock()
		if err := l.node.add(k); err != nil {
			l.node.refuse(peer, err.Error())
			return
		}
		l.node.meet(k)
		l.known[peer] = k
		l.forget()
		l.arrived <- k // there is room, and nobody else sends
	}
	l.node.publish(k, peer, (&packet{kind: kindAccept, payload: k.local.append(nil)}).append(nil))
}

// forget drops what has ended from known, when it has grown. Needs mu.
func (l *listener) forget() {
	if n := len(l.known); n < 64 || n&(n-1) != 0 {
		return // at powers of two only
	}
	for peer, k := range l.known {
		k.mu.Lock()
		if k.err != nil {
			delete(l.known, peer)
		}
		k.mu.Unlock()
	}
}

// Accept implements msg.Listener.
func (l *listener) Accept(ctx context.Context) (msg.Link, error) {
	select {
	case k := <-l.arrived:
		return k, nil
	case <-l.closed:
		return nil, msg.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Addr implements msg.Listener.
func (l *listener) Addr() string { return l.addr }

// Close implements msg.Listener. Links that nobody has accepted are closed.
func (l *listener) Close() error {
	l.once.Do(func() {
		if l.sub != nil {
			l.sub.Unsubscribe()
		}
		l.mu.Lock()
		l.known = nil
		l.mu.Unlock()
		close(l.closed)
		l.node.mu.Lock()
		delete(l.node.listeners, l)
		l.node.mu.Unlock()
		for {
			select {
			case k := <-l.arrived:
				go k.Close()
				continue
			default:
			}
			break
		}
	})
	return nil
}
