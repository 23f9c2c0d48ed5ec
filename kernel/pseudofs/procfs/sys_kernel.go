package procfs

import (
	"fmt"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/random"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/sysctl"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/process/sysv"
)

func constant(s string) func() string { return func() string { return s } }

func kernelFiles() []sysctl.File {
	return []sysctl.File{
		sysctl.Line("kernel/ostype", constant("Linux")),
		sysctl.Line("kernel/osrelease", func() string { return Release }),
		sysctl.Line("kernel/version", func() string { return Version }),
		sysctl.Line("kernel/arch", constant("x86_64")),
		sysctl.PolledText("kernel/hostname", 64, &proc.HostnameEvent, proc.Hostname, setName(proc.SetHostname)),
		sysctl.PolledText("kernel/domainname", 64, &proc.DomainnameEvent, proc.Domainname, setName(proc.SetDomainname)),
		sysctl.Number("kernel/ngroups_max", func() int64 { return 65536 }),
		sysctl.Number("kernel/cap_last_cap", func() int64 { return 40 }),
		noted(sysctl.Hook("kernel/pid_max", proc.MinPIDMax, proc.MaxPIDMax, proc.PIDMax, set(proc.SetPIDMax)),
			"numbers stay below 32768, too"),
		sysctl.Hook("kernel/threads-max", 1, 0x3fffffff, func() int64 { return int64(proc.MaxThreads()) },
			set(func(n int64) { proc.SetMaxThreads(int32(n)) })),
		lastPID(),
		sysctl.Int("kernel/panic_on_oops", &settings.PanicOnOops, sysctl.MinInt, sysctl.MaxInt),
		sysctl.Uint("kernel/oops_limit", &settings.OopsLimit, 0, 1<<32-1),
		sysctl.Int("kernel/randomize_va_space", &settings.RandomizeVA, sysctl.MinInt, sysctl.MaxInt),
		admin(sysctl.Int("kernel/dmesg_restrict", &settings.DmesgRestrict, 0, 1)),
		sysctl.Int("kernel/sysctl_writes_strict", &sysctl.Strict, -1, 1),
		sysctl.Kept("kernel/overflowuid", 65534, 0, 65535, "kept: every user ID has 32 bits"),
		sysctl.Kept("kernel/overflowgid", 65534, 0, 65535, "kept: every group ID has 32 bits"),
		sysctl.Line("kernel/random/boot_id", bootID),
		sysctl.Line("kernel/random/uuid", newUUID),
		sysctl.Number("kernel/random/entropy_avail", func() int64 { return 256 }),
		sysctl.Number("kernel/random/poolsize", func() int64 { return 256 }),
		sysctl.Kept("kernel/random/urandom_min_reseed_secs", 60, sysctl.MinInt, sysctl.MaxInt, "kept, as in Linux"),
		sysctl.Kept("kernel/random/write_wakeup_threshold", 256, sysctl.MinInt, sysctl.MaxInt, "kept, as in Linux"),
		sysctl.Int("kernel/pty/max", &settings.PtyMax, 0, sysctl.MaxInt),
		sysctl.Number("kernel/pty/nr", func() int64 { return Ptys.Call() }),
		controlAltDelete(),
		sysctl.Kept("kernel/pty/reserve", 1024, 0, sysctl.MaxInt, "kept: there is one devpts, for which nothing is reserved"),
	}
}

// ipcNumbers bound System V objects.
func ipcNumbers() []sysctl.File {
	sem := []*settings.Setting{&settings.SemMsl, &settings.SemMns, &settings.SemOpm, &settings.SemMni}
	return []sysctl.File{
		sysctl.Int("kernel/msgmax", &settings.MsgMax, 0, sysctl.MaxInt),
		sysctl.Int("kernel/msgmnb", &settings.MsgMnb, 0, sysctl.MaxInt),
		sysctl.Hook("kernel/msgmni", 0, linux.IPCMNI, settings.MsgMni.Get, set(sysv.SetMsgMni)),
		sysctl.Ints("kernel/sem", 4, sysctl.MinInt, sysctl.MaxInt, func(v []int64) {
			for i, s := range sem {
				v[i] = s.Get()
			}
		}, func(_ *caller.Ctx, v []int64) linux.Errno {
			for i, s := range sem[:3] {
				s.Set(v[i])
			}
			if v[3] < 0 || v[3] > linux.IPCMNI {
				return linux.ERANGE
			}
			sysv.SetSemMni(v[3])
			return 0
		}),
		nextID("kernel/msg_next_id", sysv.NextMsg),
		nextID("kernel/sem_next_id", sysv.NextSem),
		nextID("kernel/shm_next_id", sysv.NextShm),
		sysctl.Ulong("kernel/shmmax", &settings.ShmMax, 0, -1),
		sysctl.Ulong("kernel/shmall", &settings.ShmAll, 0, -1),
		sysctl.Hook("kernel/shmmni", 0, linux.IPCMNI, settings.ShmMni.Get, set(sysv.SetShmMni)),
	}
}

