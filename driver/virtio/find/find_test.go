package find_test

import (
	"slices"
	"testing"
	"time"

	"hardtack/driver/acpi"
	"hardtack/driver/qtest"
	"hardtack/driver/virtio"
	"hardtack/driver/virtio/find"
)

func TestCommandLine(t *testing.T) {
	got, err := find.ParseCommandLine("console=ttyS0 virtio_mmio.device=512@0xfeb02a00:12 quiet virtio_mmio.device=4K@4276094976:0x11:3")
	want := []find.Place{{Base: 0xfeb02a00, Size: 512, GSI: 12}, {Base: 4276094976, Size: 4096, GSI: 17}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "512", "512@1", "@:", "x@1:2", "512@y:2", "512@1:z", "K@1:2", "-1@1:2", "1@1:99999999999"} {
		if got, err := find.ParseCommandLine("virtio_mmio.device=" + bad + " virtio_mmio.device=512@1:2"); err == nil || len(got) != 1 {
			t.Errorf("%q: %+v, %v", bad, got, err)
		}
	}
}

func TestDiscoverWithoutTables(t *testing.T) {
	m := qtest.Start(t, "microvm,acpi=off", "", 0, "-global", "virtio-mmio.force-legacy=false",
		"-device", "virtio-rng-device", "-device", "virtio-serial-device")
	got, problems := find.Devices(m, nil, "virtio_mmio.device=512@0xfeb00e00:12 virtio_mmio.device=512@0xfeb00c00:11 virtio_mmio.device=1@0xfeb00a00:10")
	if len(got) != 2 || got[0].Type()+got[1].Type() != virtio.TypeRNG+virtio.TypeConsole {
		t.Errorf("found %v", got)
	}
	if len(problems) != 1 {
		t.Errorf("problems %v", problems)
	}
}

// Everything that the firmware describes is found, each once.
func TestDevicesWithTables(t *testing.T) {
	for machine, device := range map[string]string{"microvm": "device", "q35": "pci"} {
		m := qtest.StartFirmware(t, machine, "", 0, "-global", "virtio-mmio.force-legacy=false",
			"-device", "virtio-rng-"+device, "-device", "virtio-serial-"+device)
		var got []virtio.Transport
		var problems []error
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			time.Sleep(250 * time.Millisecond)
			m.ForgetFirmware()
			if tables, err := acpi.Find(m, 0); err == nil {
				if got, problems = find.Devices(m, tables, ""); len(got) == 2 {
					break
				}
			}
		}
		if len(got) != 2 || len(problems) != 0 || got[0].Type()+got[1].Type() != virtio.TypeRNG+virtio.TypeConsole {
			t.Errorf("%s: found %v, problems %v", machine, got, problems)
		}
	}
}
