// Package ext4 is the file system of disks.
package ext4
