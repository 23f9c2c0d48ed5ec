package nats

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"hardtack/msg"
)

const (
	ackDelay   = time.Millisecond       // acks that nothing else carries wait so long for company
	tickBusy   = 50 * time.Millisecond  // while something is unanswered
	tickUsed   = 25 * time.Millisecond  // while a link has been used recently: the time between pings
	tickIdle   = 200 * time.Millisecond // while links are open: the same
	tickAbsent = 10 * time.Millisecond  // while nobody is subscribed for a peer
	usedFor    = time.Second            // what "recently" is
	deadSoon   = 50 * time.Millisecond  // how long nobody may be subscribed for a peer of our server,
	deadAsked  = 4                      // asked so often,
	deadAfter  = 500 * time.Millisecond // and for a peer of another
	deadLong   = 10 * time.Second       // the same, soon after the server was lost
	unsettled  = 15 * time.Second       // what "soon" is
	lostAfter  = 30 * time.Second       // how long a peer may be silent without being told dead
	serverLost = 60 * time.Second       // how long no server may be reached
	maxLinks   = 65536                  // open links of a process
)

var (
	errSilent = errors.New("nats: the peer does not answer")
	errServer = errors.New("nats: no server can be reached")
)

// Node is a process's attachment to the NATS servers: a msg.Driver, and a
// Bucket of names. One is enough for a process.
type Node struct {
	opts     Options
	nc       *nats.Conn
	process  string // its random number
	embedded *embedder
	stopped  chan struct{}
	kick     chan struct{} // capacity 1: for keep
	wg       sync.WaitGroup

	mu        sync.Mutex
	links     map[string]*link     // by local id; guarded by mu
	peers     map[string]*presence // by process; guarded by mu
	listeners map[*listener]struct{}
	owed      []*link   // links that owe an ack; guarded by mu
	repeat    []*link   // links whose peer missed something; guarded by mu
	hurry     bool      // keep is to look soon; guarded by mu
	server    string    // the one we are connected to; guarded by mu
	since     time.Time // of the present connection to a server; zero without; guarded by mu
	lost      time.Time // when it was lost; guarded by mu
	closed    bool      // guarded by mu
	buckets   []*Bucket // guarded by mu

	// drop is for tests: it says whether a packet gets lost.
	drop func(b []byte) bool
}

// presence is what is known of another process.
type presence struct {
	links  map[*link]struct{} // open to it
	heard  time.Time          // when anything came from it
	absent time.Time          // since when nobody is subscribed, or zero
	misses int                // how often the server has said so since
	server string             // the one that it is connected to, as it says
}

func randomID() string {
	var b [idLen / 2]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// start subscribes and keeps the node going.
func (n *Node) start() error {
	n.since = time.Now()
	sub, err := n.nc.Subscribe(n.subject("p", n.process, ">"), n.incoming)
	if err != nil {
		return err
	}
	// What the callback does is short, so that little ever waits; a flood is
	// dropped rather than kept, and repeated by those who meant it.
	if err := sub.SetPendingLimits(1<<16, 64<<20); err != nil {
		return err
	}
	n.server = n.nc.ConnectedServerId()
	n.wg.Add(1)
	go n.keep()
	return n.nc.Flush()
}

func (n *Node) subject(parts ...string) string {
	return n.opts.Prefix + "." + strings.Join(parts, ".")
}

// publish sends a packet to the other end of a link. What cannot be sent now is
// sent again later, so the error does not matter.
func (n *Node) publish(l *link, to peerID, b []byte) {
	if n.drop != nil && n.drop(b) {
		return
	}
	n.nc.PublishRequest(n.subject("p", to.process, "l", to.link), n.reply(to.process, l.local.link), b)
}

func (n *Node) reply(to, link string) string { return n.subject("p", n.process, "n", to, link) }

// incoming is the subscription's callback, for subjects of this process.
func (n *Node) incoming(m *nats.Msg) {
	parts := strings.Split(m.Subject[len(n.opts.Prefix)+1:], ".") // p, PROCESS, …
	sender := n.sender(m.Reply)
	n.heard(sender.process)
	switch {
	case len(parts) == 3 && parts[2] == "ping":
		if sender.process != "" {
			n.nc.Publish(m.Reply, n.presence(kindPong))
			n.serves(sender.process, m.Data)
		}
	case len(parts) == 5 && parts[2] == "n":
		if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
			n.absent(parts[3])
		} else {
			n.heard(parts[3])
			n.serves(parts[3], m.Data)
		}
	case len(parts) == 4 && parts[2] == "l":
		p, err := decode(m.Data)
		n.mu.Lock()
		l := n.links[parts[3]]
		n.mu.Unlock()
		switch {
		case l == nil && err == nil && (p.kind == kindData || p.kind == kindEnd || p.kind == kindAccept) && sender.link != "":
			n.refuse(sender, "the link is closed")
		case l == nil:
		case err != nil:
			l.failNow(&msg.PeerError{Reason: err.Error()})
		default:
			l.receive(p)
			if p.kind == kindAccept {
				n.meet(l)
			}
		}
	}
}

