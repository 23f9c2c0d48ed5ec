// Command peer is gRPC-Go over a Unix socket between two processes, as its users
// have it: a stream of messages each way, encoded by protocol buffers.
//
//	peer trip|flow COUNT SIZE
//
// trip: round trips of SIZE bytes; flow: one way. Prints nanoseconds an
// operation. A tenth of the work comes first and is not counted. The processes
// are not pinned: the scheduler of Go and the kernel do what they think best.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The service: what protoc would make of
//
//	service Peer {
//	  rpc Trip(stream google.protobuf.BytesValue) returns (stream google.protobuf.BytesValue);
//	  rpc Flow(stream google.protobuf.BytesValue) returns (stream google.protobuf.BytesValue);
//	}
var service = grpc.ServiceDesc{
	ServiceName: "Peer",
	HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{
		{StreamName: "Trip", Handler: handler(true), ServerStreams: true, ClientStreams: true},
		{StreamName: "Flow", Handler: handler(false), ServerStreams: true, ClientStreams: true},
	},
}

// handler answers each message, or empty ones only.
func handler(all bool) func(any, grpc.ServerStream) error {
	return func(_ any, s grpc.ServerStream) error {
		m := &wrapperspb.BytesValue{}
		for {
			if err := s.RecvMsg(m); err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
			if all || len(m.Value) == 0 {
				if err := s.SendMsg(m); err != nil {
					return err
				}
			}
		}
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run() error {
	if path := os.Getenv("PEER_SOCKET"); path != "" {
		l, err := net.Listen("unix", path)
		if err != nil {
			return err
		}
		s := grpc.NewServer()
		s.RegisterService(&service, nil)
		return s.Serve(l)
	}
	if len(os.Args) != 4 {
		return errors.New("usage: peer trip|flow COUNT SIZE")
	}
	n, err1 := strconv.Atoi(os.Args[2])
	size, err2 := strconv.Atoi(os.Args[3])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "peer-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "socket")
	kid := exec.Command("/proc/self/exe")
	kid.Env = append(os.Environ(), "PEER_SOCKET="+path)
	kid.Stderr = os.Stderr
	kid.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := kid.Start(); err != nil {
		return err
	}
	defer func() { kid.Process.Kill(); kid.Wait() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		return err
	}
	defer c.Close()
	which := map[string]int{"trip": 0, "flow": 1}[os.Args[1]]
	s, err := c.NewStream(ctx, &service.Streams[which], "/Peer/"+service.Streams[which].StreamName)
	if err != nil {
		return err
	}
	var start time.Time
	m, back := &wrapperspb.BytesValue{Value: make([]byte, size)}, &wrapperspb.BytesValue{}
	for _, count := range []int{n / 10, n} {
		start = time.Now()
		for range count {
			if err := s.SendMsg(m); err != nil {
				return err
			}
			if which == 0 {
				if err := s.RecvMsg(back); err != nil {
					return err
				}
			}
		}
		if which == 1 {
			if err := s.SendMsg(&wrapperspb.BytesValue{}); err != nil {
				return err
			}
			if err := s.RecvMsg(back); err != nil {
				return err
			}
		}
	}
	fmt.Printf("%.2f\n", float64(time.Since(start).Nanoseconds())/float64(n))
	return nil
}
