package msg

import (
	"encoding/hex"
	"fmt"
)

// Sizes of the wire format.
const (
	// SlotBytes is the longest body that travels in one slot.
	SlotBytes = 56
	// BulkBytes is the shortest body that goes to the bulk pool rather than
	// into fragments.
	BulkBytes = 512
	// MaxBody is the longest body of a message.
	MaxBody = 16 << 20
	// MaxCaps is how many descriptors and channel ends one message carries.
	MaxCaps = 16
	// MaxMessages is how many messages an interface may have; they are
	// numbered from 1.
	MaxMessages = 4000
)

// Fingerprint identifies what an interface looks like on the wire: a hash of
// its name, messages, their fields and the types that these use. Two programs
// talk only if theirs are equal.
type Fingerprint [16]byte

func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// Interface describes an interface; generated packages have one each.
// It does not change after initialisation.
type Interface struct {
	Name        string
	Fingerprint Fingerprint
	// Messages in the order of the file; message number n is Messages[n-1].
	Messages []Message
	// Errors that calls can end with; error number n is Errors[n-1].
	Errors []ErrorInfo
}

// Kind is the role of a message.
type Kind uint8

// The kinds of messages. An rpc is a Call and the Reply that follows it in the
// table.
const (
	OneWay Kind = iota
	Call
	Reply
)

// Message describes one message of an interface.
type Message struct {
	Name string
	Kind Kind
	// Min and Max are the lengths that a body may have, in bytes. The
	// connection refuses others before a decoder sees them.
	Min, Max int
	// Caps is how many cap fields it has.
	Caps int
	// CapNames are the names of the fields that the caps belong to, which a file
	// that arrives is called by (os.File.Name). It may be nil.
	CapNames []string
	// Format renders a body for people, as in `ping{id: 3, msg: "hi"}`. It is
	// not on any hot path, and must not trust the body.
	Format func(body []byte) string
}

// Message returns the description of message num, or nil.
func (i *Interface) Message(num uint16) *Message {
	if num == 0 || int(num) > len(i.Messages) {
		return nil
	}
	return &i.Messages[num-1]
}

// check finds what is wrong with a description.
func (i *Interface) check() error {
	switch {
	case i == nil || i.Name == "":
		return fmt.Errorf("msg: an interface must have a name")
	case len(i.Messages) == 0 || len(i.Messages) > MaxMessages:
		return fmt.Errorf("msg: interface %s has %d messages, not 1 to %d", i.Name, len(i.Messages), MaxMessages)
	}
	if len(i.Errors) > MaxErrors {
		return fmt.Errorf("msg: interface %s has %d errors, more than %d", i.Name, len(i.Errors), MaxErrors)
	}
	for k := range i.Messages {
		m := &i.Messages[k]
		if m.Min < 0 || m.Max < m.Min || m.Max > MaxBody || m.Caps < 0 || m.Caps > MaxCaps {
			return fmt.Errorf("msg: %s.%s: bodies of %d to %d bytes and %d caps are not possible", i.Name, m.Name, m.Min, m.Max, m.Caps)
		}
	}
	return nil
}