// sender is what a reply subject says of whoever sent a packet, as far as it is
// one of ours.
func (n *Node) sender(reply string) peerID {
	rest, ok := strings.CutPrefix(reply, n.opts.Prefix+".p.")
	parts := strings.Split(rest, ".") // PROCESS, n, PEER, LINK
	if !ok || len(parts) != 4 || len(parts[0]) != idLen || !isHex([]byte(parts[0])) || len(parts[3]) > idLen || !isHex([]byte(parts[3])) {
		return peerID{}
	}
	return peerID{parts[0], parts[3]}
}

func (n *Node) refuse(to peerID, why string) {
	n.nc.Publish(n.subject("p", to.process, "l", to.link), (&packet{kind: kindRefuse, payload: []byte(why)}).append(nil))
}

func (n *Node) heard(process string) {
	n.mu.Lock()
	if pr := n.peers[process]; pr != nil {
		pr.heard, pr.absent, pr.misses = time.Now(), time.Time{}, 0
	}
	n.mu.Unlock()
}

// presence is a ping or pong.
func (n *Node) presence(k kind) []byte {
	n.mu.Lock()
	server := n.server
	n.mu.Unlock()
	return (&packet{kind: k, payload: []byte(server)}).append(nil)
}

// serves notes which server a peer says it is connected to.
func (n *Node) serves(process string, data []byte) {
	p, err := decode(data)
	if err != nil || p.kind < kindPing {
		return
	}
	n.mu.Lock()
	if pr := n.peers[process]; pr != nil {
		pr.server = string(p.payload)
	}
	n.mu.Unlock()
}

// absent notes that the server knows nobody by that number. Whoever tries to
// connect learns it at once.
func (n *Node) absent(process string) {
	n.mu.Lock()
	if pr := n.peers[process]; pr != nil {
		if pr.misses++; pr.absent.IsZero() {
			pr.absent = time.Now()
			n.hurry = true
			n.wake()
		}
	}
	n.mu.Unlock()
}

// used has the peers looked after more often, now that a link is used again.
func (n *Node) used() {
	n.mu.Lock()
	n.hurry = true
	n.wake()
	n.mu.Unlock()
}

// add enters a link.
func (n *Node) add(l *link) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return msg.ErrClosed
	case len(n.links) >= maxLinks:
		return fmt.Errorf("nats: %d links are open", len(n.links))
	}
	n.links[l.local.link] = l
	n.wake()
	return nil
}

