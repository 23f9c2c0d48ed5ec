package bothways

// Messages as hardtack idl makes them: an rpc, one that only a server sends, and one
// that either may send.
type Msg interface {
	Num() uint16
	sealed()
}

type ToServer interface {
	Msg
	toServer()
}

type ToClient interface {
	Msg
	toClient()
}

type GetCall struct{}
type GetReply struct{}
type Changed struct{}
type Note struct{}

func (*GetCall) Num() uint16  { return 1 }
func (*GetCall) sealed()      {}
func (*GetCall) toServer()    {}
func (*GetReply) Num() uint16 { return 2 }
func (*GetReply) sealed()     {}
func (*GetReply) toClient()   {}
func (*Changed) Num() uint16  { return 3 }
func (*Changed) sealed()      {}
func (*Changed) toClient()    {}
func (*Note) Num() uint16     { return 4 }
func (*Note) sealed()         {}
func (*Note) toServer()       {}
func (*Note) toClient()       {}