func setName(f func(string)) func(*caller.Ctx, string) linux.Errno {
	return func(_ *caller.Ctx, s string) linux.Errno { f(s); return 0 }
}

func noted(f sysctl.File, note string) sysctl.File {
	f.Note = note
	return f
}

// admin makes CAP_SYS_ADMIN needed to write.
func admin(f sysctl.File) sysctl.File {
	f.Value = &privileged{f.Value, creds.CapSysAdmin}
	return f
}

type privileged struct {
	sysctl.Value
	capability uint
}

// Write asks for the capability first.
func (p *privileged) Write(c *caller.Ctx, b []byte, off int64) (int, linux.Errno) {
	if !c.Cred().Has(p.capability) {
		return 0, linux.EPERM
	}
	return p.Value.Write(c, b, off)
}

// lastPID is the number given out last: the next is looked for behind it.
func lastPID() sysctl.File {
	f := sysctl.Hook("kernel/ns_last_pid", 0, proc.MaxPIDMax, func() int64 { return int64(proc.LastPID()) },
		func(c *caller.Ctx, v int64) linux.Errno {
			if !c.Cred().Has(creds.CapSysAdmin) && !c.Cred().Has(creds.CapCheckpointRestore) {
				return linux.EPERM
			}
			return proc.SetLastPID(int32(v))
		})
	f.Mode = 0o666
	return f
}

// nextID is the number that the next object of System V IPC gets.
func nextID(name string, n sysv.Next) sysctl.File {
	f := sysctl.Hook(name, 0, sysctl.MaxInt, n.Get, func(c *caller.Ctx, v int64) linux.Errno {
		if !c.Cred().Has(creds.CapSysAdmin) && !c.Cred().Has(creds.CapCheckpointRestore) {
			return linux.EPERM
		}
		n.Set(v)
		return 0
	})
	f.Mode, f.Shown = 0o666, 0o444 // as on Linux, where the capability gives the rest
	return f
}

