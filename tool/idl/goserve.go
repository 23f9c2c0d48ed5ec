package idl

import (
	"fmt"
	"slices"
)

// What serves a connection, and what takes its messages as a sequence or a stream
// of bytes.

// server writes the interface of handlers and what calls them.
func (g *goPackage) server() {
	g.p(`
// %[1]s is what a server does with what its clients send; Serve calls it. A method
// that answers an rpc runs on a goroutine of its own, many at a time, and what it
// gets is its to keep, caps to close; those that it returns are closed once they were
// sent. An error that it returns is the caller's: one
// that the interface declares, or wraps such, is told apart by errors.Is. Its context
// ends when the caller gives the call up, and when the connection ends. A method that
// takes a message runs by itself, before anything that the client sent later is
// looked at.
type %[1]s interface {`, g.handler)
	for n, m := range g.messages {
		if !m.ToServer() {
			continue
		}
		switch m.Role {
		case Call:
			g.comment("", m.handle+" answers the rpc "+m.Name()+".", m.Decl.Doc)
			g.p("%s(ctx context.Context, in %s) (out %s, err error)", m.handle, m.Type, g.messages[n+1].Type)
		default:
			g.comment("", m.handle+" takes the "+m.Decl.Key+" "+m.Name()+".", m.Decl.Doc)
			g.p("%s(ctx context.Context, m %s)", m.handle, m.Type)
		}
	}
	g.p("}")
	g.serve()
}

// serve writes what hands messages to a server.
func (g *goPackage) serve() {
	takes := slices.ContainsFunc(g.messages, func(m goMessage) bool { return m.ToServer() })
	bind := ""
	if takes {
		bind = "m := "
	}
	g.p(`
// Serve has h handle what arrives until the connection or ctx ends; then it closes
// the connection and waits for the methods that still run. It returns nil if either
// end closed the connection, otherwise why it ended. Methods may send on c.
func (c *Conn) Serve(ctx context.Context, h %[1]s) error {
	if h == nil {
		panic("%[2]s: Serve with a nil %[1]s")
	}
	return c.ServeCalls(ctx, func(ctx context.Context, num uint16, body []byte) (func(context.Context) error, error) {
		m, err := clone(c.Conn, num, body)
		if err != nil {
			return nil, err
		}
		switch %[3]sm.(type) {`, g.handler, g.PackageName(), bind)
	for n, m := range g.messages {
		g.p("case *%s:", m.Type)
		switch {
		case !m.ToServer():
			g.p("return nil, msg.BadBody(%q, \"a client does not send it\")", m.Name())
		case m.Role == Call:
			given := ""
			if reply := g.messages[n+1]; reply.Caps > 0 {
				given = fmt.Sprintf("defer func() {\nvar caps []msg.Cap\nappend%s(nil, &out, &caps)\nmsg.CloseCaps(caps)\n}()\n", reply.Type)
			}
			g.p("return func(ctx context.Context) error {\nout, err := h.%s(ctx, *m)\n%sif err != nil {\nreturn err\n}\nreturn c.reply%s(ctx, m.call, &out)\n}, nil", m.handle, given, m.Method)
		default:
			g.p("h.%s(ctx, *m)", m.handle)
		}
	}
	g.p(`}
		return nil, nil
	})
}

// Serve accepts connections until ctx ends or the server is closed, and has each
// served by what handler returns for it, which may be the same for all. Then it
// waits for those that are open to end. It returns ctx's error, or nil.
func (s Server) Serve(ctx context.Context, handler func(*Conn) %[1]s) error {
	if handler == nil {
		panic("%[2]s: Serve of a Server with a nil function: it returns the %[1]s of a connection")
	}
	return s.ServeConns(ctx, func(ctx context.Context, m *msg.Conn) {
		c := New(m)
		c.Serve(ctx, handler(c))
	})
}`, g.handler, g.PackageName())
}

// streams writes what takes a connection's messages as a sequence, and bytes.
func (g *goPackage) streams() {
	g.p(`
// All are the messages that arrive, as Recv returns them, until the other end has
// closed the connection. An error, ctx's too, is the last of the sequence%s.
func (c *Conn) All(ctx context.Context) iter.Seq2[Msg, error] { return msg.All(ctx, c.Recv) }`,
		map[bool]string{true: ", but for that of a\n// call that failed, which is none of the connection", false: ""}[g.rpcs()])
	for _, m := range g.messages {
		limit, ok := m.bytes()
		if !ok {
			continue
		}
		f := m.fields[0].Name
		g.p(`
// %[1]s writes bytes as %[2]s messages, each as full as what is written at once
// makes it. Close ends the stream with one that is empty; the connection stays
// open.
func (c *Conn) %[1]s(ctx context.Context) io.WriteCloser {
	var m %[3]s
	return msg.NewWriter(%[4]d, func(b []byte) error {
		m.%[5]s = b
		return c.Send%[3]s(ctx, &m)
	})
}

// %[6]s reads the bytes of %[2]s messages until one that is empty, or until the
// other end closes the connection, which is io.ErrUnexpectedEOF. It receives from
// the connection; other messages go to other meanwhile, and are an error if that
// is nil.
func (c *Conn) %[6]s(ctx context.Context, other func(Msg)) io.Reader {
	return msg.NewReader(func() ([]byte, error) {
		for {
			got, err := c.Recv(ctx)
			if err != nil {
				return nil, err
			}
			if m, ok := got.(*%[3]s); ok {
				return m.%[5]s, nil
			}
			if other == nil {
				return nil, msg.Unexpected(Interface, got.Num())
			}
			other(got)
		}
	})
}`, m.writer, m.Name(), m.Type, limit, f, m.reader)
	}
}

// bytes says that a message is a piece of a stream of bytes: it has one field, an
// array of up to so many of them.
func (m goMessage) bytes() (limit int, ok bool) {
	if m.Role != OneWay || len(m.fields) != 1 {
		return 0, false
	}
	t := m.fields[0].Type.Under()
	if t.Kind != Slice || !isByte(t.Elem) {
		return 0, false
	}
	return t.Limit, true
}
