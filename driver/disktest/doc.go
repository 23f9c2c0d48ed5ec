// Package disktest tests the disk drivers against QEMU's devices: the same
// tests for virtio over both transports, AHCI and NVMe. It has nothing else.
package disktest
