// Package nats carries connections between machines over a NATS server or
// cluster (github.com/nats-io), and keeps the names of their services in a
// key-value bucket there. Importing it registers nothing: a program opens a
// Node and says msg.Register(node), and its resolver gets the node's Bucket.
//
// # Server
//
// With a URL (Options.URL or $HARDTACK_NATS) a node joins the servers that are
// there. Without one, the first process of a machine starts a server inside
// itself, on the loopback or where Options.Listen says, and the others join it;
// when that process ends, the next one to notice starts another at the same
// address (server.go). Such a server asks for a secret, which is in a file
// that only its user can read.
//
// # Links
//
// NATS promises little: a message arrives at most once, in the order of its
// sender, and is lost when a server restarts or a route breaks. A link adds
// what msg.Link promises (link.go). Frames are numbered; the receiver tells up
// to where it has had them, and the sender repeats what stays without answer,
// or what the receiver says it missed. Numbers that were had already are
// dropped. So a restart of the server costs time and nothing else. The sender
// stops at a window of frames that the receiver's program has not taken.
//
// # Who is there
//
// Each process has a random number and one subscription, for all its links.
// The server tells the sender of a message when nobody has subscribed (status
// 503): so a killed peer shows at the next message, or at the next of the pings
// that go to each process with which links are open, every 25 ms while one is in
// use (node.go). A peer that lost its server looks the same until it has
// connected again; one that was connected to the same server as we are has not
// lost it. So that is given deadSoon to come back, others deadAfter.
//
// Lock order: Node.mu, link.sendMu, link.mu. The subscription's callback never
// waits for a program or for the network.
package nats
