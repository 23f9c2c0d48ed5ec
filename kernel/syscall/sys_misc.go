package syscall

import (
	"encoding/binary"
	"fmt"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/random"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/process/proc"
)

var miscCalls = []Call{
	{linux.SYS_uname, "uname", sysUname, "works"},
	{linux.SYS_sethostname, "sethostname", sysSethostname, "works"},
	{linux.SYS_setdomainname, "setdomainname", sysSetdomainname, "works"},
	{linux.SYS_sysinfo, "sysinfo", sysSysinfo, "works"},
	{linux.SYS_getrandom, "getrandom", sysGetrandom, "works"},
	{linux.SYS_arch_prctl, "arch_prctl", sysArchPrctl, "works except CET and XCOMP; CPUID faulting is not supported (ENODEV)"},
	{linux.SYS_rseq, "rseq", sysRseq, "works"},
	{linux.SYS_membarrier, "membarrier", sysMembarrier, "works"},
	{linux.SYS_getrlimit, "getrlimit", sysGetrlimit, "works"},
	{linux.SYS_setrlimit, "setrlimit", sysSetrlimit, "works"},
	{linux.SYS_prlimit64, "prlimit64", sysPrlimit64, "works; enforced: AS, CPU, DATA, FSIZE, MEMLOCK, NOFILE, NPROC, SIGPENDING, STACK"},
	{linux.SYS_getrusage, "getrusage", sysGetrusage, "works except the counts of block operations, which are 0"},
	{linux.SYS_times, "times", sysTimes, "works"},
	{linux.SYS_personality, "personality", sysPersonality, "works for PER_LINUX, PER_LINUX32, ADDR_NO_RANDOMIZE, READ_IMPLIES_EXEC, STICKY_TIMEOUTS and UNAME26; other flags are kept"},
	{linux.SYS_reboot, "reboot", sysReboot, "works except kexec and suspend"},
}

// utsRelease and utsVersion are what uname reports.
var utsRelease, utsVersion = "6.1.0-hardtack", "#1 SMP"

// fieldSize is the size of struct utsname's fields.
const fieldSize = 65

// Personalities that change what uname says.
const (
	perMask    = 0xff
	perLinux32 = 8
	uname26    = 0x0020000
)

// oldNames returns the release and the machine that uname shows to a personality. As
// 2.6.60 and later, the releases behind 2.6 suit programs that know no others.
func oldNames(personality uint32) (release, machine string) {
	release, machine = utsRelease, "x86_64"
	if personality&perMask == perLinux32 {
		machine = "i686"
	}
	if personality&uname26 != 0 {
		var major, minor int
		if n, _ := fmt.Sscanf(utsRelease, "%d.%d", &major, &minor); n == 2 {
			rest := strings.TrimLeft(utsRelease, "0123456789.")
			//maxlive:len 64 because a release is a field of utsname
			release = fmt.Sprintf("2.6.%d%s", minor+60, rest)
		}
	}
	return release, machine
}

// sysUname is uname(struct utsname *buf).
func sysUname(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	release, machine := utsRelease, "x86_64"
	if v := t.Proc.Personality(); v != 0 {
		release, machine = oldNames(v)
	}
	b := make([]byte, 6*fieldSize)
	for i, s := range [...]string{"Linux", proc.Hostname(), release, utsVersion, machine, proc.Domainname()} {
		copy(b[i*fieldSize:(i+1)*fieldSize-1], s)
	}
	_, e := t.Mem.CopyOut(a.Addr(0), b)
	return 0, e
}

// readName reads the new host or domain name.
func readName(t *proc.Thread, a *Args) (string, linux.Errno) {
	if !t.Cred().Has(creds.CapSysAdmin) {
		return "", linux.EPERM
	}
	n := a.Int(1)
	if n < 0 || n > fieldSize-1 {
		return "", linux.EINVAL
	}
	b, e := readUser(t, a.Addr(0), int(n))
	//maxlive:len 64 because longer names are refused above
	return string(b), e
}

// sysSethostname is sethostname(const char *name, int len).
func sysSethostname(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	s, e := readName(t, a)
	if e == 0 {
		proc.SetHostname(s)
	}
	return 0, e
}

// sysSetdomainname is setdomainname(const char *name, int len).
func sysSetdomainname(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	s, e := readName(t, a)
	if e == 0 {
		proc.SetDomainname(s)
	}
	return 0, e
}

