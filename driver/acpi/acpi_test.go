package acpi_test

import (
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hardtack/driver"
	"hardtack/driver/acpi"
	"hardtack/driver/qtest"
)

// memory is a platform that has memory only.
type memory struct {
	driver.Platform
	b []byte
}

func (m memory) PhysWindow(phys, n uint64) []byte { return qtest.Window(m.b, phys, n) }

// firmware boots a machine's firmware, without a kernel, until its tables are
// in memory.
func firmware(t *testing.T, machine string, args ...string) *acpi.Tables {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ram")
	mem := qtest.Map(t, file)
	// The firmware's own segment is not part of the memory file: the monitor saves it.
	cmd := qtest.Command(t, file, machine, append(args, "-accel", "tcg", "-smp", "2", "-monitor", "stdio")...)
	monitor, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	bios := filepath.Join(t.TempDir(), "bios")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var last error
	var snapshot []byte
	const patience = time.Minute // it is a second, except for a busy machine
	for end := time.Now().Add(patience); time.Now().Before(end); {
		_, _ = io.WriteString(monitor, "pmemsave 0xe0000 131072 \""+bios+"\"\n")
		time.Sleep(100 * time.Millisecond)
		if b, err := os.ReadFile(bios); err != nil || len(b) < 0x20000 {
			continue
		} else {
			snapshot = slices.Clone(mem)
			copy(snapshot[0xe0000:], b)
		}
		tables, err := acpi.Find(memory{b: snapshot}, 0)
		if err == nil {
			if _, ok := tables.MADT(); ok {
				return tables
			}
		}
		last = err
	}
	t.Fatalf("no tables within %v: %v", patience, last)
	return nil
}

func TestMicroVM(t *testing.T) {
	tables := firmware(t, "microvm,rtc=on", "-device", "virtio-rng-device", "-device", "virtio-serial-device")
	m, _ := tables.MADT()
	if len(m.CPUs) != 2 || !m.CPUs[0].Enabled || m.LAPIC != 0xfee00000 {
		t.Errorf("MADT %+v", m)
	}
	if len(m.IOAPICs) != 2 || m.IOAPICs[0].Address != 0xfec00000 || m.IOAPICs[1].GSIBase != 24 {
		t.Errorf("IOAPICs %+v", m.IOAPICs)
	}
	f, ok := tables.FADT()
	if !ok || !f.HardwareReduced || f.SleepControl.Address != 0xfea00200 ||
		f.Reset != (acpi.Address{Space: acpi.SpaceMemory, Bits: 8, Address: 0xfea00202}) || f.ResetValue != 0x42 {
		t.Errorf("FADT %+v", f)
	}
	if a, _, ok := tables.S5(); !ok || a != 5 {
		t.Errorf("S5 %v %v", a, ok)
	}
	d := tables.Devices("LNRO0005")
	if len(d) != 2 {
		t.Errorf("%d virtio-mmio transports: %+v", len(d), d)
	}
	for i, r := range d {
		if r.Base != 0xfeb00000+uint64(r.GSI-24)*0x200 || r.Size != 0x200 || r.ActiveLow {
			t.Errorf("transport %d: %+v", i, r)
		}
	}
}

// override returns how the firmware says that an ISA interrupt is wired.
func override(m acpi.MADT, irq uint8) acpi.Override {
	for _, o := range m.Overrides {
		if o.IRQ == irq {
			return o
		}
	}
	return acpi.Override{IRQ: irq, GSI: uint32(irq)}
}

func TestQ35(t *testing.T) {
	tables := firmware(t, "q35")
	m, _ := tables.MADT()
	if len(m.CPUs) != 2 || len(m.IOAPICs) != 1 || !m.Legacy {
		t.Errorf("MADT %+v", m)
	}
	if o := override(m, 0); o.GSI != 2 || o.Level {
		t.Errorf("timer interrupt: %+v", o)
	}
	if o := override(m, 9); o.GSI != 9 || !o.Level || o.ActiveLow {
		t.Errorf("ACPI interrupt: %+v", o)
	}
	if o := override(m, 4); o != (acpi.Override{IRQ: 4, GSI: 4}) {
		t.Errorf("serial interrupt: %+v", o)
	}
	f, ok := tables.FADT()
	if !ok || f.HardwareReduced || f.PM1aControl.Address != 0x604 || f.SMICommand != 0xb2 ||
		f.Reset != (acpi.Address{Space: acpi.SpaceIO, Bits: 8, Address: 0xcf9}) || f.Century != 0x32 {
		t.Errorf("FADT %+v", f)
	}
	if a, _, ok := tables.S5(); !ok || a != 0 {
		t.Errorf("S5 %v %v", a, ok)
	}
	if e := tables.MCFG(); len(e) != 1 || e[0] != (acpi.ECAM{Base: 0xb0000000, LastBus: 255}) {
		t.Errorf("MCFG %+v", e)
	}
}

// sealed gives a table its length and checksum.
func sealed(signature string, body []byte) []byte {
	b := append(make([]byte, 36), body...)
	copy(b, signature)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)))
	b[9] = -sumOf(b)
	return b
}

func sumOf(b []byte) (sum byte) {
	for _, c := range b {
		sum += c
	}
	return sum
}

