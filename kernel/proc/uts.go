package proc

import "sync"

// Host and domain name (uname).
var (
	namesMu              sync.RWMutex
	hostname, domainname = "hardtack", "(none)" // guarded by namesMu
)

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
}
