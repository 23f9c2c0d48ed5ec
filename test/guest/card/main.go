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
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
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
