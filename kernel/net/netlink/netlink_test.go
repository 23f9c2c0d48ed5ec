package netlink_test

import (
	"crypto/rand"
	"encoding/binary"
	"os"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netlink"
	"hardtack/kernel/net/sock"
	. "hardtack/kernel/net/socktest"
)

func TestMain(m *testing.M) {
	n := inet.Init(inet.Config{Rand: rand.Reader})
	sock.Register(linux.AF_INET, n.Socket, nil)
	sock.Register(linux.AF_NETLINK, netlink.Create, nil)
	sock.DeviceIoctl.Set(n.DeviceIoctl)
	inet.Changed.Set(netlink.Announce)
	os.Exit(m.Run())
}

type message struct {
	typ  uint16
	body []byte
}

// ask sends a request and returns the answers, up to DONE or an error.
func ask(t *T, f *vfs.File, typ, flags uint16, body ...byte) (out []message) {
	req := binary.LittleEndian.AppendUint32(nil, uint32(16+len(body)))
	req = binary.LittleEndian.AppendUint16(req, typ)
	req = binary.LittleEndian.AppendUint16(req, flags|linux.NLM_F_REQUEST)
	req = binary.LittleEndian.AppendUint32(req, 77)
	req = binary.LittleEndian.AppendUint32(req, 0)
	t.Write(f, string(append(req, body...)))
	for {
		s, _, e := t.Recv(f, 8192, 0)
		t.OK(e, "recv")
		for b := []byte(s); len(b) > 0; {
			n := binary.LittleEndian.Uint32(b)
			if seq := binary.LittleEndian.Uint32(b[8:]); seq != 77 {
				t.Fatal("sequence number", seq)
			}
			m := message{binary.LittleEndian.Uint16(b[4:]), b[16:n]}
			out = append(out, m)
			if m.typ == linux.NLMSG_DONE || m.typ == linux.NLMSG_ERROR || flags&linux.NLM_F_DUMP == 0 {
				return out
			}
			b = b[(n+3)&^3:]
		}
	}
}

// attrs decodes attributes.
func attrs(b []byte) map[uint16]string {
	m := map[uint16]string{}
	for len(b) >= 4 {
		n := binary.LittleEndian.Uint16(b)
		m[binary.LittleEndian.Uint16(b[2:])] = string(b[4:n])
		b = b[min(int(n+3)&^3, len(b)):]
	}
	return m
}

func TestRoute(tt *testing.T) {
	n := inet.Default
	t := New(tt)
	f := t.Socket(linux.AF_NETLINK, linux.SOCK_RAW, linux.NETLINK_ROUTE)
	var a sock.Addr
	t.OK(S(f).Bind(t.C, f, nil, Bytes([]byte{linux.AF_NETLINK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})), "bind")
	t.OK(S(f).LocalAddr(&a), "getsockname")
	if binary.LittleEndian.Uint32(a.B[4:]) != 100 {
		t.Fatal(a.Bytes())
	}
	links := ask(t, f, linux.RTM_GETLINK, linux.NLM_F_DUMP, make([]byte, 16)...)
	if len(links) != 2 || links[0].typ != linux.RTM_NEWLINK || links[1].typ != linux.NLMSG_DONE {
		t.Fatal(links)
	}
	if at := attrs(links[0].body[16:]); at[linux.IFLA_IFNAME] != "lo\x00" || at[linux.IFLA_MTU] != "\x00\x00\x01\x00" || len(at[linux.IFLA_STATS64]) != 192 {
		t.Fatal(at)
	}
	addrs := ask(t, f, linux.RTM_GETADDR, linux.NLM_F_DUMP, 0)
	if len(addrs) != 3 || attrs(addrs[0].body[8:])[linux.IFA_LOCAL] != "\x7f\x00\x00\x01" || addrs[1].body[0] != linux.AF_INET6 {
		t.Fatal(addrs)
	}
	if v4 := ask(t, f, linux.RTM_GETADDR, linux.NLM_F_DUMP, linux.AF_INET); len(v4) != 2 {
		t.Fatal(v4)
	}
	n.Stack.AddRoute(tcpip.Route{Destination: mustSubnet("\x0a\x00\x00\x00", "\xff\x00\x00\x00"), NIC: 1, Gateway: tcpip.AddrFrom4([4]byte{127, 0, 0, 9})})
	if r := ask(t, f, linux.RTM_GETROUTE, linux.NLM_F_DUMP, linux.AF_INET6); len(r) != 2 {
		t.Fatal(r)
	}
	lo := append(make([]byte, 16), 7, 0, linux.IFLA_IFNAME, 0, 'l', 'o', 0, 0)
	if one := ask(t, f, linux.RTM_GETLINK, 0, lo...); one[0].typ != linux.RTM_NEWLINK {
		t.Fatal(one)
	}
	lo[20] = 'x'
	if one := ask(t, f, linux.RTM_GETLINK, 0, lo...); one[0].typ != linux.NLMSG_ERROR || int32(binary.LittleEndian.Uint32(one[0].body)) != -int32(linux.ENODEV) {
		t.Fatal(one)
	}
	if no := ask(t, f, linux.RTM_NEWLINK, linux.NLM_F_ACK, make([]byte, 16)...); no[0].typ != linux.NLMSG_ERROR || int32(binary.LittleEndian.Uint32(no[0].body)) != -int32(linux.ENODEV) {
		t.Fatal(no)
	}
	// Broken requests have no answer and do no harm.
	t.Write(f, "short")
	t.Write(f, "\xff\xff\xff\xff123456789012")
	NonBlock(f)
	_, e := t.ReadErr(f, 10)
	t.Want(e, linux.EAGAIN, "answer to a broken request")
	f.Put()
	_, e = sock.New(t.C, linux.AF_NETLINK, linux.SOCK_RAW, 9, 0)
	t.Want(e, linux.EPROTONOSUPPORT, "another family")
}

func mustSubnet(a, m string) tcpip.Subnet {
	s, err := tcpip.NewSubnet(tcpip.AddrFrom4Slice([]byte(a)), tcpip.MaskFrom(m))
	if err != nil {
		panic(err)
	}
	return s
}
