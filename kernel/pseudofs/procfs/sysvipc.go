package procfs

import (
	"fmt"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/process/sysv"
)

func sysvShm() string {
	b := []byte("       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap\n")
	sysv.EachShm(func(id int32, d linux.ShmidDS, resident int64) {
		p := &d.Perm
		b = fmt.Appendf(b, "%10d %10d  %4o %21d %5d %5d  %5d %5d %5d %5d %5d %10d %10d %10d %21d %21d\n",
			p.Key, id, p.Mode, d.Size, d.CPID, d.LPID, d.Attached, p.UID, p.GID, p.CUID, p.CGID, d.ATime, d.DTime, d.CTime, resident*mem.PageSize, 0)
	})
	return string(b)
}

func sysvSem() string {
	b := []byte("       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n")
	sysv.EachSem(func(id int32, d linux.SemidDS) {
		p := &d.Perm
		b = fmt.Appendf(b, "%10d %10d  %4o %10d %5d %5d %5d %5d %10d %10d\n", p.Key, id, p.Mode, d.NSems, p.UID, p.GID, p.CUID, p.CGID, d.OTime, d.CTime)
	})
	return string(b)
}

func sysvMsg() string {
	b := []byte("       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime      rtime      ctime\n")
	sysv.EachMsg(func(id int32, d linux.MsqidDS) {
		p := &d.Perm
		b = fmt.Appendf(b, "%10d %10d  %4o  %10d %10d %5d %5d %5d %5d %5d %5d %10d %10d %10d\n",
			p.Key, id, p.Mode, d.Used, d.Num, d.LSPID, d.LRPID, p.UID, p.GID, p.CUID, p.CGID, d.STime, d.RTime, d.CTime)
	})
	return string(b)
}
