// Package expvar publishes what hardtack/affinity knows as the variable
// "affinity" of the standard package expvar. Import it for that alone:
//
//	import _ "hardtack/affinity/expvar"
//
// It is a package of its own because expvar imports net/http.
package expvar

import (
	"expvar"

	"hardtack/affinity"
)

func init() { expvar.Publish("affinity", expvar.Func(snapshot)) }

func snapshot() any {
	metrics := map[string]uint64{}
	all := affinity.All()
	samples := make([]affinity.Sample, len(all))
	for i, d := range all {
		samples[i].Name = d.Name
	}
	affinity.Read(samples)
	for _, s := range samples {
		metrics[s.Name] = s.Value
	}
	s := affinity.Get()
	return map[string]any{
		"available": affinity.Available(),
		"policy":    s.Policy.String(),
		"period":    s.Period.String(),
		"touches":   s.Touches,
		"metrics":   metrics,
		"channels":  affinity.Channels(),
	}
}
