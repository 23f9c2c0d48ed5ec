// Package hook lets a package call functions of another that it must not import.
// cmd/kernel, which imports both, connects them before the first program runs
// (cmd/kernel/plug.go).
package hook

// Of is a hook: a function that one package calls and another one provides. The zero
// value has none. A call costs what a call of a function variable costs.
type Of[F any] struct {
	// Call is what to call, nil for a hook without a default that is not set. Only Set
	// and tests change it.
	Call F
	set  bool
}

// Default makes a hook that calls f unless it is set.
func Default[F any](f F) Of[F] { return Of[F]{Call: f} }

// Set provides the function. There is one provider: a second call panics.
func (h *Of[F]) Set(f F) {
	if h.set {
		panic("hook: set twice")
	}
	h.Call, h.set = f, true
}