// meet begins to look after the process at the other end of a link.
func (n *Node) meet(l *link) {
	l.mu.Lock()
	process := l.peer.process
	met := l.met
	l.met = process != ""
	l.mu.Unlock()
	if process == "" || met {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.links[l.local.link] != l {
		return
	}
	pr := n.peers[process]
	if pr == nil {
		pr = &presence{heard: time.Now()}
		n.peers[process] = pr
	}
	if pr.links == nil {
		pr.links = map[*link]struct{}{}
	}
	pr.links[l] = struct{}{}
}

// remove takes a link out.
func (n *Node) remove(l *link) {
	l.mu.Lock()
	process := l.peer.process
	l.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.links[l.local.link] == l {
		delete(n.links, l.local.link)
	}
	if pr := n.peers[process]; pr != nil {
		if delete(pr.links, l); len(pr.links) == 0 {
			delete(n.peers, process)
		}
	}
}

// oweAck has an ack sent soon.
func (n *Node) oweAck(l *link) {
	n.mu.Lock()
	n.owed = append(n.owed, l)
	if len(n.owed) == 1 {
		n.wake()
	}
	n.mu.Unlock()
}

// again has frames repeated that the peer missed.
func (n *Node) again(l *link) {
	n.mu.Lock()
	n.repeat = append(n.repeat, l)
	n.wake()
	n.mu.Unlock()
}

func (n *Node) wake() {
	select {
	case n.kick <- struct{}{}:
	default:
	}
}

// keep sends acks that nothing else carries, repeats what got lost, and looks
// after the peers. Without links it sleeps.
func (n *Node) keep() {
	defer n.wg.Done()
	timer := time.NewTimer(tickBusy)
	defer timer.Stop()
	armed, due := true, false
	for {
		due = false
		select {
		case <-n.stopped:
			return
		case <-timer.C:
			armed, due = false, true
		case <-n.kick:
			time.Sleep(ackDelay)
		}
		n.mu.Lock()
		owed, repeat, hurry := n.owed, n.repeat, n.hurry
		n.owed, n.repeat, n.hurry = nil, nil, false
		n.mu.Unlock()
		for _, l := range repeat {
			l.resend(true)
		}
		for _, l := range owed {
			l.payOwed()
		}
		next := time.Duration(0)
		if due {
			next = n.tick(time.Now())
		} else if hurry {
			next = tickAbsent
		} else if !armed {
			next = tickBusy // something has happened
		}
		if next > 0 {
			timer.Reset(next)
			armed = true
		}
	}
}

// tick does what is due, and says when to come again, 0 for when woken.
func (n *Node) tick(now time.Time) time.Duration {
	n.mu.Lock()
	if len(n.links) == 0 {
		n.mu.Unlock()
		return 0
	}
	connected := !n.since.IsZero()
	next := tickIdle
	links := make([]*link, 0, len(n.links))
	for _, l := range n.links {
		links = append(links, l)
	}
	var pings []string
	over := map[*link]error{}
	if !connected && now.Sub(n.lost) > serverLost {
		for _, l := range links {
			over[l] = errServer
		}
	}
	for process, pr := range n.peers {
		if !connected {
			continue
		}
		pause, ping, end := n.judge(pr, now)
		next = min(next, pause)
		if ping {
			pings = append(pings, process)
		}
		if end != nil {
			for l := range pr.links {
				over[l] = end
			}
		}
	}
	n.mu.Unlock()
	for l, err := range over {
		l.failNow(err)
	}
	ping := n.presence(kindPing)
	for _, process := range pings {
		n.nc.PublishRequest(n.subject("p", process, "ping"), n.reply(process, "0"), ping)
	}
	for _, l := range links {
		l.mu.Lock()
		busy := l.acked < l.sent
		l.mu.Unlock()
		if busy {
			next = min(next, tickBusy)
			if connected {
				l.resend(false)
			}
		}
	}
	return next
}

// judge says what is due for a peer: when to look again, whether it is to be pinged, and
// why its links end, if they do. Called with mu held.
func (n *Node) judge(pr *presence, now time.Time) (pause time.Duration, ping bool, end error) {
	pause = tickIdle
	for l := range pr.links {
		if l.usedOfLate(now) {
			pause = tickUsed
		}
	}
	grace := deadAfter
	switch {
	case pr.server == n.server && pr.misses >= deadAsked:
		// Seen at our server, which has lost it and not us: had only its
		// connection broken, it would be back.
		grace = deadSoon
	case pr.server == n.server:
	case now.Sub(n.since) < unsettled:
		grace = deadLong
	}
	switch {
	case !pr.absent.IsZero() && now.Sub(pr.absent) >= grace:
		return pause, false, io.EOF
	case now.Sub(pr.heard) >= lostAfter && now.Sub(n.since) >= lostAfter:
		return pause, false, errSilent
	case !pr.absent.IsZero():
		return tickAbsent, true, nil
	}
	return pause, now.Sub(pr.heard) >= pause/2, nil
}

// disconnected and reconnected are told by the client library.
func (n *Node) disconnected() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.since, n.lost = time.Time{}, time.Now()
	n.wake()
}

func (n *Node) reconnected() {
	n.mu.Lock()
	now := time.Now()
	n.since, n.server = now, n.nc.ConnectedServerId()
	for _, pr := range n.peers {
		pr.heard, pr.absent, pr.misses, pr.server = now, time.Time{}, 0, ""
	}
	for _, l := range n.links {
		n.repeat = append(n.repeat, l)
	}
	buckets := append([]*Bucket(nil), n.buckets...)
	n.wake()
	n.mu.Unlock()
	for _, b := range buckets {
		b.reconnected()
	}
}

// alive asks whether a process is there. Only the server's word that it is not,
// over deadAfter, counts as no.
func (n *Node) alive(ctx context.Context, process string) bool {
	if process == n.process {
		return true
	}
	again := false
	for end := time.Now().Add(deadAfter); ; {
		asking, cancel := context.WithTimeout(ctx, deadAfter)
		_, err := n.nc.RequestWithContext(asking, n.subject("p", process, "ping"), (&packet{kind: kindPing}).append(nil))
		cancel()
		if !again && errors.Is(err, context.DeadlineExceeded) {
			// The server may have passed this on just before it saw the end.
			again, end = true, time.Now().Add(deadAfter)
			continue
		}
		if !errors.Is(err, nats.ErrNoResponders) {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		select {
		case <-ctx.Done():
			return true
		case <-time.After(tickBusy):
		}
	}
}

// Close ends all links and listeners, and the connection to the server. An
// embedded server ends too; other processes that used it start another.
func (n *Node) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	var links []*link
	for _, l := range n.links {
		links = append(links, l)
	}
	var listeners []*listener
	for l := range n.listeners {
		listeners = append(listeners, l)
	}
	buckets := n.buckets
	n.mu.Unlock()
	for _, b := range buckets {
		b.Close()
	}
	for _, l := range listeners {
		l.Close()
	}
	var all sync.WaitGroup
	for _, l := range links {
		all.Go(func() { l.Close() })
	}
	all.Wait()
	close(n.stopped)
	n.wg.Wait()
	n.nc.FlushTimeout(closeWait)
	n.nc.Close()
	for _, l := range links {
		l.failNow(msg.ErrClosed)
	}
	if n.embedded != nil {
		n.embedded.close()
	}
	return nil
}
