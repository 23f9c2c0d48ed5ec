package inet

// Kept is what is kept for sockets.
type Kept struct {
	Pending, TCP, UDP int64 // connections that nobody has accepted; ports
	Sockets           int
}

func KeptNow() (k Kept) {
	Default.Each(func(*Info) { k.Sockets++ })
	k.Pending, k.TCP, k.UDP = pendingPool.Get().Used(), tcpPorts.Used(), udpPorts.Used()
	return k
}
