// Package storagebench measures ext4 on Hardtack beside Debian's Linux: the same
// static programs, the same QEMU, disks with the same file system.
//
//	guest/storage.c  single operations and rates of the file system
//	guest/cmail.c    CMailbench, the mail server benchmark of Biscuit (Cutler et al.)
//	../peers/leveldb the suites of the thesis "Porting Go to the Barrelfish OS", with goleveldb
//	report/          the command that writes docs/bench/storage.md
package storagebench
