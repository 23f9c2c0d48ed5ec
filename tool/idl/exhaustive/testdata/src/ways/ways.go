package ways

import wire "bothways"

func server(m wire.Msg) {
	switch m.(type) {
	case *wire.GetCall, *wire.Note:
	}
	switch m.(type) { // want `type switch on bothways.Msg leaves out \*bothways.Note, which a server receives`
	case *wire.GetCall:
	}
	switch m.(type) { // want `type switch on bothways.Msg leaves out \*bothways.GetCall, which a server receives`
	case *wire.Note:
	}
}

func client(m wire.Msg) {
	switch m.(type) {
	case *wire.GetReply, *wire.Changed:
	case *wire.Note:
	}
	switch m.(type) { // want `type switch on bothways.Msg leaves out \*bothways.Changed, which a client receives`
	case *wire.GetReply, *wire.Note:
	}
	switch m.(type) {
	case wire.ToClient:
	}
}

func both(m wire.Msg) {
	switch m.(type) { // want `type switch on bothways.Msg leaves out \*bothways.Changed`
	case *wire.GetCall, *wire.GetReply, *wire.Note:
	}
	switch m.(type) {
	case *wire.GetCall, *wire.GetReply, *wire.Note, *wire.Changed:
	}
}

func one(m wire.ToServer) {
	switch m.(type) { // want `type switch on bothways.ToServer leaves out \*bothways.Note`
	case *wire.GetCall:
	}
	switch m.(type) { // want `type switch on bothways.ToServer leaves out \*bothways.GetCall`
	case *wire.Note:
	}
	switch m.(type) {
	case *wire.GetCall, *wire.Note:
	}
}
