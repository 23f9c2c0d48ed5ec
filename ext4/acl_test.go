package ext4

import (
	"bytes"
	"testing"

	"hardtack/abi/linux"
)

// acl is a list in a system call's form: tag, permissions, id.
func acl(entries ...[3]uint32) []byte {
	v := le.AppendUint32(nil, aclVersion)
	for _, e := range entries {
		v = le.AppendUint32(le.AppendUint16(le.AppendUint16(v, uint16(e[0])), uint16(e[1])), e[2])
	}
	return v
}

// Access control lists have another form on disk than in system calls.
func TestACL(t *testing.T) {
	m := mkfsMem(t, 16<<20, 4096)
	fs := mount(t, m)
	in := newFile(t, fs, "/file")
	list := acl([3]uint32{aclUserObj, 6, aclNobody}, [3]uint32{aclUser, 4, 1000}, [3]uint32{aclGroupObj, 4, aclNobody},
		[3]uint32{aclGroup, 7, 70000}, [3]uint32{aclMask, 7, aclNobody}, [3]uint32{aclOther, 0, aclNobody})
	const name = "system.posix_acl_access"
	must(t, fs.Setxattr(in, name, list, 0))
	got, err := fs.Getxattr(in, name)
	must(t, err)
	if !bytes.Equal(got, list) {
		t.Fatalf("%x, was %x", got, list)
	}
	raw, err := in.xattrs()
	must(t, err)
	want := []byte{1, 0, 0, 0, 1, 0, 6, 0, 2, 0, 4, 0, 0xe8, 3, 0, 0, 4, 0, 4, 0, 8, 0, 7, 0, 0x70, 0x11, 1, 0, 0x10, 0, 7, 0, 0x20, 0, 0, 0}
	if !bytes.Equal(raw[0].value, want) {
		t.Fatalf("on disk %x, want %x", raw[0].value, want)
	}
	for _, bad := range [][]byte{{}, {2, 0, 0}, list[:len(list)-1], acl([3]uint32{3, 7, 0})} {
		if err := fs.Setxattr(in, name, bad, 0); Errno(err) != linux.EINVAL {
			t.Errorf("%x: %v", bad, err)
		}
	}
	if err := fs.Setxattr(in, name, []byte{1, 0, 0, 0}, 0); Errno(err) != linux.EOPNOTSUPP {
		t.Errorf("another version: %v", err)
	}
	for _, bad := range [][]byte{{}, {2, 0, 0, 0}, want[:len(want)-2], want[:10], {1, 0, 0, 0, 3, 0, 7, 0}} {
		if _, err := aclFromDisk(bad); Errno(err) != linux.EUCLEAN {
			t.Errorf("%x on disk: %v", bad, err)
		}
	}
	must(t, fs.Put(in))
	must(t, fs.Unmount())
	wantClean(t, m)
}
