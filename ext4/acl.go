package ext4

import "hardtack/abi/linux"

// Access control lists are attributes with their own format on disk, unlike that of
// getxattr(2) and setxattr(2): entries for the owner, the group, the mask and others have
// no ID.
const (
	aclIndexAccess  = 2
	aclIndexDefault = 3

	aclVersion     = 2 // of system calls: header of 4 bytes, entries of 8 (tag, permissions, id)
	aclDiskVersion = 1 // on disk: header of 4 bytes, entries of 4 or 8

	aclUserObj  = 0x01
	aclUser     = 0x02
	aclGroupObj = 0x04
	aclGroup    = 0x08
	aclMask     = 0x10
	aclOther    = 0x20

	aclNobody = 0xffffffff
)

func isACL(index uint8) bool { return index == aclIndexAccess || index == aclIndexDefault }

// aclToDisk converts a list from the system calls' format to the disk's.
func aclToDisk(v []byte) ([]byte, error) {
	if len(v) < 4 || (len(v)-4)%8 != 0 {
		return nil, linux.EINVAL
	}
	if le.Uint32(v) != aclVersion {
		return nil, linux.EOPNOTSUPP
	}
	d := le.AppendUint32(nil, aclDiskVersion)
	for e := v[4:]; len(e) > 0; e = e[8:] {
		d = append(d, e[:4]...)
		switch le.Uint16(e) {
		case aclUser, aclGroup:
			d = append(d, e[4:8]...)
		case aclUserObj, aclGroupObj, aclMask, aclOther:
		default:
			return nil, linux.EINVAL
		}
	}
	return d, nil
}

// aclFromDisk converts in the other direction.
func aclFromDisk(d []byte) ([]byte, error) {
	if len(d) < 4 || le.Uint32(d) != aclDiskVersion {
		return nil, corrupt("an access control list of an unknown kind")
	}
	v := le.AppendUint32(nil, aclVersion)
	for e := d[4:]; len(e) > 0; {
		if len(e) < 4 {
			return nil, corrupt("an access control list ends within an entry")
		}
		tag, id, n := le.Uint16(e), uint32(aclNobody), 4
		switch tag {
		case aclUser, aclGroup:
			if n = 8; len(e) < n {
				return nil, corrupt("an access control list ends within an entry")
			}
			id = le.Uint32(e[4:])
		case aclUserObj, aclGroupObj, aclMask, aclOther:
		default:
			return nil, corrupt("an access control list has an entry of kind %#x", tag)
		}
		v = le.AppendUint32(append(v, e[:4]...), id)
		e = e[n:]
	}
	return v, nil
}
