// Package hugo keeps the version of Hugo whose own benchmark of building a site
// bench/affinity runs.
package hugo

import _ "github.com/gohugoio/hugo/hugolib"
