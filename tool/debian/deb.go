package debian

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/ulikunitz/xz"

	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
)

// A .deb is an ar archive: "!<arch>\n", then members of a 60-byte header (the
// name in the first 16, the size in ten decimal digits at 48) and content
// padded to even. The member data.tar.* has the package's files, control.tar.* what dpkg is
// told, with maintainer scripts among it.
const (
	arMagic  = "!<arch>\n"
	arHeader = 60
)

// dataMax bounds what one package unpacks to.
const dataMax = 8 << 30

// unpack makes the plain tar of a package's files.
func unpack(file string) (*io.SectionReader, error) { return unpackMember(file, "data.tar") }

// unpackMember makes the plain tar of a member whose name begins so.
func unpackMember(file, member string) (*io.SectionReader, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	name, data, err := findMember(io.NewSectionReader(f, 0, info.Size()), member)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(name, ".xz") {
		return unzip(data)
	}
	r, err := xz.NewReader(bufio.NewReaderSize(data, 64<<10))
	if err != nil {
		return nil, fault.Bad("damaged package: %v", err)
	}
	plain, err := rootfs.Spool(r, dataMax)
	if err != nil && fault.Status(err) == fault.Host {
		var p *fs.PathError
		if !errors.As(err, &p) { // not the scratch file's fault
			return nil, fault.Bad("damaged package: %v", err)
		}
	}
	return plain, err
}

// unzip makes the plain bytes independent of the package's file, which is
// closed while the tree still uses them.
func unzip(data *io.SectionReader) (*io.SectionReader, error) {
	plain, err := rootfs.Decompress(data, dataMax)
	if err != nil || plain != data {
		return plain, err
	}
	return rootfs.Spool(data, dataMax)
}

// findMember is the member whose name begins so.
func findMember(r *io.SectionReader, member string) (string, *io.SectionReader, error) {
	magic := make([]byte, len(arMagic))
	if _, err := r.ReadAt(magic, 0); err != nil || string(magic) != arMagic {
		return "", nil, fault.Bad("not a Debian package")
	}
	for off := int64(len(arMagic)); ; {
		var head [arHeader]byte
		if _, err := r.ReadAt(head[:], off); err != nil {
			return "", nil, fault.Bad("damaged package: no %s in it", member)
		}
		name := strings.TrimRight(strings.TrimSpace(string(head[:16])), "/")
		size, err := strconv.ParseInt(strings.TrimSpace(string(head[48:58])), 10, 64)
		off += arHeader
		if err != nil || size < 0 || size > r.Size()-off {
			return "", nil, fault.Bad("damaged package: member %q", name)
		}
		if strings.HasPrefix(name, member) {
			return name, io.NewSectionReader(r, off, size), nil
		}
		off += size + size&1
	}
}