// keptKernel are numbers that server set-ups write and nothing here reads.
func keptKernel() []sysctl.File {
	const any, most = sysctl.MinInt, sysctl.MaxInt
	kept := sysctl.Kept
	return []sysctl.File{
		kept("kernel/panic", 0, any, most, "kept: a panic stops the machine; its operator restarts it"),
		kept("kernel/panic_on_warn", 0, 0, 1, noMessage),
		kept("kernel/sysrq", 438, any, most, "kept: there is no keyboard and no sysrq-trigger"),
		kept("kernel/ctrl-alt-del", 0, any, most, "kept: there is no keyboard"),
		sysctl.KeptInts("kernel/printk", any, most, "kept: the kernel's messages have no levels; all go to the console", 4, 4, 1, 7),
		kept("kernel/printk_delay", 0, 0, 10000, noMessage),
		kept("kernel/printk_ratelimit", 5, 0, most, noMessage),
		kept("kernel/printk_ratelimit_burst", 10, any, most, noMessage),
		kept("kernel/print-fatal-signals", 0, any, most, noMessage),
		keptText("kernel/core_pattern", 127, "core", noCore),
		kept("kernel/core_uses_pid", 0, any, most, noCore),
		kept("kernel/core_pipe_limit", 0, 0, most, noCore),
		kept("kernel/kptr_restrict", 0, 0, 2, "kept: no file shows an address of the kernel to users"),
		kept("kernel/hung_task_timeout_secs", 120, 0, most, noDetect),
		kept("kernel/hung_task_panic", 0, 0, 1, noDetect),
		kept("kernel/hung_task_warnings", 10, -1, most, noDetect),
		kept("kernel/hung_task_check_count", 4194304, 0, most, noDetect),
		kept("kernel/watchdog", 0, 0, 1, noDetect),
		kept("kernel/watchdog_thresh", 10, 0, 60, noDetect),
		kept("kernel/nmi_watchdog", 0, 0, 1, noDetect),
		kept("kernel/soft_watchdog", 0, 0, 1, noDetect),
		kept("kernel/softlockup_panic", 0, 0, 1, noDetect),
		sysctl.Hook("kernel/sched_rr_timeslice_ms", any, most, func() int64 { return proc.RealTimeSlice() / 1e6 }, set(proc.SetRealTimeSlice)),
		sysctl.Hook("kernel/sched_rt_period_us", 1, most, proc.RealTimePeriod, proc.SetRealTimePeriod),
		sysctl.Hook("kernel/sched_rt_runtime_us", -1, most, proc.RealTimeShare, proc.SetRealTimeShare),
		kept("kernel/sched_child_runs_first", 0, any, most, noClasses),
		kept("kernel/sched_autogroup_enabled", 0, 0, 1, noClasses),
		kept("kernel/sched_deadline_period_max_us", 4194304, 0, most, noClasses),
		kept("kernel/sched_deadline_period_min_us", 100, 0, most, noClasses),
		kept("kernel/timer_migration", 1, 0, 1, noClasses),
		sysctl.Fixed("kernel/numa_balancing", 0, "always 0: there is one node"),
		kept("kernel/perf_event_paranoid", 2, any, most, noPerf),
		kept("kernel/perf_event_mlock_kb", 516, any, most, noPerf),
		kept("kernel/perf_event_max_sample_rate", 100000, 1, most, noPerf),
		kept("kernel/perf_cpu_time_max_percent", 25, 0, 100, noPerf),
		kept("kernel/unprivileged_bpf_disabled", 2, 0, 2, "kept: there is no bpf (ENOSYS)"),
		kept("kernel/keys/maxkeys", 200, 0, most, noKeys),
		kept("kernel/keys/maxbytes", 20000, 0, most, noKeys),
		kept("kernel/keys/root_maxkeys", 1000000, 0, most, noKeys),
		kept("kernel/keys/root_maxbytes", 25000000, 0, most, noKeys),
		kept("kernel/keys/gc_delay", 300, 0, most, noKeys),
		sysctl.Fixed("kernel/modules_disabled", 1, "always 1: no module can be loaded"),
		sysctl.Fixed("kernel/kexec_load_disabled", 1, "always 1: there is no kexec"),
		sysctl.Number("kernel/tainted", func() int64 { return 0 }),
		sysctl.Kept("kernel/shm_rmid_forced", 0, 0, 0, "always 0: a segment stays until it is removed"),
		sysctl.Kept("kernel/auto_msgmni", 0, 0, 1, "kept, as in Linux"),
	}
}

// keptText is a text that is only kept.
func keptText(name string, most int, value, note string) sysctl.File {
	var mu sync.Mutex
	f := sysctl.Text(name, most, func() string {
		mu.Lock()
		defer mu.Unlock()
		return value
	}, func(_ *caller.Ctx, s string) linux.Errno {
		mu.Lock()
		defer mu.Unlock()
		value = s
		return 0
	})
	f.Note = note
	return f
}

var boot struct {
	mu sync.Mutex
	id string // guarded by mu; empty until somebody asks
}

func bootID() string {
	boot.mu.Lock()
	defer boot.mu.Unlock()
	if boot.id == "" {
		boot.id = newUUID()
	}
	return boot.id
}

// RenewBootID forgets the boot's number: the machine has become another one.
func RenewBootID() {
	boot.mu.Lock()
	boot.id = ""
	boot.mu.Unlock()
}

func newUUID() string {
	var b [16]byte
	random.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// controlAltDelete is the process that the keys' signal would go to.
func controlAltDelete() sysctl.File {
	pid := new(settings.Setting)
	pid.Set(1)
	f := sysctl.Hook("kernel/cad_pid", sysctl.MinInt, sysctl.MaxInt, pid.Get, func(_ *caller.Ctx, v int64) linux.Errno {
		if v <= 0 || v > proc.MaxPIDMax || proc.Lookup(int32(v)) == nil && proc.ByTID(int32(v)) == nil {
			return linux.ESRCH
		}
		pid.Set(v)
		return 0
	})
	f.Mode = 0o600
	f.Note = "kept: there is no keyboard with these keys"
	return f
}
