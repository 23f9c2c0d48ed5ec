package msg

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Code says why a call failed. The errors that an interface declares have the
// numbers 1, 2, … in the order of the file; those of this package are above
// MaxErrors.
type Code uint32

// Codes that every interface has.
const (
	// CodeFailed: the handler returned an error that the interface does not
	// declare. The text says which.
	CodeFailed Code = 1<<16 + iota
	// CodeTooLarge: the reply is longer than the interface or the connection
	// allows. errors.Is(err, ErrTooLarge) holds.
	CodeTooLarge
	// CodeNoCaps: the reply has descriptors, and the transport passes none.
	// errors.Is(err, ErrNoCaps) holds.
	CodeNoCaps
	// CodeCanceled: the handler gave up because its own context had ended.
	CodeCanceled
)

// MaxErrors is how many errors an interface may declare.
const MaxErrors = 4096

// MaxErrorText is how many bytes of an error's text travel; the rest is cut off.
const MaxErrorText = 480

// CallError is how a call failed: the handler at the other end returned an
// error, or its reply could not be sent. The connection goes on.
//
// A generated package has a variable of this type for each error that its
// interface declares. errors.Is compares interface and code, so that
//
//	_, err := client.Withdraw(ctx, bank.WithdrawCall{Account: 7})
//	if errors.Is(err, bank.ErrNoAccount) {
//
// holds for what came from another process, whatever the text. errors.As gives
// the code and the text.
type CallError struct {
	Interface string // its name, of the interface that declares the error; empty for codes of this package
	Name      string // of the error in the interface; empty for codes of this package
	Code      Code
	Text      string // what the handler's error said, at most MaxErrorText bytes; not to be trusted
	Call      string // the rpc that failed, as in "bank.withdraw"; empty if this is a declared error itself
	ID        uint32 // the number of the call on its connection
}

// Error is the text, after the rpc that failed if there was one.
func (e *CallError) Error() string {
	if e == nil { // a handler may return one by mistake, which must not end its program
		return "a nil *msg.CallError as an error"
	}
	text := e.Text
	switch {
	case text != "":
	case e.Name != "":
		text = strings.ReplaceAll(e.Name, "_", " ")
	default:
		text = fmt.Sprintf("error %d", e.Code)
	}
	if e.Call != "" {
		return e.Call + ": " + text
	}
	return text
}

// Is reports whether target is the same error of the same interface, or the
// error of this package that the code stands for.
func (e *CallError) Is(target error) bool {
	if e == nil {
		return false
	}
	switch target {
	case ErrTooLarge:
		return e.Code == CodeTooLarge
	case ErrNoCaps:
		return e.Code == CodeNoCaps
	}
	t, ok := target.(*CallError)
	return ok && t != nil && t.Interface == e.Interface && t.Code == e.Code
}

// ErrorInfo describes an error that an interface declares.
type ErrorInfo struct {
	Name string
	Text string // a description for people; may be empty
}

// Error is declared error number code, from 1. Generated packages make their
// variables of it; it panics if there is none.
func (i *Interface) Error(code Code) *CallError {
	if code == 0 || int64(code) > int64(len(i.Errors)) {
		panic(fmt.Sprintf("msg: interface %s declares no error %d", i.Name, code))
	}
	e := i.Errors[code-1]
	return &CallError{Interface: i.Name, Name: e.Name, Code: code, Text: e.Text}
}

// code is what a handler's error travels as.
func (i *Interface) code(err error) Code {
	var e *CallError
	known := errors.As(err, &e) && e != nil
	switch {
	case known && e.Interface == i.Name && e.Code > 0 && int64(e.Code) <= int64(len(i.Errors)):
		return e.Code
	case known && e.Call != "": // of a service that the handler called: not our reply was too large
		return CodeFailed
	case errors.Is(err, ErrTooLarge):
		return CodeTooLarge
	case errors.Is(err, ErrNoCaps):
		return CodeNoCaps
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return CodeCanceled
	}
	return CodeFailed
}

