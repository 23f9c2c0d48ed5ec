package e1000

// Registers (chapter 10).
const (
	regControl     = 0x0000 // CTRL
	regStatus      = 0x0008 // STATUS
	regExtended    = 0x0018 // CTRL_EXT
	regCause       = 0x00c0 // ICR
	regMask        = 0x00d0 // IMS: bits that are set enable
	regMaskClear   = 0x00d8 // IMC
	regAutoClear   = 0x00dc // EIAC
	regAutoMask    = 0x00e0 // IAM
	regVectors     = 0x00e4 // IVAR
	regReceive     = 0x0100 // RCTL
	regTransmit    = 0x0400 // TCTL
	regGap         = 0x0410 // TIPG
	regRxBase      = 0x2800 // RDBAL, RDBAH
	regRxSize      = 0x2808 // RDLEN
	regRxHead      = 0x2810 // RDH
	regRxTail      = 0x2818 // RDT
	regTxBase      = 0x3800 // TDBAL, TDBAH
	regTxSize      = 0x3808 // TDLEN
	regTxHead      = 0x3810 // TDH
	regTxTail      = 0x3818 // TDT
	regTxThreshold = 0x3828 // TXDCTL
	regChecksum    = 0x5000 // RXCSUM
	regMulticast   = 0x5200 // MTA
	regAddress     = 0x5400 // RAL, RAH
)

const (
	controlAutoSpeed = 1 << 5
	controlLinkUp    = 1 << 6
	controlReset     = 1 << 26

	statusLink = 1 << 1

	// Message interrupts: pending bits are cleared, and IAM is applied, when one is sent.
	extendedMask  = 1 << 24 // EIAME
	extendedClear = 1 << 31 // PBA_CLR

	receiveOn        = 1 << 1
	receiveAll       = 1 << 3 // frames for other stations
	receiveMulticast = 1 << 4 // all groups
	receiveLong      = 1 << 5
	receiveBroadcast = 1 << 15
	receiveStripCRC  = 1 << 26

	transmitOn  = 1 << 1
	transmitPad = 1 << 3

	thresholdCount       = 1 << 22
	thresholdGranularity = 1 << 24

	checksumIP  = 1 << 8
	checksumTCP = 1 << 9

	addressValid = 1 << 31
)

// Interrupt causes (section 10.2.4).
const (
	icrTxDone  = 1 << 0
	icrLink    = 1 << 2
	icrRxLow   = 1 << 4
	icrOverrun = 1 << 6
	icrRx      = 1 << 7
	icrRxQueue = 1 << 20 // only with message interrupts
	icrTxQueue = 1 << 22
	icrOther   = 1 << 24
)

// cause is an interrupt's reason, and its message where there are messages.
type cause int

const (
	causeRx cause = iota
	causeTx
	causeLink
	nCauses
)

// causes returns the bits of a cause in ICR and its kin.
func (d *Device) causes(c cause) uint32 {
	if d.model.messages && d.rx.messages {
		return [nCauses]uint32{icrRxQueue, icrTxQueue, icrOther | icrLink}[c]
	}
	return [nCauses]uint32{icrRx | icrOverrun | icrRxLow, icrTxDone, icrLink}[c]
}

// counted are the card's counters (section 10.2.7), by the names that Linux has for them.
var counted = [...]struct {
	name string
	at   uint64
}{
	{"rx_packets", 0x4074}, {"tx_packets", 0x4080}, {"rx_crc_errors", 0x4000}, {"rx_errors", 0x400c}, {"rx_missed_errors", 0x4010},
	{"rx_no_buffer_count", 0x40a0}, {"rx_short_length_errors", 0x40a4}, {"rx_long_length_errors", 0x40ac},
	{"rx_broadcast", 0x4078}, {"rx_multicast", 0x407c}, {"tx_tcp_seg_good", 0x40f8},
}
