package inet

// Kept tells what is kept for sockets: connections that nobody has accepted, ports of TCP
// and UDP, and the sockets themselves.
func Kept() (pending, tcp, udp int64, sockets int) {
	Default.Each(func(*Info) { sockets++ })
	return pendingPool.Get().Used(), tcpPorts.Used(), udpPorts.Used(), sockets
}