// Messages of this package's own, beyond those of interfaces. An end sends them
// only to one whose greeting has greetCalls.
const (
	// The reply to a call that failed: number of the call, code, length of the
	// text, text; 32 bits each.
	numFailed = MaxMessages + 1
	// The caller does not wait for that call's reply any more: number of the call.
	numGivenUp = MaxMessages + 2

	failedBytes  = 12 // before the text
	givenUpBytes = 4
)

// ownLimit is what the body of a message of this package's own may be.
func ownLimit(num uint16) (l limit, ok bool) {
	switch num {
	case numFailed:
		return limit{failedBytes, failedBytes + MaxErrorText}, true
	case numGivenUp:
		return limit{givenUpBytes, givenUpBytes}, true
	}
	return l, false
}

// nameOf is the name of a message for errors.
func (c *Conn) nameOf(num uint16) string {
	switch num {
	case numFailed:
		return "an error reply"
	case numGivenUp:
		return "a call given up"
	}
	return c.iface.Message(num).Name
}

// failure decodes an error reply. call is the rpc that failed, if it is known.
func (c *Conn) failure(body []byte, call string) (*CallError, error) {
	text := body[failedBytes:]
	if n := binary.LittleEndian.Uint32(body[8:]); uint64(n) != uint64(len(text)) {
		return nil, &PeerError{fmt.Sprintf("an error reply of %d bytes with a text of %d", len(body), n)}
	}
	e := &CallError{Code: Code(binary.LittleEndian.Uint32(body[4:])), Text: strings.ToValidUTF8(string(text), "\ufffd"), ID: binary.LittleEndian.Uint32(body)}
	if e.Code > 0 && int64(e.Code) <= int64(len(c.iface.Errors)) {
		e.Interface, e.Name = c.iface.Name, c.iface.Errors[e.Code-1].Name
	}
	if e.Call = c.iface.Name; call != "" {
		e.Call += "." + call
	}
	return e, nil
}

// ReplyError answers a call with an error instead of its reply: the one that the
// interface declares if err wraps one, else a code of this package, and err's
// text. It waits for room as sending does. A peer that was built before calls
// could fail has no way to be told: then the connection is closed, so that
// nobody waits for ever, and the error is ErrOldPeer.
func (c *Conn) ReplyError(ctx context.Context, call uint32, err error) error {
	if err == nil {
		panic("msg: ReplyError: the error is nil; send the reply instead")
	}
	if !c.calls {
		return c.Fail(fmt.Errorf("%w, which called for: %w", ErrOldPeer, err))
	}
	text := err.Error()
	if room := min(MaxErrorText, c.opts.MaxBody-failedBytes); len(text) > room {
		for room > 0 && !utf8.RuneStart(text[room]) {
			room--
		}
		text = text[:room]
	}
	b, berr := c.BeginLong(ctx, failedBytes+len(text))
	if berr != nil {
		return berr
	}
	binary.LittleEndian.PutUint32(b, call)
	binary.LittleEndian.PutUint32(b[4:], uint32(c.iface.code(err)))
	binary.LittleEndian.PutUint32(b[8:], uint32(len(text)))
	copy(b[failedBytes:], text)
	return c.CommitLong(ctx, numFailed)
}

// Replied is for generated code: err is what sending the reply to a call
// returned. A reply that cannot be sent, being too large or with descriptors
// where none can pass, would leave the caller waiting, so it is told. The error
// is returned.
func (c *Conn) Replied(ctx context.Context, call uint32, err error) error {
	if err != nil && c.calls && c.Err() == nil && ctx.Err() == nil {
		if rerr := c.ReplyError(ctx, call, err); rerr != nil {
			return errors.Join(err, rerr)
		}
	}
	return err
}

// tellGivenUp says that nobody waits for the reply to a call any more.
func (c *Conn) tellGivenUp(ctx context.Context, call uint32) error {
	b, err := c.BeginLong(ctx, givenUpBytes)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(b, call)
	return c.CommitLong(ctx, numGivenUp)
}

// own handles a message of this package's own that came to a program which
// receives by itself: an error reply is returned as a *CallError.
func (c *Conn) own(num uint16, body []byte) error {
	if num != numFailed {
		return nil // it has no handlers to tell
	}
	e, err := c.failure(body, "")
	if err != nil {
		return c.Fail(err)
	}
	return e
}
