package acpi

// Address is where a register is (the generic address structure, section 5.2.3.2).
type Address struct {
	Space   uint8 // SpaceMemory or SpaceIO; Address 0: no register
	Bits    uint8
	Address uint64
}

// Address spaces.
const (
	SpaceMemory = 0
	SpaceIO     = 1
)

// FADT is the part of the fixed description table (section 5.2.9) that power
// management needs.
type FADT struct {
	DSDT            uint64
	HardwareReduced bool // no PM1 registers; sleep through SleepControl
	SMICommand      uint16
	ACPIEnable      uint8 // written to SMICommand to take over the registers
	PM1aControl     Address
	PM1bControl     Address
	SleepControl    Address
	SleepStatus     Address
	Reset           Address // no register if the machine cannot be reset this way
	ResetValue      uint8
	Century         uint8 // index of the century in CMOS, 0: none
}

// Flags of the FADT.
const (
	fadtResetSupported  = 1 << 10
	fadtHardwareReduced = 1 << 20
)

// FADT returns the table, or false when there is none.
func (t *Tables) FADT() (FADT, bool) {
	b := t.Lookup("FACP")
	if len(b) < 116 {
		return FADT{}, false
	}
	flags := le.Uint32(b[112:])
	f := FADT{
		DSDT:            uint64(le.Uint32(b[40:])),
		HardwareReduced: flags&fadtHardwareReduced != 0,
		SMICommand:      uint16(le.Uint32(b[48:])),
		ACPIEnable:      b[52],
		PM1aControl:     Address{SpaceIO, 16, uint64(le.Uint32(b[64:]))},
		PM1bControl:     Address{SpaceIO, 16, uint64(le.Uint32(b[68:]))},
		Century:         b[108],
	}
	if len(b) >= 129 && flags&fadtResetSupported != 0 {
		f.Reset, f.ResetValue = addressAt(b, 116), b[128]
	}
	if len(b) >= 148 {
		if x := le.Uint64(b[140:]); x != 0 {
			f.DSDT = x
		}
	}
	if len(b) >= 196 {
		if a := addressAt(b, 172); a.Address != 0 {
			f.PM1aControl = a
		}
		if a := addressAt(b, 184); a.Address != 0 {
			f.PM1bControl = a
		}
	}
	if len(b) >= 268 {
		f.SleepControl, f.SleepStatus = addressAt(b, 244), addressAt(b, 256)
	}
	return f, true
}

func addressAt(b []byte, off int) Address {
	return Address{b[off], b[off+1], le.Uint64(b[off+4:])}
}
