package wire

type Msg interface {
	Num() uint16
	sealed()
}

type Ping struct{}
type Pong struct{}
type Stop struct{}
type Other struct{}

func (*Ping) Num() uint16 { return 1 }
func (*Ping) sealed()     {}
func (*Pong) Num() uint16 { return 2 }
func (*Pong) sealed()     {}
func (Stop) Num() uint16  { return 3 }
func (Stop) sealed()      {}

type Last interface{ Last() bool }

func (Stop) Last() bool { return true }

func inside(m Msg) {
	switch m.(type) { // want `type switch on Msg leaves out \*Ping, \*Pong`
	case Stop:
	}
}
