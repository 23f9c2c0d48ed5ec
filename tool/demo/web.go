package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	requests = 1000
	clients  = 2
	// pageTime bounds one request.
	pageTime = time.Minute
)

//go:embed root/var/www/html/index.html
var indexPage []byte

// numbers is the larger file of the site; the Makefile makes it with seq.
func numbers() []byte {
	var b []byte
	for i := 1; i <= 20000; i++ {
		b = append(strconv.AppendInt(b, int64(i), 10), '\n')
	}
	return b
}

// get fetches a page and compares it.
func get(ctx context.Context, c *http.Client, page string, want []byte) error {
	ctx, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+webAddr+page, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", page, resp.Status)
	}
	if !bytes.Equal(body, want) {
		return fmt.Errorf("%s: the body differs from byte %d on (%d bytes instead of %d)", page, differs(body, want), len(body), len(want))
	}
	return nil
}

func differs(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func newClient() *http.Client { return &http.Client{Transport: &http.Transport{}} }

func waitWeb(ctx context.Context) error {
	return retry(ctx, func(ctx context.Context) error {
		c := newClient()
		defer c.CloseIdleConnections()
		return get(ctx, c, "/", indexPage)
	})
}

// fetchAll has the clients share the requests, each on a connection of its
// own; every tenth page is the large one.
func fetchAll(ctx context.Context) error {
	large := numbers()
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range clients {
		g.Go(func() error {
			c := newClient()
			defer c.CloseIdleConnections()
			for {
				n := next.Add(1)
				if n > requests {
					return nil
				}
				page, want := "/", indexPage
				if n%10 == 0 {
					page, want = "/numbers.txt", large
				}
				if err := get(ctx, c, page, want); err != nil {
					return fmt.Errorf("request %d: %w", n, err)
				}
			}
		})
	}
	return g.Wait()
}
