// Command card talks through the guest's network card, and says "card: ok" if all that it sent came
// back:
//
//	card MTU ADDRESS…
//
// At each address are an echo of TCP and one of UDP at port 7. Then it waits at port 80, of both
// families, for a connection from each of them, of which it sends back one line.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Println("card:", err)
		os.Exit(1)
	}
	fmt.Println("card: ok")
}

func run(mtu string, addresses []string) error {
	want, err := strconv.Atoi(mtu)
	if err != nil {
		return err
	}
	i, err := net.InterfaceByName("eth0")
	if err != nil || i.MTU != want {
		return fmt.Errorf("interface %+v, %v; an MTU of %d wanted", i, err, want)
	}
	if err := linkLocal(i); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	l, err := net.Listen("tcp", ":80")
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if err := stream(a); err != nil {
			return fmt.Errorf("TCP with %s: %w", a, err)
		}
		if err := datagrams(a, want); err != nil {
			return fmt.Errorf("UDP with %s: %w", a, err)
		}
	}
	fmt.Println("card: listens")
	for range addresses {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		if _, err := io.Copy(c, io.LimitReader(c, 5)); err != nil {
			return err
		}
		c.Close()
	}
	return nil
}

// linkLocal gives an interface the address of its MAC on the link, as ip addr add does.
func linkLocal(i *net.Interface) error {
	m := i.HardwareAddr
	own := []byte{0xfe, 0x80, 15: 0}
	copy(own[8:], []byte{m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]})
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	le := binary.LittleEndian
	b := le.AppendUint32(nil, 16+8+20)
	b = le.AppendUint16(b, unix.RTM_NEWADDR)
	b = le.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	b = append(b, 1, 0, 0, 0, 0, 0, 0, 0) // sequence and port
	b = append(b, unix.AF_INET6, 64, unix.IFA_F_NODAD, unix.RT_SCOPE_LINK)
	b = le.AppendUint32(b, uint32(i.Index))
	b = append(le.AppendUint16(le.AppendUint16(b, 20), unix.IFA_LOCAL), own...)
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || n < 20 {
		return fmt.Errorf("%d bytes of an answer: %w", n, err)
	}
	if e := int32(le.Uint32(answer[16:])); e != 0 {
		return unix.Errno(-e)
	}
	return nil
}

func stream(address string) error {
	c, err := net.DialTimeout("tcp", net.JoinHostPort(address, "7"), time.Minute)
	if err != nil {
		return err
	}
	defer c.Close()
	sent := make([]byte, 1<<20)
	rand.Read(sent)
	go c.Write(sent)
	got := make([]byte, len(sent))
	if n, err := io.ReadFull(c, got); err != nil {
		return fmt.Errorf("%d bytes: %w", n, err)
	}
	if !bytes.Equal(got, sent) {
		return fmt.Errorf("other bytes came back")
	}
	return nil
}

// datagrams sends the largest that a packet holds, until one comes back.
func datagrams(address string, mtu int) error {
	c, err := net.Dial("udp", net.JoinHostPort(address, "7"))
	if err != nil {
		return err
	}
	defer c.Close()
	size := mtu - 28
	if strings.Contains(address, ":") {
		size -= 20
	}
	sent := bytes.Repeat([]byte("x"), size)
	got := make([]byte, 1<<16)
	for range 30 {
		if _, err := c.Write(sent); err != nil {
			return err
		}
		c.SetReadDeadline(time.Now().Add(2 * time.Second))
		n, err := c.Read(got)
		if err == nil && bytes.Equal(got[:n], sent) {
			return nil
		}
	}
	return fmt.Errorf("nothing of %d bytes came back", size)
}
