// Package netbench counts what packets, connections and requests through the virtio
// network card cost, on Hardtack and on Debian's Linux, and writes docs/bench/net.md.
//
// The other end of the card's cable is this program: QEMU passes Ethernet frames over a
// Unix socket, and Peer and Conn here are a client that sends and acknowledges as Linux's
// does, but always in the same order. So a figure depends on the guest only.
package netbench
