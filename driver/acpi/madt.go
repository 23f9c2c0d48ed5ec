package acpi

// MADT is the description of processors and interrupt controllers (section 5.2.12).
type MADT struct {
	LAPIC     uint64 // physical address of the local APICs
	Legacy    bool   // there is also a pair of 8259s, which must be masked
	CPUs      []CPU  // in the table's order: the boot processor is the first
	IOAPICs   []IOAPIC
	Overrides []Override
}

// CPU is a processor's local APIC.
type CPU struct {
	APIC          uint32 // APIC identifier
	UID           uint32 // processor's number in AML
	Enabled       bool   // usable now
	OnlineCapable bool   // could be plugged in later
}

// IOAPIC is an interrupt controller and its first global interrupt.
type IOAPIC struct {
	ID      uint8
	Address uint64
	GSIBase uint32
}

// Override describes an ISA interrupt that is not wired to the global interrupt of the
// same number, edge-triggered and active high.
type Override struct {
	IRQ       uint8
	GSI       uint32
	Level     bool
	ActiveLow bool
}

// Types of MADT entries.
const (
	madtLAPIC    = 0
	madtIOAPIC   = 1
	madtOverride = 2
	madtAddress  = 5
	madtX2APIC   = 9
)

// MADT returns the table, or false when there is none.
func (t *Tables) MADT() (MADT, bool) {
	b := t.Lookup("APIC")
	if len(b) < headerSize+8 {
		return MADT{}, false
	}
	m := MADT{LAPIC: uint64(le.Uint32(b[headerSize:])), Legacy: b[headerSize+4]&1 != 0}
	for e := b[headerSize+8:]; len(e) >= 2 && e[1] >= 2 && int(e[1]) <= len(e); e = e[e[1]:] {
		m.add(e[:e[1]])
	}
	return m, true
}

func (m *MADT) add(e []byte) {
	switch {
	case e[0] == madtLAPIC && len(e) >= 8:
		m.addCPU(uint32(e[3]), uint32(e[2]), le.Uint32(e[4:]))
	case e[0] == madtX2APIC && len(e) >= 16:
		m.addCPU(le.Uint32(e[4:]), le.Uint32(e[12:]), le.Uint32(e[8:]))
	case e[0] == madtIOAPIC && len(e) >= 12:
		m.IOAPICs = append(m.IOAPICs, IOAPIC{e[2], uint64(le.Uint32(e[4:])), le.Uint32(e[8:])})
	case e[0] == madtOverride && len(e) >= 10:
		flags := le.Uint16(e[8:])
		m.Overrides = append(m.Overrides, Override{
			IRQ: e[3], GSI: le.Uint32(e[4:]),
			ActiveLow: flags&3 == 3,
			Level:     flags>>2&3 == 3,
		})
	case e[0] == madtAddress && len(e) >= 12:
		m.LAPIC = le.Uint64(e[4:])
	}
}

func (m *MADT) addCPU(apic, uid, flags uint32) {
	for _, c := range m.CPUs {
		if c.APIC == apic {
			return // listed both as LAPIC and x2APIC
		}
	}
	m.CPUs = append(m.CPUs, CPU{apic, uid, flags&1 != 0, flags&2 != 0})
}
