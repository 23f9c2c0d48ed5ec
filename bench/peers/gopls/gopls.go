//go:build tools

// Package gopls keeps the version of gopls whose own benchmark of loading a workspace
// bench/affinity runs. That benchmark is a test in a package of gopls that others
// cannot import, so the command itself is named here.
package gopls

import _ "golang.org/x/tools/gopls"
