package main

import (
	"fmt"
	"strings"

	osbench "hardtack/bench/os"
)

// four starts four Redis servers, and NGINX with four workers, and has clients in the guest
// load one to four of the first, and the second.
const four = "/bench/osbench online\n" +
	"& /usr/bin/redis-server /etc/redis.conf\n& /usr/bin/redis-server /etc/redis.conf --port 6380\n" +
	"& /usr/bin/redis-server /etc/redis.conf --port 6381\n& /usr/bin/redis-server /etc/redis.conf --port 6382\n" +
	"& /usr/sbin/nginx -e stderr -c /etc/nginx/four.conf\nport 6379\nport 6380\nport 6381\nport 6382\nport 80\n" +
	"/bench/osbench load redis 8 1 1000\n/bench/osbench load redis 8 2 1000\n/bench/osbench load redis 8 3 1000\n" +
	"/bench/osbench load redis 8 4 1000\n/bench/osbench load redis16 8 4 200\n/bench/osbench load nginx 8 4 500\n" +
	"/bench/osbench load nginxconn 8 4 300\n"

var fourRows = []struct{ name, title string }{
	{"redis-1", "Redis SET, 1 server"},
	{"redis-2", "Redis SET, 2 servers"},
	{"redis-3", "Redis SET, 3 servers"},
	{"redis-4", "Redis SET, 4 servers"},
	{"redis16-4", "Redis SET, 4 servers, pipelined ×16"},
	{"nginx-4", "NGINX with 4 workers, keep-alive"},
	{"nginxconn-4", "NGINX with 4 workers, connection each"},
}

func writeFour(b *osbench.Bench, p *strings.Builder) error {
	servers, err := osbench.Servers(b.Dirs)
	if err != nil {
		return err
	}
	rows, err := b.Count(4, four, servers)
	if err != nil {
		return err
	}
	p.WriteString(`
Eight clients, each a process in the guest, load the servers at the same time: guest
instructions of all four CPUs for a request, clients, kernel and servers together. A CPU that
idles counts nothing while another runs. Medians of five runs. They are the work that a request takes, with all that it costs that
threads are on several CPUs; that CPUs wait for each other, or for memory, they do not show.
The last column is the rate that a CPU's worth of instructions gives, against Linux; the goal was 1.2.

| | Hardtack | Linux | Linux's instructions to Hardtack's |
| --- | ---: | ---: | ---: |
`)
	for _, r := range fourRows {
		h, l := rows[r.name][osbench.OnHardtack].Median, rows[r.name][osbench.OnLinux].Median
		fmt.Fprintf(p, "| %s | %.0f | %.0f | %.2f |\n", r.title, h, l, l/h)
	}
	return nil
}
