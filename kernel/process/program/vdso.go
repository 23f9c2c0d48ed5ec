package program

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/vdso"
	"hardtack/kernel/mm/vm"
)

// mapVDSO maps the clock's pages into a new program and returns where the ELF
// header lies; 0 where there are none (the host's tests).
func mapVDSO(c *caller.Ctx, s *vm.Space) (uint64, linux.Errno) {
	if vdso.Pages()[0] == 0 {
		return 0, 0
	}
	data := vm.MapArgs{
		Length: vdso.ImageOffset + 4096, Prot: linux.PROT_READ, Flags: linux.MAP_PRIVATE,
		Object: vdso.Object(), NoWrite: true, Special: true, Name: "[vvar]",
	}
	at, e := s.Mmap(c, &data)
	if e != 0 {
		return 0, e
	}
	image := vm.MapArgs{
		Addr: at + vdso.ImageOffset, Length: 4096, Offset: vdso.ImageOffset,
		Prot: linux.PROT_READ | linux.PROT_EXEC, Flags: linux.MAP_PRIVATE | linux.MAP_FIXED,
		Object: vdso.Object(), Special: true, Name: "[vdso]",
	}
	if _, e := s.Mmap(c, &image); e != 0 {
		return 0, e
	}
	return at + vdso.ImageOffset, 0
}
