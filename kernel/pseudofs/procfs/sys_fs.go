package procfs

import (
	"math"
	"math/bits"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/sysctl"
	"hardtack/kernel/fd/epoll"
	"hardtack/kernel/fs/vfs"
)

// Reasons why a number is only kept.
const (
	noAIO     = "kept: there is no asynchronous I/O (ENOSYS), so there is nothing to limit"
	noCore    = "kept: no core dumps are written"
	noDetect  = "kept: there is no such detector, as in a Linux without it"
	noSwap    = "kept: there is no swap space, and without it Linux's has no effect either"
	noZones   = "kept: memory has no zones and no free lists per CPU that it would tune"
	noKeys    = "kept: there are no keyrings (ENOSYS), so there is nothing to limit"
	noPerf    = "kept: there is no perf_event_open (ENOSYS), so there is nothing to limit"
	noClasses = "kept: there is nothing like it here (kernel/process/proc/turn.go)"
	noMessage = "kept: the kernel has no such message"
	noHugetlb = "kept: there are no huge pages to give"
)

// set stores a number by a function.
func set(f func(int64)) func(*caller.Ctx, int64) linux.Errno {
	return func(_ *caller.Ctx, v int64) linux.Errno { f(v); return 0 }
}

func fsFiles() []sysctl.File {
	return []sysctl.File{
		sysctl.Kept("fs/aio-max-nr", 65536, 0, sysctl.MaxInt, noAIO),
		sysctl.Number("fs/aio-nr", func() int64 { return 0 }),
		sysctl.Int("fs/dir-notify-enable", &settings.DirNotifyEnable, 0, 1),
		sysctl.HookUlong("fs/epoll/max_user_watches", 0, math.MaxInt64/2, epoll.MaxWatches, set(epoll.SetMaxWatches)),
		sysctl.HookUlong("fs/file-max", 0, math.MaxInt64, func() int64 { _, most := vfs.Files(); return most }, set(vfs.SetMaxFiles)),
		sysctl.Numbers("fs/file-nr", 3, func(v []int64) { v[0], v[2] = vfs.Files() }),
		sysctl.Int("fs/inotify/max_queued_events", &settings.InotifyQueue, 0, sysctl.MaxInt),
		sysctl.Hook("fs/inotify/max_user_instances", 0, sysctl.MaxInt, settings.InotifyInstances.Get, set(vfs.SetInotifyInstances)),
		sysctl.Hook("fs/inotify/max_user_watches", 0, sysctl.MaxInt, settings.InotifyWatches.Get, set(vfs.SetInotifyWatches)),
		sysctl.Int("fs/lease-break-time", &settings.LeaseBreakTime, sysctl.MinInt, sysctl.MaxInt),
		sysctl.Int("fs/leases-enable", &settings.LeasesEnable, 0, 1),
		sysctl.Uint("fs/mount-max", &settings.MountMax, 1, math.MaxUint32),
		sysctl.Uint("fs/nr_open", &settings.NrOpen, 64, vfs.MaxFDs),
		sysctl.Kept("fs/overflowuid", 65534, 0, 65535, "kept: no file system here has IDs of 16 bits"),
		sysctl.Kept("fs/overflowgid", 65534, 0, 65535, "kept: no file system here has IDs of 16 bits"),
		sysctl.HookUint("fs/pipe-max-size", 0, math.MaxUint32, settings.PipeMaxSize.Get, setPipeMaxSize),
		sysctl.Ulong("fs/pipe-user-pages-hard", &settings.PipePagesHard, 0, math.MaxInt64),
		sysctl.Ulong("fs/pipe-user-pages-soft", &settings.PipePagesSoft, 0, math.MaxInt64),
		sysctl.Int("fs/protected_fifos", &settings.ProtectedFifos, 0, 2),
		sysctl.Int("fs/protected_hardlinks", &settings.ProtectedHardlinks, 0, 1),
		sysctl.Int("fs/protected_regular", &settings.ProtectedRegular, 0, 2),
		sysctl.Int("fs/protected_symlinks", &settings.ProtectedSymlinks, 0, 1),
		sysctl.Int("fs/suid_dumpable", &settings.SuidDumpable, 0, 2),
	}
}

// userFiles bound what a user may have of each kind.
func userFiles() []sysctl.File {
	files := []sysctl.File{
		sysctl.Hook("user/max_inotify_instances", 0, sysctl.MaxInt, settings.InotifyInstances.Get, set(vfs.SetInotifyInstances)),
		sysctl.Hook("user/max_inotify_watches", 0, sysctl.MaxInt, settings.InotifyWatches.Get, set(vfs.SetInotifyWatches)),
	}
	for _, n := range []string{"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"} {
		files = append(files, sysctl.Fixed("user/max_"+n+"_namespaces", 0, "always 0: namespaces cannot be made"))
	}
	return files
}

// setPipeMaxSize rounds to a size that a pipe can have.
func setPipeMaxSize(_ *caller.Ctx, v int64) linux.Errno {
	switch {
	case v > 1<<31:
		return linux.EINVAL
	case v < mem.PageSize:
		v = mem.PageSize
	}
	settings.PipeMaxSize.Set(1 << bits.Len64(uint64(v-1)))
	return 0
}
