package strict

import "wire"

func all(m wire.Msg) {
	switch m.(type) { // want `type switch on wire.Msg leaves out \*wire.Pong`
	case *wire.Ping, wire.Stop:
	default:
	}
}
