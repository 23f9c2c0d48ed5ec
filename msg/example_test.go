package msg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"sync"

	"hardtack/idl/bank"
	"hardtack/idl/ping"
	"hardtack/msg"
)

// The examples speak the interface of idl/bank.if:
//
//	rpc open(in String owner[64], out uint64 account);
//	rpc withdraw(in uint64 account, in uint64 cents, out uint64 left);
//	rpc receipt(in uint64 account, out cap paper);
//	call cheer(uint32 times);
//	response changed(uint64 account, uint64 cents);
//	message ledger(uint8 page[n, 4000]);
//	…

// clerk is a handler of calls. Those that it does not define are bank.Handler's, which
// is nil: examples do not call them.
type clerk struct{ bank.Handler }

func (clerk) Open(_ context.Context, in bank.OpenCall) (bank.OpenReply, error) {
	return bank.OpenReply{Account: uint64(len(in.Owner))}, nil
}

func (clerk) Withdraw(_ context.Context, in bank.WithdrawCall) (out bank.WithdrawReply, err error) {
	if in.Cents > 1000 {
		return out, fmt.Errorf("%d cents: %w", in.Cents, bank.ErrNotEnough)
	}
	return bank.WithdrawReply{Left: 1000 - in.Cents}, nil
}

func (clerk) Receipt(context.Context, bank.ReceiptCall) (out bank.ReceiptReply, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return out, err
	}
	_, err = w.WriteString("paid")
	out.Paper.File = r // closed here once it was sent
	return out, errors.Join(err, w.Close())
}

// pair is a connection between two goroutines.
func pair() (client, server *bank.Conn) {
	client, server, err := bank.Pair(context.Background(), nil)
	if err != nil {
		log.Fatal(err)
	}
	return client, server
}

// names is a directory of names that only this example sees. Programs leave
// Options.Resolver out.
func names() (o *msg.Options, remove func()) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	return &msg.Options{Resolver: msg.Directory(dir)}, func() { os.RemoveAll(dir) }
}

// A server and a client, which are processes of their own usually.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	o, remove := names()
	defer remove()

	server, err := bank.Export(ctx, "bank", o)
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	go server.Serve(ctx, func(*bank.Conn) bank.Handler { return clerk{} })

	conn, err := bank.Connect(ctx, "bank", o)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	client := bank.NewClient(conn, nil)
	reply, err := client.Withdraw(ctx, bank.WithdrawCall{Account: 7, Cents: 300})
	fmt.Println(reply.Left, err)
	// Output: 700 <nil>
}

// A handler's error is the caller's, in another process too.
func ExampleCallError() {
	ctx := context.Background()
	conn, server := pair()
	defer conn.Close()
	go server.Serve(ctx, clerk{})

	_, err := bank.NewClient(conn, nil).Withdraw(ctx, bank.WithdrawCall{Account: 7, Cents: 5000})
	fmt.Println(errors.Is(err, bank.ErrNotEnough))
	var call *msg.CallError
	if errors.As(err, &call) {
		fmt.Println(call.Call, "failed with", call.Name)
		fmt.Println(call.Text)
	}
	// Output:
	// true
	// bank.withdraw failed with not_enough
	// 5000 cents: the account holds less than that
}

// What is longer than the interface allows is not sent.
func Example_tooLarge() {
	ctx := context.Background()
	conn, server := pair()
	defer conn.Close()
	go server.Serve(ctx, clerk{})

	long := make([]byte, 65)
	_, err := bank.NewClient(conn, nil).Open(ctx, bank.OpenCall{Owner: string(long)})
	fmt.Println(errors.Is(err, msg.ErrTooLarge))
	// Output: true
}

// A caller that gives up ends the context of the handler.
func Example_deadline() {
	ctx, cancel := context.WithCancel(context.Background())
	conn, server := pair()
	defer conn.Close()
	gone := make(chan error, 1)
	go server.Serve(context.Background(), waiter{started: cancel, gone: gone})

	_, err := bank.NewClient(conn, nil).Watch(ctx, bank.WatchCall{Account: 7})
	fmt.Println(errors.Is(err, context.Canceled))
	fmt.Println(errors.Is(<-gone, msg.ErrGivenUp))
	// Output:
	// true
	// true
}

// waiter has its caller give up, and waits for that.
type waiter struct {
	bank.Handler
	started func()
	gone    chan<- error
}

func (w waiter) Watch(ctx context.Context, _ bank.WatchCall) (out bank.WatchReply, err error) {
	w.started()
	<-ctx.Done()
	w.gone <- context.Cause(ctx)
	return out, ctx.Err()
}

// A client that is sent messages unasked has a goroutine in Run.
func Example_unasked() {
	ctx := context.Background()
	conn, server := pair()
	changes := make(chan uint64)
	client := bank.NewClient(conn, func(m bank.Msg) {
		if m, ok := m.(*bank.Changed); ok {
			changes <- m.Cents
		}
	})
	go client.Run(ctx)
	if err := server.SendChanged(ctx, &bank.Changed{Account: 7, Cents: 250}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-changes)
	conn.Close()
	// Output: 250
}

// The direct form: one goroutine sends and one receives, and nothing is allocated for a
// message.
func ExampleConn() {
	ctx := context.Background()
	client, server := pair()
	go func() {
		defer client.Close() // all that was sent before arrives
		for n := range uint32(1000) {
			if err := client.SendCheer(ctx, &bank.Cheer{Times: n}); err != nil {
				log.Fatal(err)
			}
		}
	}()
	sum := uint32(0)
	for {
		m, err := server.Recv(ctx)
		if errors.Is(err, msg.ErrPeerClosed) {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		if m, ok := m.(*bank.Cheer); ok { // valid until the next Recv
			sum += m.Times
		}
	}
	fmt.Println(sum)
	// Output: 499500
}

// All is Recv until the other end closes.
func ExampleAll() {
	ctx := context.Background()
	client, server := pair()
	go func() {
		defer client.Close()
		client.SendCheer(ctx, &bank.Cheer{Times: 1})
		client.SendCheer(ctx, &bank.Cheer{Times: 2})
	}()
	for m, err := range server.All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if m, ok := m.(*bank.Cheer); ok {
			fmt.Println(m.Times)
		}
	}
	// Output:
	// 1
	// 2
}

