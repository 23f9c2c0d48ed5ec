// Package creds has credentials: user and group IDs, capabilities, and what they permit.
package creds

import (
	"slices"

	"hardtack/kernel/base/accounts"
)

// Cred is a set of credentials; immutable once published by SetCred.
type Cred struct {
	UID, EUID, SUID, FSUID uint32
	GID, EGID, SGID, FSGID uint32
	Groups                 []uint32
	// Capability sets, bit n for CAP n (linux/capability.h).
	Permitted, Effective, Inheritable, Bounding, Ambient uint64
	NoNewPrivs                                           bool
	// SecureBits say what root's user ID no longer means (SECBIT_*).
	SecureBits uint32
	// User is the account of UID; SetCred sees to it.
	User *accounts.User
}

// Bits of SecureBits (linux/securebits.h). The bit above each locks it.
const (
	SecureNoRoot         = 1 << 0 // exec by root gives no capabilities
	SecureNoSetuidFixup  = 1 << 2 // user IDs and capabilities change apart
	SecureKeepCaps       = 1 << 4 // permitted ones outlast the last user ID 0
	SecureNoAmbientRaise = 1 << 6

	SecureBits  = SecureNoRoot | SecureNoSetuidFixup | SecureKeepCaps | SecureNoAmbientRaise
	SecureLocks = SecureBits << 1
)

// Secure reports whether one of the secure bits is set.
func (c *Cred) Secure(bit uint32) bool { return c.SecureBits&bit != 0 }

// AllCaps has every capability up to CAP_CHECKPOINT_RESTORE.
const AllCaps uint64 = 1<<41 - 1

// RootCred is the first process's.
var RootCred = Cred{User: accounts.Root, Permitted: AllCaps, Effective: AllCaps, Bounding: AllCaps}

// Capability numbers the kernel asks for (linux/capability.h).
const (
	CapChown             = 0
	CapDacOverride       = 1
	CapDacReadSearch     = 2
	CapFowner            = 3
	CapFsetid            = 4
	CapKill              = 5
	CapSetgid            = 6
	CapSetuid            = 7
	CapSetpcap           = 8
	CapLinuxImmutable    = 9
	CapNetBindService    = 10
	CapNetBroadcast      = 11
	CapNetAdmin          = 12
	CapNetRaw            = 13
	CapIPCLock           = 14
	CapIPCOwner          = 15
	CapSysRawio          = 17
	CapSysChroot         = 18
	CapSysPtrace         = 19
	CapSysAdmin          = 21
	CapSysBoot           = 22
	CapSysNice           = 23
	CapSysResource       = 24
	CapSysTime           = 25
	CapSysTTYConfig      = 26
	CapMknod             = 27
	CapLease             = 28
	CapAuditControl      = 30
	CapSetfcap           = 31
	CapMACOverride       = 32
	CapSyslog            = 34
	CapWakeAlarm         = 35
	CapCheckpointRestore = 40
)

// Has reports whether a capability is effective.
func (c *Cred) Has(capability uint) bool { return c.Effective>>capability&1 != 0 }

// InGroup reports whether gid is the file-system group or a supplementary one.
func (c *Cred) InGroup(gid uint32) bool {
	return c.FSGID == gid || slices.Contains(c.Groups, gid)
}
