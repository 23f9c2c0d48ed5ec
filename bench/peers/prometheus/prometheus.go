// Package prometheus keeps the version of Prometheus whose own benchmark of remote write
// bench/affinity runs.
package prometheus

import _ "github.com/prometheus/prometheus/storage/remote"
