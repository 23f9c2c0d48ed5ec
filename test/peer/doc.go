// Package peer has Linux as the other side of ext4: disks go back and forth
// between our library on the host and Debian's kernel in QEMU, and both must see
// the same files. One boot of Linux serves many disks.
//
//	guest/peer.c  what Linux runs
//	list.go       the same list of a disk's files by our library
//	farm.go       many disks in one image, and the boot
//	change.go     random changes by our library
package peer
