package power_test

import (
	"testing"
	"time"

	"hardtack/driver/acpi"
	"hardtack/driver/power"
	"hardtack/driver/qtest"
)

// patience is for what comes at once, except for a busy machine.
const patience = time.Minute

func start(t *testing.T, machine string, args ...string) (*qtest.Machine, *acpi.Tables) {
	t.Helper()
	m := qtest.StartFirmware(t, machine, "", 0, args...)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		time.Sleep(250 * time.Millisecond)
		m.ForgetFirmware()
		if tables, err := acpi.Find(m, 0); err == nil {
			if _, ok := tables.FADT(); ok {
				return m, tables
			}
		}
	}
	t.Fatal("no tables within", patience)
	return nil, nil
}

func ends(t *testing.T, m *qtest.Machine) {
	t.Helper()
	select {
	case <-m.Ended():
	case <-time.After(patience):
		t.Error("the machine is still on")
	}
}

func TestOff(t *testing.T) {
	for _, machine := range []string{"microvm", "q35"} {
		t.Run(machine, func(t *testing.T) {
			m, tables := start(t, machine)
			power.New(m, tables).Off() // a reset would not end QEMU
			ends(t, m)
		})
	}
}

func TestReset(t *testing.T) {
	for _, machine := range []string{"microvm", "q35"} {
		t.Run(machine, func(t *testing.T) {
			m, tables := start(t, machine, "-no-reboot")
			power.New(m, tables).Reset()
			ends(t, m)
		})
	}
}
