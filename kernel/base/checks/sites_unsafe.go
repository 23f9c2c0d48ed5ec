//go:build hardtack_bounds

package checks

import _ "unsafe" // for linkname

// These are filled by the overlay's topic "sites" (overlay/_runtime/sites_unsafe.go).
var (
	//go:linkname beginSites
	beginSites func()
	//go:linkname muteSites
	muteSites func(muted bool) (before bool)
	//go:linkname siteAt
	siteAt func(i int) (bytes uintptr, pcs [8]uintptr)
)
