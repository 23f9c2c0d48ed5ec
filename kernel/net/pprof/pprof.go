// Package pprof serves the kernel's own profiles over its own network: the
// handlers of net/http/pprof and expvar, on a listener of netstack.
//
//	go tool pprof http://127.0.0.1:PORT/debug/pprof/profile
package pprof

import (
	"expvar"
	"fmt"
	"net/http"
	"net/http/pprof"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"

	"hardtack/kernel/net/inet"
)

// Serve listens on a port of all interfaces and answers until the machine
// stops. Extra handlers may be given by path.
func Serve(n *inet.Net, port uint16, extra map[string]http.Handler) error {
	l, err := gonet.ListenTCP(n.Stack, tcpip.FullAddress{Port: port}, ipv4.ProtocolNumber)
	if err != nil {
		return fmt.Errorf("pprof: port %d: %w", port, err)
	}
	s := &http.Server{Handler: Handler(extra), ReadHeaderTimeout: 10 * time.Second}
	go s.Serve(l)
	return nil
}

// Handler returns what is served.
func Handler(extra map[string]http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.Handle("/debug/vars", expvar.Handler())
	for path, h := range extra {
		mux.Handle(path, h)
	}
	mux.Handle("/{$}", http.RedirectHandler("/debug/pprof/", http.StatusFound))
	return mux
}
