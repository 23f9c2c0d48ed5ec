package proc

import (
	"sync"

	"hardtack/kernel/base/sysctl"
)

// Host and domain name (uname).
var (
	namesMu              sync.RWMutex
	hostname, domainname = "hardtack", "(none)" // guarded by namesMu
)

// HostnameEvent and DomainnameEvent tell of changes, whoever makes them.
var HostnameEvent, DomainnameEvent sysctl.Event

// Hostname returns the host name.
func Hostname() string {
	namesMu.RLock()
	defer namesMu.RUnlock()
	return hostname
}

// SetHostname sets the host name.
func SetHostname(s string) {
	namesMu.Lock()
	hostname = s
	namesMu.Unlock()
	HostnameEvent.Happened()
}

// Domainname returns the NIS domain name.
func Domainname() string {
	namesMu.RLock()
	defer namesMu.RUnlock()
	return domainname
}

// SetDomainname sets the NIS domain name.
func SetDomainname(s string) {
	namesMu.Lock()
	domainname = s
	namesMu.Unlock()
	DomainnameEvent.Happened()
}
