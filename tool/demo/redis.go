package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// pipelined is how many SETs are sent in one go.
const pipelined = 10_000

// replyTime bounds one exchange with Redis.
const replyTime = 2 * time.Minute

// redis is a connection that speaks just enough of the protocol.
type redis struct {
	conn net.Conn
	r    *bufio.Reader
	w    *bufio.Writer
}

func dialRedis(ctx context.Context) (*redis, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", redisAddr)
	if err != nil {
		return nil, err
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(replyTime)
	}
	if err := conn.SetDeadline(deadline); err != nil {
		conn.Close()
		return nil, err
	}
	// A machine that ends must not keep a reader waiting for the deadline.
	context.AfterFunc(ctx, func() { conn.Close() })
	return &redis{conn, bufio.NewReaderSize(conn, 64<<10), bufio.NewWriterSize(conn, 64<<10)}, nil
}

// send queues a command: an array of bulk strings.
func (c *redis) send(words ...string) {
	// Errors stay in the writer until Flush.
	fmt.Fprintf(c.w, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(c.w, "$%d\r\n%s\r\n", len(w), w)
	}
}

// reply reads a simple or bulk string.
func (c *redis) reply() (string, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", fmt.Errorf("an empty reply")
	}
	switch line[0] {
	case '+', ':':
		return line[1:], nil
	case '$':
		n, err := strconv.Atoi(line[1:])
		if err != nil || n < 0 || n > 1<<20 {
			return "", fmt.Errorf("reply %q", line)
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(c.r, b); err != nil {
			return "", err
		}
		return string(b[:n]), nil
	}
	return "", fmt.Errorf("reply %q", line)
}

// want sends a command and compares the reply.
func (c *redis) want(reply string, words ...string) error {
	c.send(words...)
	if err := c.w.Flush(); err != nil {
		return err
	}
	return c.expect(reply)
}

func (c *redis) expect(reply string) error {
	got, err := c.reply()
	if err != nil {
		return err
	}
	if got != reply {
		return fmt.Errorf("got %.60q instead of %.60q", got, reply)
	}
	return nil
}

func waitRedis(ctx context.Context) error {
	return retry(ctx, func(ctx context.Context) error {
		c, err := dialRedis(ctx)
		if err != nil {
			return err
		}
		defer c.conn.Close()
		return c.want("PONG", "PING")
	})
}

func setGet(ctx context.Context) error {
	c, err := dialRedis(ctx)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	value := strings.Repeat("ship's biscuit\r\n", 1000)
	if err := c.want("OK", "SET", "hardtack", value); err != nil {
		return err
	}
	return c.want(value, "GET", "hardtack")
}

// pipeline sends all SETs without waiting, then reads everything back.
func pipeline(ctx context.Context) error {
	c, err := dialRedis(ctx)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	key := func(i int) string { return fmt.Sprintf("key:%05d", i) }
	value := func(i int) string { return fmt.Sprintf("value %d of the run", i*i) }
	rounds := []struct {
		send   func(i int)
		expect func(i int) string
	}{
		{func(i int) { c.send("SET", key(i), value(i)) }, func(int) string { return "OK" }},
		{func(i int) { c.send("GET", key(i)) }, value},
	}
	for _, round := range rounds {
		sent := make(chan error, 1)
		go func() {
			for i := range pipelined {
				round.send(i)
			}
			sent <- c.w.Flush()
		}()
		for i := range pipelined {
			if err := c.expect(round.expect(i)); err != nil {
				c.conn.Close() // so that the sender ends
				<-sent
				return fmt.Errorf("%s: %w", key(i), err)
			}
		}
		if err := <-sent; err != nil {
			return err
		}
	}
	return nil
}