// sysSysinfo is sysinfo(struct sysinfo *info).
func sysSysinfo(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	b := t.Scratch[:112]
	clear(b)
	le := binary.LittleEndian
	le.PutUint64(b, uint64(wait.Now()/linux.NsecPerSec))
	for i, load := range proc.LoadAverages() {
		le.PutUint64(b[8+8*i:], uint64(load*65536))
	}
	le.PutUint64(b[32:], uint64(mem.Total())*mem.PageSize)
	le.PutUint64(b[40:], uint64(mem.Available())*mem.PageSize)
	_, threads := proc.Counts()
	le.PutUint16(b[80:], uint16(min(threads, 65535)))
	le.PutUint32(b[104:], 1) // mem_unit
	_, e := t.Mem.CopyOut(a.Addr(0), b)
	return 0, e
}

// Flags of getrandom.
const (
	grndNonblock = 1
	grndRandom   = 2
	grndInsecure = 4
)

// sysGetrandom is getrandom(void *buf, size_t len, unsigned flags).
func sysGetrandom(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	flags := a.Uint(2)
	if flags&^(grndNonblock|grndRandom|grndInsecure) != 0 || flags&(grndRandom|grndInsecure) == grndRandom|grndInsecure {
		return 0, linux.EINVAL
	}
	if flags&grndInsecure == 0 && !random.Ready() {
		if flags&grndNonblock != 0 {
			return 0, linux.EAGAIN
		}
		if e := random.Await(&t.Ctx); e != 0 {
			return 0, e
		}
	}
	n := min(a[1], uio.MaxTransfer)
	addr := a.Addr(0)
	for done := uint64(0); done < n; {
		b := t.Scratch[:min(n-done, uint64(len(t.Scratch)))]
		random.Read(b)
		m, e := t.Mem.CopyOut(addr+uio.Addr(done), b)
		done += uint64(m)
		if e != 0 {
			if done == 0 {
				return 0, e
			}
			return done, 0
		}
		if done >= 4096 && t.Interrupted() {
			return done, 0
		}
	}
	return n, 0
}

// Operations of arch_prctl.
const (
	archSetGS    = 0x1001
	archSetFS    = 0x1002
	archGetFS    = 0x1003
	archGetGS    = 0x1004
	archGetCPUID = 0x1011
	archSetCPUID = 0x1012
)

// sysArchPrctl is arch_prctl(int op, unsigned long addr).
func sysArchPrctl(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	u := &t.User
	switch a.Uint(0) {
	case archSetFS:
		if a[1] >= linux.TaskSize {
			return 0, linux.EPERM
		}
		u.FSBase = a[1]
		return 0, 0
	case archSetGS:
		if a[1] >= linux.TaskSize {
			return 0, linux.EPERM
		}
		u.SyncFPU()
		u.GSBase = a[1]
		return 0, 0
	case archGetFS:
		return 0, writeWords(t, a.Addr(1), int64(u.FSBase))
	case archGetGS:
		u.SyncFPU()
		return 0, writeWords(t, a.Addr(1), int64(u.GSBase))
	case archGetCPUID:
		return 1, 0
	case archSetCPUID:
		return 0, linux.ENODEV // the instruction cannot be made to fault
	}
	return 0, linux.EINVAL
}

// Commands of membarrier.
const (
	membarrierQuery               = 0
	membarrierGlobal              = 1
	membarrierGlobalExpedited     = 2
	membarrierRegGlobalExpedited  = 4
	membarrierPrivateExpedited    = 8
	membarrierRegPrivateExpedited = 16
	membarrierSyncCore            = 32
	membarrierRegSyncCore         = 64
	membarrierRseq                = 128
	membarrierRegRseq             = 256
	membarrierKnown               = 511

	membarrierFlagCPU = 1
)

// sysRseq is rseq(struct rseq *area, uint32_t size, int flags, uint32_t signature).
func sysRseq(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	return 0, t.Rseq(a.Addr(0), a.Uint(1), a.Int(2), a.Uint(3))
}

