package use

import "wire"

type alias = wire.Msg

func all(m wire.Msg, a alias, x any) {
	switch m := m.(type) {
	case *wire.Ping, *wire.Pong:
	case wire.Stop:
		_ = m
	}
	switch m.(type) { // want `type switch on wire.Msg leaves out \*wire.Pong`
	case *wire.Ping:
	case wire.Stop, nil:
	}
	switch a.(type) { // want `type switch on wire.Msg leaves out \*wire.Ping, \*wire.Pong`
	case wire.Last:
	}
	switch (m).(type) { // want `type switch on wire.Msg leaves out \*wire.Ping, \*wire.Pong, wire.Stop`
	}
	switch m.(type) {
	case *wire.Ping:
	default:
	}
	switch m.(type) {
	case interface{ Num() uint16 }:
	}
	switch x.(type) {
	case *wire.Ping:
	}
}
