package virtio_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/driver/virtio"
	"hardtack/driver/virtio/net"
	"hardtack/kernel/net/netdev"
)

// inNamespace gives the test's thread a network of its own, with which it ends.
func inNamespace(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // and never unlocked: the thread dies with the goroutine
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("no network namespace (needs root): %v", err)
	}
	f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no tap devices: %v", err)
	}
	f.Close()
}

// packetSocket opens the host's end of a tap device, with offload headers.
func packetSocket(t *testing.T, name string) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, int(htons(unix.ETH_P_IP)))
	if err != nil {
		t.Skipf("no packet sockets: %v", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	var index int
	for end := time.Now().Add(patience); time.Now().Before(end); {
		ifr, _ := unix.NewIfreq(name)
		if unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, ifr) == nil {
			index = int(ifr.Uint32())
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	ifr, _ := unix.NewIfreq(name)
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil || index == 0 {
		t.Fatalf("%s: %v", name, err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		t.Skipf("no offload headers on packet sockets: %v", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_IP), Ifindex: index}); err != nil {
		t.Fatal(err)
	}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(patience / time.Second)})
	return fd
}

func htons(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}

// segment returns a TCP segment with n bytes of data and only the pseudo
// header's sum as checksum.
func segment(dst, src [6]byte, n int, flow byte) []byte {
	b := make([]byte, 54+n)
	copy(b, dst[:])
	copy(b[6:], src[:])
	copy(b[12:], []byte{8, 0, 0x45, 0})
	binary.BigEndian.PutUint16(b[16:], uint16(40+n))
	copy(b[20:], []byte{0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, flow})
	binary.BigEndian.PutUint16(b[24:], ^sum(b[14:34], 0))
	copy(b[34:], []byte{0x10, 0, 0x20, flow, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff})
	for i := 54; i < len(b); i++ {
		b[i] = byte(i * 11 >> 2)
	}
	binary.BigEndian.PutUint16(b[50:], sum(b[26:34], uint32(6+20+n)))
	return b
}

func sum(b []byte, s uint32) uint16 {
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) > 0 {
		s += uint32(b[0]) << 8
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// A tap device offers all offloads and several queues: segments of 30 KB cross
// in both directions, uncut and with unfinished checksums.
func TestQEMUOffloads(t *testing.T) {
	for _, w := range wirings[:2] {
		t.Run(w.name, func(t *testing.T) {
			inNamespace(t)
			pairs, host, card := 1, "", ""
			if w.bus == "pci" {
				pairs, host, card = 2, ",queues=2", ",mq=on,vectors=6"
			}
			m, list := w.open(t, "-netdev", "tap,id=n,ifname=tap0,script=no,downscript=no,vnet_hdr=on"+host,
				"-device", "virtio-net-"+w.bus+",netdev=n,mac=52:54:00:00:00:09"+card)
			if len(list) == 0 {
				t.Skip("QEMU cannot make a tap device")
			}
			fd := packetSocket(t, "tap0")
			d, err := net.New(m, only(t, list, virtio.TypeNet), 2)
			if err != nil {
				t.Fatal(err)
			}
			if all := netdev.TxChecksum | netdev.TSO4 | netdev.TSO6 | netdev.RxChecksum | netdev.LRO; d.Features() != all {
				t.Errorf("features %b, want %b", d.Features(), all)
			}
			if d.Pairs() != pairs {
				t.Errorf("%d queue pairs, want %d", d.Pairs(), pairs)
			}
			got := make(chan netdev.Frame, 100)
			d.SetReceiver(func(batch []netdev.Frame) {
				for _, f := range batch {
					b := bytes.Join(f.Parts, nil)
					if len(b) > 34 && b[12] == 8 && b[23] == 6 {
						f.Parts = [][]byte{b}
						got <- f
					}
				}
			})
			peer := [6]byte{2, 0, 0, 0, 0, 1}

			// Out, on both queues.
			for flow := range byte(8) {
				b := segment(peer, d.MAC(), 30000, flow)
				f := netdev.Frame{Parts: [][]byte{b[:54], b[54:]}, Hash: uint32(flow), NeedsChecksum: true, ChecksumStart: 34, ChecksumOffset: 16,
					GSO: netdev.GSOTCPv4, HeaderLen: 54, SegmentSize: 1448}
				if d.Transmit([]netdev.Frame{f}) != 1 {
					t.Fatal("not taken")
				}
				in := make([]byte, 70000)
				n, err := unix.Read(fd, in)
				if err != nil {
					t.Fatalf("flow %d: %v", flow, err)
				}
				const header = 10 // struct virtio_net_hdr without num_buffers
				if !bytes.Equal(in[header:n], b) || in[0]&1 == 0 || in[1] != 1 || binary.LittleEndian.Uint16(in[4:]) != 1448 {
					t.Errorf("flow %d: %d bytes arrive, header % x", flow, n, in[:header])
				}
			}

			// In.
			for flow := range byte(8) {
				b := segment(d.MAC(), peer, 30000, flow)
				h := []byte{1, 1, 54, 0, 0, 0, 34, 0, 16, 0}
				binary.LittleEndian.PutUint16(h[4:], 1448)
				if _, err := unix.Write(fd, append(h, b...)); err != nil {
					t.Fatal(err)
				}
				var f netdev.Frame
				select {
				case f = <-got:
				case <-time.After(patience):
					t.Fatalf("flow %d: nothing arrives", flow)
				}
				if !bytes.Equal(f.Parts[0], b) || !f.NeedsChecksum || f.ChecksumStart != 34 || f.ChecksumOffset != 16 || f.GSO != netdev.GSOTCPv4 || f.SegmentSize != 1448 {
					f.Parts = nil
					t.Errorf("flow %d: %+v", flow, f)
				}
			}
		})
	}
}
