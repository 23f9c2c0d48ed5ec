package procfs

import (
	"sort"
	"strings"
)

// registeredNames returns the names in a registered directory, in order.
func registeredNames(dir string) []string {
	if dir != "" {
		dir += "/"
	}
	registered.mu.RLock()
	defer registered.mu.RUnlock()
	seen := map[string]bool{}
	var names []string
	for p := range registered.files {
		rest, ok := strings.CutPrefix(p, dir)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, "/")
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}
