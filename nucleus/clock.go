package nucleus

import (
	"math/bits"

	"hardtack/arch/amd64"
)

func ticksToNS(t uint64) int64 {
	hi, lo := bits.Mul64(t, amd64.ClockMult)
	return int64(hi<<32 | lo>>32)
}

func nsToTicks(ns int64) uint64 { return uint64(ns) * clock.ticks >> 20 }

// clock is set at boot; immutable.
var clock struct {
	hz    uint64
	ticks uint64 // TSC ticks a nanosecond, 20 binary places
	how   string
}

// TSCFrequency returns the frequency of the TSC in Hz and how it was found.
func TSCFrequency() (uint64, string) { return clock.hz, clock.how }

// busHz is the frequency of the local APIC timer of QEMU and KVM.
const busHz = 1e9

// initClock finds the TSC's frequency: from CPUID leaf 0x15, the hypervisor's
// leaf 0x40000010, kvm-clock's scale, or else by the local APIC timer, whose
// frequency is known in the machines we run on.
func initClock() {
	if cluster.index > 0 { // all clusters have the first one's clock
		info := clusterInfo(direct(amd64.BootInfo))
		apic.mult = busHz * (1 << 32) / 1e9
		clock.how = "the first cluster"
		setClock(info.ClockHz, info.ClockBase)
		return
	}
	hz := cpuidHz()
	if hz == 0 {
		hz = kvmHz()
	}
	apic.mult = busHz * (1 << 32) / 1e9
	if hz == 0 {
		hz = apicHz()
	}
	setClock(hz, amd64.TSC())
}

func setClock(hz, base uint64) {
	clock.hz = hz
	clock.ticks = hz << 20 / 1e9
	hi, lo := uint64(1e9)>>32, uint64(1e9)<<32
	mult, _ := bits.Div64(hi, lo, hz)
	amd64.ClockMult, amd64.ClockBase = mult, base
}

func cpuidHz() uint64 {
	clock.how = "cpuid 0x15"
	top, _, _, _ := amd64.CPUID(0, 0)
	if top >= 0x15 {
		if den, num, crystal, _ := amd64.CPUID(0x15, 0); den != 0 && num != 0 && crystal != 0 {
			return uint64(crystal) * uint64(num) / uint64(den)
		}
	}
	if _, _, ecx, _ := amd64.CPUID(1, 0); ecx>>31 != 0 {
		if top, _, _, _ := amd64.CPUID(0x40000000, 0); top >= 0x40000010 {
			clock.how = "cpuid 0x40000010"
			khz, _, _, _ := amd64.CPUID(0x40000010, 0)
			return uint64(khz) * 1000
		}
	}
	return 0
}

// kvmHz reads the scale that kvm-clock publishes (Linux's
// Documentation/virt/kvm/x86/msr.rst, MSR_KVM_SYSTEM_TIME_NEW).
func kvmHz() uint64 {
	if _, b, c, d := amd64.CPUID(0x40000000, 0); b != 0x4b4d564b || c != 0x564b4d56 || d != 0x4d {
		return 0
	}
	features, _, _, _ := amd64.CPUID(0x40000001, 0)
	if features>>3&1 == 0 {
		return 0
	}
	pa := kernelFrame(nil)
	amd64.WriteMSR(0x4b564d01, pa|1)
	mul, shift := load32(direct(pa)+24), int8(load8(direct(pa)+28))
	amd64.WriteMSR(0x4b564d01, 0)
	if mul == 0 {
		return 0
	}
	// ns = (tsc << shift) * mul >> 32
	hz := uint64(1e9) << 32 / uint64(mul)
	if shift < 0 {
		hz <<= uint(-shift)
	} else {
		hz >>= uint(shift)
	}
	clock.how = "kvm-clock"
	return hz
}

// apicHz counts TSC ticks while the APIC timer counts 5 ms.
func apicHz() uint64 {
	clock.how = "local APIC timer"
	apicWrite(apicLVTTimer, apicMasked|vectorTimer)
	apicWrite(apicInitial, 0xffffffff)
	// The tightest of a few paired readings bounds the error.
	sample := func() (count uint32, tsc uint64) {
		best := ^uint64(0)
		for range 8 {
			a := amd64.TSC()
			n := apicRead(apicCurrent)
			b := amd64.TSC()
			if b-a < best {
				best, count, tsc = b-a, n, a+(b-a)/2
			}
		}
		return count, tsc
	}
	n0, t0 := sample()
	for n0-apicRead(apicCurrent) < busHz/200 {
		amd64.Pause()
	}
	n1, t1 := sample()
	apicWrite(apicInitial, 0)
	if !apic.deadline {
		apicWrite(apicLVTTimer, vectorTimer)
	} else {
		apicWrite(apicLVTTimer, vectorTimer|deadlineMode)
	}
	hz, _ := bits.Div64(0, (t1-t0)*(busHz/1000), uint64(n0-n1))
	return hz * 1000
}