// Many goroutines send on one connection.
func ExampleConn_Share() {
	ctx := context.Background()
	client, server := pair()
	client.Share()
	var senders sync.WaitGroup
	for n := range uint32(10) {
		senders.Go(func() {
			if err := client.SendCheer(ctx, &bank.Cheer{Times: n}); err != nil {
				log.Fatal(err)
			}
		})
	}
	sum := uint32(0)
	for range 10 {
		m, err := server.Recv(ctx)
		if err != nil {
			log.Fatal(err)
		}
		if m, ok := m.(*bank.Cheer); ok {
			sum += m.Times
		}
	}
	senders.Wait()
	fmt.Println(sum)
	// Output: 45
}

// The channel form, for programs that live in select. Each message has memory of its own.
func ExampleChannels() {
	client, server := pair()
	here, there := client.Channels(), server.Channels()
	here.Send <- &bank.Cheer{Times: 3}
	close(here.Send) // closes the connection once that was sent
	for m := range there.Recv {
		if m, ok := m.(*bank.Cheer); ok {
			fmt.Println(m.Times)
		}
	}
	close(there.Send) // this end closes too
	for err := range there.Errs {
		fmt.Println(err)
	}
	// Output: 3
}

// Bytes of any length travel as a stream of messages.
func ExampleNewWriter() {
	ctx := context.Background()
	client, server := pair()
	go func() {
		w := client.LedgerWriter(ctx)
		for i := range 3000 {
			fmt.Fprintln(w, "line", i)
		}
		w.Close() // the end of the stream; the connection stays
	}()
	text, err := io.ReadAll(server.LedgerReader(ctx, nil))
	fmt.Println(len(text), err)
	// Output: 28890 <nil>
}

// A file travels in a message.
func ExampleCap() {
	ctx := context.Background()
	conn, server := pair()
	defer conn.Close()
	go server.Serve(ctx, clerk{})

	receipt, err := bank.NewClient(conn, nil).Receipt(ctx, bank.ReceiptCall{Account: 7})
	if err != nil {
		log.Fatal(err)
	}
	defer receipt.Paper.Close()
	text, err := io.ReadAll(receipt.Paper.File)
	fmt.Println(receipt.Paper.File.Name(), string(text), err)
	// Output: paper paid <nil>
}

// An end of one connection travels over another.
func ExampleEnd() {
	ctx := context.Background()
	client, server := pair()
	defer client.Close()

	mine, theirs, err := ping.Pair(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	end, err := theirs.End()
	if err != nil {
		log.Fatal(err)
	}
	if err := client.SendLetter(ctx, &bank.Letter{Envelope: msg.Cap{End: end}}); err != nil {
		log.Fatal(err)
	}

	m, err := server.Recv(ctx)
	if err != nil {
		log.Fatal(err)
	}
	letter := m.(*bank.Letter)
	adopted, err := ping.Adopt(letter.Envelope.End, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := adopted.SendPong(ctx, &ping.Pong{MsgID: 42}); err != nil {
		log.Fatal(err)
	}
	answer, err := mine.Recv(ctx)
	fmt.Printf("%T %v\n", answer, err)
	// Output: *ping.Pong <nil>
}

// Between goroutines a connection needs no memory file and no socket.
func ExampleOptions() {
	ctx := context.Background()
	a, b, err := bank.Pair(ctx, &msg.Options{Schemes: []string{"inproc"}})
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	fmt.Println(b.Peer().Scheme)
	// Output: inproc
}

// Connect waits for a server that starts later, for Options.Wait.
func ExampleConnect() {
	o, remove := names()
	defer remove()
	o.Wait = -1 // not at all
	_, err := bank.Connect(context.Background(), "bank", o)
	fmt.Println(errors.Is(err, msg.ErrNoName))
	// Output: true
}

// A name has one owner.
func ExampleExport() {
	ctx := context.Background()
	o, remove := names()
	defer remove()
	first, err := bank.Export(ctx, "bank", o)
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close()
	_, err = bank.Export(ctx, "bank", o)
	fmt.Println(errors.Is(err, msg.ErrTaken))
	// Output: true
}

// Both ends must have been generated from the same interface.
func ExampleMismatchError() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	o, remove := names()
	defer remove()
	server, err := bank.Export(ctx, "bank", o)
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	go server.Accept(ctx)

	_, err = ping.Connect(ctx, "bank", o)
	var mismatch *msg.MismatchError
	if errors.As(err, &mismatch) {
		fmt.Printf("we speak %s, they speak %s\n", mismatch.OurName, mismatch.PeerName)
	}
	// Output: we speak ping, they speak bank
}

// Every message of a connection, as text.
func ExampleConn_Trace() {
	ctx := context.Background()
	client, server := pair()
	defer client.Close()
	server.Trace(func(r msg.Record) {
		m := bank.Interface.Message(r.Num)
		fmt.Println(m.Format(r.Body))
	})
	if err := client.SendChanged(ctx, &bank.Changed{Account: 7, Cents: 250}); err != nil {
		log.Fatal(err)
	}
	if _, err := server.Recv(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: changed{account: 7, cents: 250}
}
