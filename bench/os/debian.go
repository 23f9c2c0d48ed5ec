package osbench

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// fetch downloads Debian packages into the cache and unpacks each into one
// directory, unless that was done before.
func fetch(d Dirs, into string, packages []string) (string, error) {
	root := filepath.Join(d.Cache, into)
	done := filepath.Join(root, ".complete")
	if _, err := os.Stat(done); err == nil {
		return root, nil
	}
	debs := filepath.Join(d.Cache, "debs", into)
	if err := os.MkdirAll(debs, 0o755); err != nil {
		return "", err
	}
	if err := run(debs, "apt-get", append([]string{"download", "-q"}, packages...)...); err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return "", err
	}
	for _, f := range files {
		if err := run(debs, "dpkg-deb", "-x", f, root); err != nil {
			return "", err
		}
	}
	return root, os.WriteFile(done, nil, 0o644)
}

// dependencies are the packages that `apt-cache` says these need, libraries
// only: the servers need no init scripts, users or shells.
func dependencies(packages []string) ([]string, error) {
	arg := []string{"depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts",
		"--no-breaks", "--no-replaces", "--no-enhances"}
	out, err := exec.Command("apt-cache", append(arg, packages...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("apt-cache depends: %w", err)
	}
	list := append([]string(nil), packages...)
	library := regexp.MustCompile(`^(lib[a-z0-9.+-]+|zlib1g)$`)
	for _, line := range strings.Split(string(out), "\n") {
		if library.MatchString(line) && !strings.HasSuffix(line, "-perl") {
			list = append(list, line)
		}
	}
	return list, nil
}

// Servers is a tree with Debian's redis-server and nginx, the libraries they
// are linked with, and configurations for a machine without users.
func Servers(d Dirs) (Tree, error) {
	var packages []string
	if _, err := os.Stat(filepath.Join(d.Cache, "servers", ".complete")); err != nil {
		if packages, err = dependencies([]string{"redis-tools", "nginx"}); err != nil {
			return nil, err
		}
	}
	root, err := fetch(d, "servers", packages)
	if err != nil {
		return nil, err
	}
	t := Tree{}
	// The package redis-server only links to a program in redis-tools.
	redis, err := os.ReadFile(filepath.Join(root, "usr/bin/redis-check-rdb"))
	if err != nil {
		return nil, err
	}
	t.Add("usr/bin/redis-server", 0o755, redis)
	nginx, err := os.ReadFile(filepath.Join(root, "usr/sbin/nginx"))
	if err != nil {
		return nil, err
	}
	t.Add("usr/sbin/nginx", 0o755, nginx)
	for _, program := range [][]byte{redis, nginx} {
		if err := addLibraries(t, root, program); err != nil {
			return nil, err
		}
	}
	t.Add("etc/passwd", 0o644, []byte("root:x:0:0:root:/:/bin/sh\n"))
	t.Add("etc/group", 0o644, []byte("root:x:0:\n"))
	t.Add("etc/nginx/nginx.conf", 0o644, []byte(nginxConf))
	t.Add("etc/nginx/four.conf", 0o644, []byte(strings.Replace(nginxConf, "worker_processes 1", "worker_processes 4", 1)))
	t.Add("etc/redis.conf", 0o644, []byte(redisConf))
	t.Add("srv/index.html", 0o644, bytes.Repeat([]byte("Hardtack\n"), 68)) // 612 bytes, as NGINX's own
	t.Add("var/log", fs.ModeDir|0o755, nil)
	t.Add("var/lib/nginx", fs.ModeDir|0o755, nil)
	return t, nil
}

// Git is a tree with Debian's git: the program and the libraries that it is linked with.
func Git(d Dirs) (Tree, error) {
	var packages []string
	if _, err := os.Stat(filepath.Join(d.Cache, "git", ".complete")); err != nil {
		if packages, err = dependencies([]string{"git"}); err != nil {
			return nil, err
		}
	}
	root, err := fetch(d, "git", packages)
	if err != nil {
		return nil, err
	}
	git, err := os.ReadFile(filepath.Join(root, "usr/bin/git"))
	if err != nil {
		return nil, err
	}
	t := Tree{}
	t.Add("usr/bin/git", 0o755, git)
	t.Add("etc/passwd", 0o644, []byte("root:x:0:0:root:/:/bin/sh\n"))
	t.Add("etc/gitconfig", 0o644, []byte("[safe]\n\tdirectory = *\n[user]\n\tname = who\n\temail = who@example.org\n"))
	return t, addLibraries(t, root, git)
}

const nginxConf = `user root;
worker_processes 1;
daemon off;
error_log stderr warn;
pid /tmp/nginx.pid;
events { worker_connections 256; }
http {
	access_log off;
	sendfile on;
	tcp_nopush on;
	keepalive_requests 1000;
	types { text/html html; }
	client_body_temp_path /tmp/nginx.body;
	proxy_temp_path /tmp/nginx.proxy;
	fastcgi_temp_path /tmp/nginx.fastcgi;
	uwsgi_temp_path /tmp/nginx.uwsgi;
	scgi_temp_path /tmp/nginx.scgi;
	server { listen 80; root /srv; }
}
`

const redisConf = `port 6379
bind 0.0.0.0
protected-mode no
save ""
appendonly no
daemonize no
dir /tmp
loglevel warning
`

const interpreter = "lib64/ld-linux-x86-64.so.2"

// addLibraries adds what an ELF file is linked with, and their libraries.
func addLibraries(t Tree, root string, program []byte) error {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return err
	}
	needed, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	if _, ok := t[interpreter]; !ok {
		data, err := os.ReadFile(filepath.Join(root, "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"))
		if err != nil {
			return err
		}
		t.Add(interpreter, 0o755, data)
	}
	for _, lib := range needed {
		name := "usr/lib/x86_64-linux-gnu/" + lib
		if lib == filepath.Base(interpreter) {
			continue
		}
		if _, ok := t[name]; ok {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			data, err = os.ReadFile(filepath.Join(root, "lib/x86_64-linux-gnu", lib))
		}
		if err != nil {
			return err
		}
		t.Add(name, 0o755, data)
		if err := addLibraries(t, root, data); err != nil {
			return err
		}
	}
	t["lib"] = File{Mode: fs.ModeSymlink | 0o777, Data: []byte("usr/lib")}
	return nil
}
