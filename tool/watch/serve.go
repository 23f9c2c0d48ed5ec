package watch

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"hardtack/tool/fault"
)

//go:embed page
var page embed.FS

// Serve serves the machine's metrics at an address until ctx ends, and with a page also that,
// at /. An address without a host is the loopback's: what a machine does is not everybody's
// to read. It returns where it listens.
func Serve(ctx context.Context, s *Source, addr string, withPage bool) (at string, err error) {
	if strings.HasPrefix(addr, ":") {
		addr = "127.0.0.1" + addr
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fault.Bad("%s: %v", addr, err)
	}
	server := &http.Server{Handler: guard(handler(ctx, s, withPage)), ReadHeaderTimeout: scrapeTime, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	context.AfterFunc(ctx, func() { server.Close() })
	go server.Serve(l)
	return l.Addr().String(), nil
}

// scrapeTime is how long an answer may take; Prometheus waits for 10 s.
const scrapeTime = 9 * time.Second

// guard refuses requests that a page of another site makes in a browser of this host. By a
// name of its own that suddenly means this address (DNS rebinding) such a page could read
// what is here: so the Host is an address or localhost. And a browser says where a request
// comes from.
func guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		_, err := netip.ParseAddr(strings.Trim(host, "[]"))
		if site := r.Header.Get("Sec-Fetch-Site"); err != nil && host != "localhost" || site == "cross-site" || site == "same-site" {
			http.Error(w, "this is for this host's own requests, by its address", http.StatusForbidden)
			return
		}
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		header.Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	})
}

func handler(ctx context.Context, s *Source, withPage bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), scrapeTime)
		defer cancel()
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(s.Metrics(ctx)) // who asked may have gone
	})
	if !withPage {
		return mux
	}
	files, err := fs.Sub(page, "page")
	if err != nil {
		panic(err) // it is embedded
	}
	mux.Handle("GET /", http.FileServerFS(files))
	hub := &hub{s: s, ctx: ctx, listeners: map[chan []byte]bool{}}
	mux.HandleFunc("GET /events", hub.serve)
	var one sync.Mutex
	mux.HandleFunc("GET /flame", func(w http.ResponseWriter, r *http.Request) {
		seconds, err := strconv.Atoi(r.FormValue("seconds"))
		if err != nil || seconds < 1 || seconds > 30 {
			http.Error(w, "seconds: 1 to 30", http.StatusBadRequest)
			return
		}
		if !one.TryLock() {
			http.Error(w, "somebody else is looking", http.StatusConflict)
			return
		}
		defer one.Unlock()
		f, err := s.Flame(r.Context(), seconds)
		if err != nil {
			http.Error(w, printable(err.Error(), 200), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(f)
	})
	return mux
}

// hub takes samples while somebody looks, and keeps the last ones for who comes.
type hub struct {
	s   *Source
	ctx context.Context

	mu        sync.Mutex
	listeners map[chan []byte]bool // guarded by mu
	past      [][]byte             // guarded by mu
	stop      context.CancelFunc   // of what takes samples; nil while nobody looks; guarded by mu
}

const (
	interval     = time.Second
	pastMost     = 120 // samples
	mostWatchers = 32
)

// join adds a listener, and starts what takes samples for the first one.
func (h *hub) join() (c chan []byte, past [][]byte, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.listeners) >= mostWatchers {
		return nil, nil, false
	}
	c = make(chan []byte, 4)
	h.listeners[c] = true
	if h.stop == nil {
		var ctx context.Context
		ctx, h.stop = context.WithCancel(h.ctx)
		h.past = nil // there is a gap since
		go h.run(ctx)
	}
	return c, h.past, true
}

func (h *hub) leave(c chan []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, c)
	if len(h.listeners) == 0 && h.stop != nil {
		h.stop()
		h.stop = nil
	}
}

// run takes samples until ctx ends.
func (h *hub) run(ctx context.Context) {
	sampler := &Sampler{Source: h.s}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		limit, cancel := context.WithTimeout(ctx, scrapeTime)
		p := sampler.Take(limit)
		cancel()
		text, err := json.Marshal(p)
		if ctx.Err() != nil || err != nil {
			return
		}
		h.mu.Lock()
		h.past = append(h.past[max(len(h.past)-pastMost+1, 0):len(h.past):len(h.past)], text)
		for c := range h.listeners {
			select {
			case c <- text:
			default: // who does not read misses samples
			}
		}
		h.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// serve sends samples as server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html).
func (h *hub) serve(w http.ResponseWriter, r *http.Request) {
	c, past, ok := h.join()
	if !ok {
		http.Error(w, "too many look at this machine", http.StatusServiceUnavailable)
		return
	}
	defer h.leave(c)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	send := func(event string, text []byte) bool {
		_ = out.SetWriteDeadline(time.Now().Add(scrapeTime))
		_, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, text)
		return err == nil && out.Flush() == nil
	}
	name, _ := json.Marshal(map[string]string{"name": h.s.Name})
	if !send("machine", name) {
		return
	}
	for _, text := range past {
		if !send("sample", text) {
			return
		}
	}
	for {
		select {
		case text := <-c:
			if !send("sample", text) {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}
