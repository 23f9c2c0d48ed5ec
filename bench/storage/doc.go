// Package storagebench measures ext4 on Hardtack beside Debian's Linux: the same
// static programs, the same QEMU, disks with the same file system.
//
//	guest/storage.c  single operations and rates of the file system
//	guest/cmail.c    CMailbench of paper 003
//	../peers/leveldb the suites of paper 000, with goleveldb
//	report/          the command that writes docs/bench/storage.md
package storagebench
