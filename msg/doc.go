// Package msg carries typed messages between goroutines, processes and machines. A
// program describes its messages in an interface file, has `hardtack idl` make a
// package of that, and uses the package:
//
//	rpc order(in String dish[100], in uint32 count, out uint32 ticket);  // in shop.if
//
//	server, err := shop.Export(ctx, "shop", nil)                         // the server
//	err = server.Serve(ctx, func(*shop.Conn) shop.Handler { return kitchen{} })
//
//	conn, err := shop.Connect(ctx, "shop", nil)                          // a client
//	reply, err := shop.NewClient(conn, nil).Order(ctx, shop.OrderCall{Dish: "soup", Count: 2})
//
// Such programs need only Options, Cap and the errors of this package. The guide
// docs/guides/msg.md has complete programs, and tables of who owns a message for how long
// and which calls wait; docs/guides/idl.md describes interface files. The rest of the
// package is for generated packages, transports, the name service and the tools.
//
// # Connections
//
// A Conn is one end of a bidirectional connection that speaks one Interface. Each
// direction is a ring of 64-byte slots in memory that the sender writes and the receiver
// reads. Between two goroutines that is ordinary memory; between two processes it is
// memory that both have mapped. On a transport without common memory, each end has its
// own rings and two goroutines carry their contents. So the hot path is the same for
// every transport:
//
//	sender    slot, err := c.Begin(ctx)       encode into slot      c.Commit(num, n)
//	receiver  num, body, err := c.Next(ctx)   decode from body
//
// Messages of up to SlotBytes go straight into a slot. Longer ones
// (BeginLong, CommitLong) become fragments in consecutive slots, or, from
// BulkBytes on, one piece of the sender's bulk pool, which the receiver reads in
// place. Neither path allocates.
//
// A Conn has two owners, one goroutine that sends and one that receives; they
// may be the same. Begin…Commit and Next are not safe for concurrent use by
// more, unless Share was called, which makes sending take a lock. (An
// uncontended lock costs as much as everything else that sending a message
// takes.) Close, Stats and Trace may be called by anybody. A Caller lets any
// number of goroutines have calls in flight on one connection.
//
// # Bodies
//
// The body of a message is its fields in the order of the interface file, little
// endian, without padding. An integer takes its width, bool and char one byte,
// an enumeration, errval and length four, iref, uintptr and size eight; a
// fixed array its elements, a dynamic array or a string its length and then its
// elements. A cap is one byte, CapNone, CapFile or CapEnd; what it stands for
// travels beside the body (CommitLong's caps, Caps). The body of a call or
// reply of an rpc starts with the 32-bit number of the call.
//
// # Trust
//
// The peer is not trusted. Next hands out a copy of a slot or of fragments, made before
// anything in it is read; headers are loaded once and checked. Only the payload of a bulk
// message is read where the peer could still change it: a decoder must load each length
// in it once and check it. A violation closes the connection with an error that describes
// it (*PeerError).
//
// # Sessions
//
// A connection has a random 128-bit token and outlives its transport. Each end counts the
// messages it has delivered; messages that the other end has not acknowledged are still
// in its ring. To bind again, over the same driver or another, the ends exchange token
// and counts, and each sends the missing messages from its ring again: exactly once, in
// order.
//
// # Lock order
//
// Conn.sendMu (only after Share), Conn.binding, Conn.mu, inbox.mu. A link's own
// locks are taken last. Nothing is called back with a lock held.
package msg
