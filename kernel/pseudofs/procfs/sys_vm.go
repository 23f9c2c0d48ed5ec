package procfs

import (
	"math"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/sysctl"
	"hardtack/kernel/mm/pagecache"
)

func vmFiles() []sysctl.File {
	const any, most = sysctl.MinInt, sysctl.MaxInt
	kept := sysctl.Kept
	files := []sysctl.File{
		sysctl.Int("vm/overcommit_memory", &settings.OvercommitMemory, 0, 2),
		sysctl.Hook("vm/overcommit_ratio", 0, most, settings.OvercommitRatio.Get, set(func(v int64) {
			settings.OvercommitRatio.Set(v)
			settings.OvercommitKbytes.Set(0)
		})),
		sysctl.HookUlong("vm/overcommit_kbytes", 0, math.MaxInt64, settings.OvercommitKbytes.Get, set(func(v int64) {
			settings.OvercommitKbytes.Set(v)
			settings.OvercommitRatio.Set(0)
		})),
		sysctl.Ulong("vm/user_reserve_kbytes", &settings.UserReserve, 0, math.MaxInt64),
		sysctl.Int("vm/max_map_count", &settings.MaxMapCount, 0, most),
		minAddr(),
		sysctl.Fixed("vm/panic_on_oom", 0, "always 0: a process dies, not the machine"),
		sysctl.Int("vm/oom_kill_allocating_task", &settings.OOMKillAllocator, any, most),
		sysctl.Int("vm/dirty_expire_centisecs", &settings.DirtyExpire, 0, most),
		sysctl.Hook("vm/dirty_writeback_centisecs", 0, most, settings.DirtyWriteback.Get, set(func(v int64) {
			settings.DirtyWriteback.Set(v)
			pagecache.Tick()
		})),
		sysctl.Trigger("vm/drop_caches", 1, 4, dropCaches),
		sysctl.Trigger("vm/compact_memory", 1, 1, func(int64) linux.Errno { return 0 }),
	}
	files = append(files, share("vm/dirty_", &pagecache.Limit, 2*mem.PageSize)...)
	files = append(files, share("vm/dirty_background_", &pagecache.Background, 1)...)
	return append(files,
		kept("vm/admin_reserve_kbytes", 8192, 0, most, "kept: where overcommit_memory is 2, root has no more than others"),
		kept("vm/swappiness", 60, 0, 200, noSwap),
		kept("vm/page-cluster", 3, 0, most, noSwap),
		kept("vm/vfs_cache_pressure", 100, 0, most, "kept: names and inodes are released all at once, and only when memory is short"),
		kept("vm/min_free_kbytes", 4096, 0, most, noZones),
		kept("vm/watermark_boost_factor", 15000, 0, most, noZones),
		kept("vm/watermark_scale_factor", 10, 1, 3000, noZones),
		kept("vm/percpu_pagelist_high_fraction", 0, 0, most, noZones),
		sysctl.KeptInts("vm/lowmem_reserve_ratio", any, most, noZones, 256, 256, 32, 0, 0),
		kept("vm/extfrag_threshold", 500, 0, 1000, noZones),
		kept("vm/compaction_proactiveness", 20, 0, 100, noZones),
		kept("vm/compact_unevictable_allowed", 1, 0, 1, noZones),
		kept("vm/dirtytime_expire_seconds", 43200, 0, most, "kept: times are written with the inode"),
		kept("vm/laptop_mode", 0, 0, most, "kept: no disk here spins down"),
		kept("vm/stat_interval", 1, 0, most, "kept: /proc/vmstat is made when it is read"),
		kept("vm/oom_dump_tasks", 1, any, most, noMessage),
		sysctl.Fixed("vm/zone_reclaim_mode", 0, "always 0: there is one node"),
		sysctl.Fixed("vm/legacy_va_layout", 0, "always 0: mappings go downwards"),
		noPages("vm/nr_hugepages"), noPages("vm/nr_hugepages_mempolicy"), noPages("vm/nr_overcommit_hugepages"),
		kept("vm/hugetlb_shm_group", 0, any, most, noHugetlb),
		kept("vm/unprivileged_userfaultfd", 0, 0, 1, "kept: there is no userfaultfd (ENOSYS)"),
	)
}

// leastAddr is the least that vm.mmap_min_addr may be: a nil pointer of the kernel must
// not reach a program's page where SMAP lacks.
const leastAddr = 65536

// minAddr is vm.mmap_min_addr, for whoever may reach devices.
func minAddr() sysctl.File {
	f := sysctl.Ulong("vm/mmap_min_addr", &settings.MmapMinAddr, leastAddr, 1<<46)
	f.Value = &privileged{f.Value, creds.CapSysRawio}
	f.Note = "at least 65536, and for root too"
	return f
}

// noPages is a number of huge pages to reserve: as many as there can be, which is none.
func noPages(name string) sysctl.File {
	f := sysctl.HookUlong(name, 0, math.MaxInt64, func() int64 { return 0 }, func(*caller.Ctx, int64) linux.Errno { return 0 })
	f.Note = "stays 0 whatever is asked for, as in a Linux that finds none"
	return f
}

// share is a share of memory as two numbers, of which setting one takes the other
// back.
func share(name string, s *pagecache.Share, least int64) []sysctl.File {
	return []sysctl.File{
		sysctl.Hook(name+"ratio", 0, 100, s.Percent.Get, set(func(v int64) {
			s.Percent.Set(v)
			s.Bytes.Set(0)
		})),
		sysctl.HookUlong(name+"bytes", least, math.MaxInt64, s.Bytes.Get, set(func(v int64) {
			s.Bytes.Set(v)
			s.Percent.Set(0)
		})),
	}
}

// dropCaches frees what is in memory only to be there sooner, as far as nobody uses it:
// bit 0 for pages of files, bit 1 for names and inodes. Bit 2, on Linux, ends its
// messages, of which there are none here.
func dropCaches(n int64) linux.Errno {
	if n&1 != 0 {
		pagecache.Reclaim(1 << 30)
	}
	if n&2 != 0 {
		mem.Squeeze()
	}
	return 0
}
