package inet

import "hardtack/abi/linux"

// SetCarrier says whether an interface's cable leads to something. It takes no lock that is held
// while a driver is waited for.
func (n *Net) SetCarrier(i *Interface, up bool) {
	if i.state.noCarrier.Swap(!up) == !up {
		return
	}
	i.state.carrierChanges.Add(1)
	n.tell(Event{Type: linux.RTM_NEWLINK, Interface: i})
}

// Carrier reports whether the interface's cable leads to something.
func (i *Interface) Carrier() bool { return !i.state.noCarrier.Load() }

// CarrierChanges returns how often that changed.
func (i *Interface) CarrierChanges() uint32 { return i.state.carrierChanges.Load() }

// Running reports whether packets pass: the interface is up, and so is its link.
func (i *Interface) Running() bool { return i.Up() && i.Carrier() }

// promiscuous is a link endpoint that drops frames for other stations unless it is told not to.
type promiscuous interface{ SetPromiscuous(on bool) }

// AddPromiscuous counts those who want frames for other stations, beside IFF_PROMISC.
func (i *Interface) AddPromiscuous(delta int32) {
	i.state.promiscuity.Add(delta)
	i.setPromiscuous()
}

// Promiscuity returns how many want frames for other stations.
func (i *Interface) Promiscuity() uint32 {
	n := uint32(max(i.state.promiscuity.Load(), 0))
	if i.state.flags.Load()&linux.IFF_PROMISC != 0 {
		n++
	}
	return n
}

// setPromiscuous tells the device. Of two who change it at once, the later tells it what both
// have left.
func (i *Interface) setPromiscuous() {
	if i.state.stations == nil {
		return
	}
	i.state.telling.Lock()
	defer i.state.telling.Unlock()
	i.state.stations.SetPromiscuous(i.Promiscuity() > 0)
}