// sysMembarrier is membarrier(int cmd, unsigned flags, int cpu_id).
func sysMembarrier(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	cpu := int32(-1)
	switch flags := a.Uint(1); {
	case a.Int(0) == membarrierRseq && flags&membarrierFlagCPU == flags:
		if flags != 0 {
			cpu = a.Int(2)
		}
	case flags != 0:
		return 0, linux.EINVAL
	}
	switch a.Int(0) {
	case membarrierQuery:
		return membarrierKnown, 0
	case membarrierRegGlobalExpedited, membarrierRegPrivateExpedited, membarrierRegSyncCore, membarrierRegRseq:
		t.Space.Barriers.Or(uint32(a.Int(0)))
		return 0, 0
	case membarrierPrivateExpedited, membarrierSyncCore, membarrierRseq:
		if t.Space.Barriers.Load()&(uint32(a.Int(0))<<1) == 0 {
			return 0, linux.EPERM
		}
		if a.Int(0) == membarrierRseq {
			t.RestartSequences(int(cpu))
		}
		t.Barrier(false)
		return 0, 0
	case membarrierGlobal, membarrierGlobalExpedited:
		t.Barrier(true)
		return 0, 0
	}
	return 0, linux.EINVAL
}

// sysGetrlimit is getrlimit(int resource, struct rlimit *rlim).
func sysGetrlimit(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	n := a.Uint(0)
	if n >= linux.RLIM_NLIMITS {
		return 0, linux.EINVAL
	}
	l := t.Proc.Rlimit(int(n))
	return 0, writeWords(t, a.Addr(1), int64(l.Cur), int64(l.Max))
}

// readRlimit copies a struct rlimit in.
func readRlimit(t *proc.Thread, addr uio.Addr) (linux.Rlimit, linux.Errno) {
	b, e := readUser(t, addr, 16)
	if e != 0 {
		return linux.Rlimit{}, e
	}
	return linux.Rlimit{Cur: le64(b), Max: le64(b[8:])}, 0
}

// sysSetrlimit is setrlimit(int resource, const struct rlimit *rlim).
func sysSetrlimit(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	n := a.Uint(0)
	if n >= linux.RLIM_NLIMITS {
		return 0, linux.EINVAL
	}
	l, e := readRlimit(t, a.Addr(1))
	if e != 0 {
		return 0, e
	}
	_, e = t.Proc.Prlimit(&t.Ctx, int(n), &l)
	return 0, e
}

// sysPrlimit64 is prlimit64(pid_t pid, int resource, const struct rlimit64 *new, struct rlimit64 *old).
func sysPrlimit64(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	n := a.Uint(1)
	var change *linux.Rlimit
	if addr := a.Addr(2); addr != 0 {
		l, e := readRlimit(t, addr)
		if e != 0 {
			return 0, e
		}
		change = &l
	}
	p := process(t, a.Int(0))
	if p == nil {
		return 0, linux.ESRCH
	}
	if n >= linux.RLIM_NLIMITS {
		return 0, linux.EINVAL
	}
	old, e := p.Prlimit(&t.Ctx, int(n), change)
	if e != 0 {
		return 0, e
	}
	if addr := a.Addr(3); addr != 0 {
		return 0, writeWords(t, addr, int64(old.Cur), int64(old.Max))
	}
	return 0, 0
}

// sysGetrusage is getrusage(int who, struct rusage *usage).
func sysGetrusage(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	r, e := t.Usage(a.Int(0))
	if e != 0 {
		return 0, e
	}
	return 0, writeRusage(t, a.Addr(1), &r)
}

// tickNsec is the unit of times(2).
const tickNsec = linux.NsecPerSec / 100

// sysTimes is times(struct tms *buf).
func sysTimes(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if addr := a.Addr(0); addr != 0 {
		u, s := t.Proc.CPUTime()
		cu, cs := t.Proc.ChildrenTime()
		if e := writeWords(t, addr, u/tickNsec, s/tickNsec, cu/tickNsec, cs/tickNsec); e != 0 {
			return 0, e
		}
	}
	return uint64(wait.Now() / tickNsec), 0
}

// sysPersonality is personality(unsigned long persona); all ones only ask.
func sysPersonality(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	old := t.Proc.Personality()
	if v := a.Uint(0); v != 0xffffffff {
		t.Proc.SetPersonality(v)
	}
	return uint64(old), 0
}

// sysReboot is reboot(int magic, int magic2, int cmd, void *arg).
func sysReboot(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	if !t.Cred().Has(creds.CapSysBoot) {
		return 0, linux.EPERM
	}
	magic2 := a.Uint(1)
	if a.Uint(0) != 0xfee1dead || magic2 != 672274793 && magic2 != 85072278 && magic2 != 369367448 && magic2 != 537993216 {
		return 0, linux.EINVAL
	}
	return 0, proc.Reboot.Call(a.Uint(2))
}