// image lays a DSDT and other tables out in 1 MiB of memory.
func image(dsdt []byte, tables ...[]byte) []byte {
	mem := make([]byte, 1<<20)
	at := 0x1000
	put := func(b []byte) uint64 {
		from := at
		at += (len(b) + 15) &^ 15
		copy(mem[from:], b)
		return uint64(from)
	}
	fadt := make([]byte, 276-36)
	binary.LittleEndian.PutUint64(fadt[140-36:], put(sealed("DSDT", dsdt)))
	root := binary.LittleEndian.AppendUint64(nil, put(sealed("FACP", fadt)))
	for _, b := range tables {
		root = binary.LittleEndian.AppendUint64(root, put(b))
	}
	rsdp := mem[0xf0000:0xf0024]
	copy(rsdp, "RSD PTR ")
	rsdp[15] = 2
	binary.LittleEndian.PutUint64(rsdp[24:], put(sealed("XSDT", root)))
	rsdp[8] = -sumOf(rsdp[:20])
	rsdp[32] = -sumOf(rsdp)
	return mem
}

func TestS5Encodings(t *testing.T) {
	for name, c := range map[string]struct {
		aml  []byte
		a, b uint8
		ok   bool
	}{
		"bytes":        {[]byte("\x08_S5_\x12\x08\x04\x0a\x05\x0a\x06\x00\x00"), 5, 6, true},
		"root, zero":   {[]byte("junk\x08\\_S5_\x12\x06\x04\x00\x00\x00\x00"), 0, 0, true},
		"one element":  {[]byte("\x08_S5_\x12\x04\x01\x0a\x07"), 7, 0, true},
		"word":         {[]byte("\x08_S5_\x12\x06\x02\x0b\x05\x00\x01"), 5, 1, true},
		"not a name":   {[]byte("X_S5_\x12\x04\x01\x0a\x07"), 0, 0, false},
		"cut package":  {[]byte("\x08_S5_\x12\x0f\x04\x0a\x05"), 0, 0, false},
		"no element":   {[]byte("\x08_S5_\x12\x02\x00"), 0, 0, false},
		"end of table": {[]byte("\x08_S5_"), 0, 0, false},
	} {
		tables, err := acpi.Find(memory{b: image(c.aml)}, 0xf0000)
		if err != nil {
			t.Fatal(err)
		}
		if a, b, ok := tables.S5(); a != c.a || b != c.b || ok != c.ok {
			t.Errorf("%s: %d %d %v", name, a, b, ok)
		}
	}
}

func TestMADTEntries(t *testing.T) {
	body := []byte{0, 0, 0xe0, 0xfe, 1, 0, 0, 0,
		0, 8, 7, 3, 1, 0, 0, 0, // LAPIC 3
		9, 16, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, // the same as x2APIC
		9, 16, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 8, 0, 0, 0, // x2APIC 256, to be plugged in
		5, 12, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, // LAPICs at 4 GiB
		2, 10, 0, 5, 21, 0, 0, 0, 0x0f, 0, // IRQ 5 is 21, level, low
		77, 3, 1, // unknown
		1, 200, // cut off
	}
	tables, err := acpi.Find(memory{b: image(nil, sealed("APIC", body))}, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, ok := tables.MADT()
	if !ok || m.LAPIC != 1<<32 || !m.Legacy {
		t.Errorf("%+v", m)
	}
	if len(m.CPUs) != 2 || m.CPUs[0] != (acpi.CPU{APIC: 3, UID: 7, Enabled: true}) ||
		m.CPUs[1] != (acpi.CPU{APIC: 256, UID: 8, OnlineCapable: true}) {
		t.Errorf("CPUs %+v", m.CPUs)
	}
	if o := override(m, 5); o != (acpi.Override{IRQ: 5, GSI: 21, Level: true, ActiveLow: true}) {
		t.Errorf("override %+v", o)
	}
}

// Damaged tables are left out or read within their bounds, whatever they hold.
func TestDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dsdt := rapid.SliceOfN(rapid.SampledFrom([]byte("\x08_S5_\x12\x06\x04\x5b\x82HIDCR\x0dLNO0\x00\x05\x11\x86\x89\x09\xff\x79\x47")), 0, 200).Draw(t, "dsdt")
		dsdt = append(dsdt, "\x08_HID\x0dLNRO0005\x00"...)
		dsdt = append([]byte{0x5b, 0x82, byte(len(dsdt)%48 + 1), 'V', '_', '_', '_'}, dsdt...)
		apic := rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "madt")
		mcfg := rapid.SliceOfN(rapid.Byte(), 0, 60).Draw(t, "mcfg")
		mem := image(dsdt, sealed("APIC", apic), sealed("MCFG", mcfg), sealed("SSDT", dsdt))
		for range rapid.IntRange(0, 4).Draw(t, "pokes") {
			mem[rapid.IntRange(0xff0, 0x1800).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		tables, err := acpi.Find(memory{b: mem}, 0)
		if err != nil {
			return
		}
		tables.MADT()
		tables.FADT()
		tables.MCFG()
		tables.S5()
		tables.Devices("LNRO0005")
	})
}

func TestNoTables(t *testing.T) {
	if _, err := acpi.Find(memory{b: make([]byte, 1<<20)}, 0x1234); err == nil {
		t.Error("found tables in empty memory")
	}
}
