package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"hardtack/tool/disk"
	"hardtack/tool/fault"
	"hardtack/tool/machine"
	"hardtack/tool/rootfs"
)

// runFlags are the flags of hardtack run.
type runFlags struct {
	cfg      machine.Config
	memory   string
	clusters int
	cluster  []string
	publish  []string
	folders  folderFlags
	disks    []string
	root     string
	image    string // the ID of the image of the cache that is run
	part     int    // of root's disk
	env      []string
	workdir  string
	user     string
	hostname string
	net      string
	pprof    int
	panics   string // what a panic does: kill or stop
	dryRun   bool
	timeout  time.Duration

	name       string
	detach     bool
	remove     bool // when it has ended; without detach always
	restart    string
	envFiles   []string
	entrypoint string
	readOnly   bool
	tmpfs      []string
	reap       bool
	metrics    string
	ui         string
	page       string // where ui is served
	flight     string // a file for the last words of a kernel that panics
	dns        []string
	hosts      []string
	again      restarts // what restart says
	from       string   // a snapshot
	pull       string
}

func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] ROOT [-- CMD ARG...]\n  hardtack run [flags] --root DISK [-- CMD ARG...]\n  hardtack run [flags] --from SNAPSHOT",
		Short: "Run a root file system in a virtual machine",
		Long: `Run a root file system under the Hardtack kernel in QEMU.

ROOT is a directory, a tar (also .gz, .zst), a cpio archive in newc format (also
compressed), or an OCI image: a layout directory, a layout in a tar, what
"docker save" writes, or the name or ID of an image that "hardtack image pull" has
brought. An image's config gives the default command, environment,
working directory and user. The guest works on a copy in its memory; its changes
are lost when it ends.

With --root the root file system is an ext4 disk, made by "hardtack image disk" or
mke2fs, and the guest's changes stay on it.

CMD is process 1. Without CMD, and without a command in the image, process 1 is the
first of /init, /sbin/init, /bin/sh that ROOT has. When process 1 ends, the machine
powers off and this command exits with its status (128+N if signal N killed it).

Standard input and output are the guest's console. On a terminal they are in raw
mode, and Ctrl-A x leaves; otherwise they carry plain bytes and
end-of-file. SIGINT and SIGTERM are forwarded to process 1; a second signal ends the
machine.

` + statuses,
		Example: `  hardtack run root.tar
  hardtack run --cpus 4 --memory 1G -p 8080:80 site.tar -- nginx -g 'daemon off;'
  echo 'echo hello' | hardtack run root.tar -- /bin/sh
  hardtack run --dry-run --machine q35 image-dir/
  hardtack run --root root.img -- /bin/bash`,
		Args: f.arguments,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			names, _ := imageNames(cmd, args, word)
			return names, cobra.ShellCompDirectiveDefault // or files
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.detach && !detached() {
				return launch(os.Args[1:])
			}
			if f.from != "" {
				return reported(f.runCopy(cmd))
			}
			if f.root != "" {
				return reported(f.run(cmd.Context(), "", args))
			}
			return reported(f.run(cmd.Context(), args[0], args[1:]))
		},
	}
	f.define(cmd)
	return cmd
}

// arguments checks what is not a flag.
func (f *runFlags) arguments(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	if f.from != "" {
		return f.checkCopy(cmd, args)
	}
	if f.root != "" {
		if dash != 0 && len(args) > 0 {
			return fault.Bad("with --root there is no ROOT; a command goes behind --, as in: %s --root %s -- %s",
				cmd.CommandPath(), f.root, args[0])
		}
		return nil
	}
	if len(args) == 0 || dash == 0 {
		return fault.Bad("want a ROOT; see %s --help", cmd.CommandPath())
	}
	if dash < 0 && len(args) > 1 || dash > 1 {
		return fault.Bad("one ROOT only; a command goes behind --, as in: %s %s -- %s", cmd.CommandPath(), args[0], args[1])
	}
	return nil
}

func (f *runFlags) define(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.IntVar(&f.cfg.CPUs, "cpus", 2, "`number` of processors")
	fl.StringVarP(&f.memory, "memory", "m", "512M", "`size` of the memory")
	fl.IntVar(&f.clusters, "clusters", 1, "`number` of kernels that share processors and memory equally")
	fl.StringArrayVar(&f.cluster, "cluster", nil, "a kernel of its `own`: cpus=N,memory=SIZE[,init=PATH][,restart=always|never][,root=FILE[:ro]][,disk=FILE[:ro]][,net[=BACKEND]][,publish=[ADDR:]HOST:GUEST] (repeatable; the first one runs CMD; instead of --cpus and --memory)")
	fl.StringArrayVarP(&f.publish, "publish", "p", nil, "forward a `port` of the host to the guest: [ADDR:]HOST:GUEST[/udp][@CLUSTER] (repeatable; loopback by default)")
	fl.StringArrayVar(&f.disks, "disk", nil, "give the guest a raw image `file` as a disk: FILE[,driver=virtio|ahci|nvme][,ro] (repeatable; ahci and nvme need --machine q35)")
	f.folders.define(fl)
	fl.StringVar(&f.from, "from", "", "go on from this `snapshot`, which hardtack snapshot has made, as a new machine")
	fl.StringVar(&f.root, "root", "", "the root file system is on this `disk`: FILE[,part=N][,driver=virtio|ahci|nvme][,ro]")
	fl.StringArrayVarP(&f.env, "env", "e", nil, "set a `variable`: NAME=VALUE, or NAME for the host's value (repeatable)")
	fl.StringVarP(&f.workdir, "workdir", "w", "", "working `directory` of process 1")
	fl.StringVarP(&f.user, "user", "u", "", "`user` of process 1: NAME or UID, with :GROUP or :GID")
	fl.StringVar(&f.hostname, "hostname", "hardtack", "the guest's host `name`")
	fl.StringVar(&f.net, "net", "user", "`what` the network card is connected to: user (QEMU's user network), tap=NAME, passt, or none for no card; "+
		"then ,dhcp or ,address=ADDR/PREFIX[,gateway=ADDR][,dns=ADDR] for the guest's address (tap and passt: dhcp by default)")
	fl.StringVar(&f.cfg.NIC, "nic", machine.NICVirtio, "the network `card`: virtio, e1000e (Intel 82574L) or e1000 (Intel 82540EM); the last two need --machine q35")
	fl.IntVar(&f.cfg.MTU, "mtu", 0, "the largest packet of the network card in `bytes`: 9000 for jumbo frames (default: 1500)")
	fl.StringVar(&f.cfg.Pcap, "pcap", "", "write the packets that pass the network card to a `FILE` that tcpdump and Wireshark read")
	fl.StringVar(&f.cfg.Netdev, "netdev", "", "what the network card is connected to, as `QEMU` takes it and without an id, instead of its user network: tap,ifname=tap0,script=no,downscript=no")
	fl.StringVar(&f.cfg.Machine, "machine", machine.MicroVM, "the `machine`: microvm or q35")
	fl.StringVar(&f.cfg.Accel, "accel", machine.Auto, "the `accelerator`: auto, kvm or tcg (auto boots a tiny guest to see)")
	fl.BoolVar(&f.cfg.ICount, "icount", false, "count instructions: one per nanosecond of guest time (tcg)")
	fl.StringVar(&f.cfg.Kernel, "kernel", "", "the kernel `image` (default: kernel.elf beside this command, else the installed one)")
	fl.StringVar(&f.cfg.Append, "append", "", "the kernel's command `line`")
	fl.StringVar(&f.panics, "panic", "kill", "what a `panic` in a system call does: kill the process if nothing else is damaged, or stop the machine")
	fl.IntVar(&f.pprof, "pprof", 0, "serve the kernel's Go profiles on this `port` of the host's loopback")
	fl.StringArrayVar(&f.cfg.QEMUArgs, "qemu-arg", nil, "an extra `argument` for QEMU (repeatable)")
	fl.StringVar(&f.name, "name", "", "the machine's `name`, for ps, exec, stop and others (default: a made-up one)")
	fl.BoolVarP(&f.detach, "detach", "d", false, "run in the background and print the name; what the machine prints goes to its log")
	fl.BoolVar(&f.remove, "rm", false, "with -d: remove the machine when it has ended (without -d that is always so)")
	fl.StringVar(&f.restart, "restart", "no", "with -d: when to start it again after its `end`: no, on-failure[:N], always, unless-stopped")
	fl.StringArrayVar(&f.envFiles, "env-file", nil, "set the variables of a `file`, one a line (repeatable)")
	fl.StringVar(&f.entrypoint, "entrypoint", "", "a `program` instead of the image's; the image's command is not used then")
	fl.BoolVar(&f.readOnly, "read-only", false, "mount the root file system read-only")
	fl.StringArrayVar(&f.tmpfs, "tmpfs", nil, "mount a file system in memory: `PATH`[:OPTIONS], as in /run:size=16m,exec (repeatable; noexec, nosuid and nodev unless it says otherwise)")
	fl.BoolVar(&f.reap, "init", false, "process 1 is a program that does not know it: the kernel collects children that it inherits, and signals that it does not handle end it")
	fl.StringArrayVar(&f.dns, "dns", nil, "write the `address` of a name server into the guest's /etc/resolv.conf (repeatable)")
	fl.StringArrayVar(&f.hosts, "add-host", nil, "write a `line` into the guest's /etc/hosts: NAME:ADDRESS or NAME=ADDRESS (repeatable)")
	fl.StringVar(&f.ui, "ui", "", "serve a page that shows what the machine does at this `address` of the host: [ADDR]:PORT (loopback by default)")
	fl.StringVar(&f.flight, "record", "", "if the kernel panics, write what it did last to this `file`, for ui.perfetto.dev")
	fl.StringVar(&f.metrics, "metrics", "", "serve the machine's figures for Prometheus at this `address` of the host: [ADDR]:PORT, and there at /metrics (loopback by default)")
	fl.StringVar(&f.pull, "pull", pullNever, "`when` to bring an image that is no file from its registry: never, missing (from the cache) or always")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the QEMU command and do not run it")
	fl.DurationVar(&f.timeout, "timeout", 0, "stop the machine after this `time`, as in 30s")
}

func (f *runFlags) run(ctx context.Context, root string, args []string) error {
	if err := f.complete(ctx); err != nil {
		return err
	}
	tree, boot, err := f.open(ctx, root, args)
	if err != nil {
		return err
	}
	if f.dryRun {
		argv, err := f.cfg.Command()
		if err != nil {
			return err
		}
		fmt.Println(machine.Quote(argv))
		return nil
	}
	initrd, err := f.initrd(tree, boot)
	if err != nil {
		return err
	}
	defer initrd.Close()
	return f.attend(ctx, root, boot, initrd)
}

// attend runs the machine with this command's console until its end.
func (f *runFlags) attend(ctx context.Context, root string, boot *rootfs.Boot, initrd *os.File) error {
	con := machine.Console{In: os.Stdin, Out: os.Stdout}
	if boot.Terminal {
		con.TTY = os.Stdin
	}
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	status, err := f.supervise(ctx, root, boot, initrd, con)
	if err != nil {
		return err
	}
	if status != 0 {
		return exitStatus(status)
	}
	return nil
}

// open reads the root file system: what goes into the boot archive, and the
// kernel's boot record.
func (f *runFlags) open(ctx context.Context, root string, args []string) (*rootfs.Tree, *rootfs.Boot, error) {
	if f.root != "" {
		return f.openDisk(args)
	}
	tree, image, err := openRoot(ctx, root, f.pull, rootfs.BudgetFor(f.cfg.Memory))
	f.image = image
	if err != nil {
		return nil, nil, err
	}
	boot, err := f.boot(tree, args)
	return tree, boot, err
}

// openDisk looks for the program on the disk; the boot archive has nothing but
// the record.
func (f *runFlags) openDisk(args []string) (*rootfs.Tree, *rootfs.Boot, error) {
	d, err := disk.Open(f.cfg.Disks[0].File, f.part, false)
	if err != nil {
		return nil, nil, fault.With(fault.Status(err), "--root: %w", err)
	}
	defer d.Close()
	tree, err := disk.Peek(d)
	if err != nil {
		return nil, nil, fault.With(fault.Status(err), "--root %s: %w", f.cfg.Disks[0].File, err)
	}
	boot, err := f.boot(tree, args)
	return rootfs.New(rootfs.BudgetFor(f.cfg.Memory)), boot, err
}

// setPublish takes over the ports to forward.
func (f *runFlags) setPublish() error {
	for _, p := range f.publish {
		forward, err := machine.ParseForward(p)
		if err != nil {
			return err
		}
		if forward.Cluster >= max(len(f.cfg.Kernels), 1) {
			return fault.Bad("publish %q: the machine has no cluster %d", p, forward.Cluster)
		}
		f.cfg.Publish = append(f.cfg.Publish, forward)
	}
	return nil
}

// complete turns flags into the machine's configuration.
func (f *runFlags) complete(ctx context.Context) (err error) {
	if f.cfg.Memory, err = machine.ParseMemory(f.memory); err != nil {
		return err
	}
	if err := f.setClusters(); err != nil {
		return err
	}
	if err := f.setPublish(); err != nil {
		return err
	}
	if f.root != "" {
		disk, part, err := machine.ParseRoot(f.root)
		if err != nil {
			return err
		}
		f.cfg.Disks, f.cfg.Root, f.part = []machine.Disk{disk}, true, part
		mode := "rw"
		if disk.ReadOnly {
			mode = "ro"
		}
		f.cfg.Append = strings.TrimSpace(fmt.Sprintf("root=%s rootfstype=ext4 %s %s", f.cfg.DeviceName(0, part), mode, f.cfg.Append))
	}
	for _, s := range f.disks {
		disk, err := machine.ParseDisk(s)
		if err != nil {
			return err
		}
		f.cfg.Disks = append(f.cfg.Disks, disk)
	}
	if err := f.checkValues(); err != nil {
		return err
	}
	if err := f.folders.set(&f.cfg, f.dryRun); err != nil {
		return err
	}
	if err := f.cfg.Check(); err != nil {
		return err
	}
	if f.cfg.Kernel == "" {
		if f.cfg.Kernel, err = installedKernel(); err != nil {
			return err
		}
	}
	if err := machine.CheckKernel(f.cfg.Kernel); err != nil {
		return err
	}
	if f.cfg.ICount {
		f.cfg.Accel = machine.TCG
	}
	f.cfg.Accel = machine.ResolveAccel(ctx, f.cfg.Accel)
	return nil
}

// setClusters shares the machine out between kernels.
func (f *runFlags) setClusters() error {
	var list []machine.Cluster
	var err error
	switch {
	case len(f.cluster) > 0 && f.clusters != 1:
		return fault.Bad("--clusters and --cluster exclude each other")
	case len(f.cluster) > 0:
		for _, s := range f.cluster {
			c, err := machine.ParseCluster(s)
			if err != nil {
				return err
			}
			list = append(list, c)
		}
	case f.clusters != 1:
		if list, err = machine.Split(f.clusters, f.cfg.CPUs, f.cfg.Memory); err != nil {
			return err
		}
	default:
		return nil
	}
	return f.cfg.SetClusters(list)
}

// checkValues checks the flags that are a word or a number.
func (f *runFlags) checkValues() error {
	switch f.panics {
	case "kill":
	case "stop":
		f.cfg.Append = strings.TrimSpace(f.cfg.Append + " panic=stop")
	default:
		return fault.Bad("--panic %q: want kill or stop", f.panics)
	}
	switch f.pull {
	case pullNever, pullMissing, pullAlways:
	default:
		return fault.Bad("--pull %q: want never, missing or always", f.pull)
	}
	if f.pprof < 0 || f.pprof > 65535 {
		return fault.Bad("--pprof %d: not a port", f.pprof)
	}
	var err error
	if f.cfg.Net, err = machine.ParseNetwork(f.net); err != nil {
		return err
	}
	f.cfg.NoNet = f.cfg.Net.Kind == machine.NetNone
	if f.pprof > 0 && f.cfg.Netdev == "" && f.cfg.Net.Kind != machine.NetTap {
		f.cfg.Publish = append(f.cfg.Publish, machine.Forward{Proto: "tcp", Addr: "127.0.0.1", Host: f.pprof, Guest: f.pprof})
	}
	if err := f.checkNamed(); err != nil {
		return err
	}
	if f.timeout < 0 {
		return fault.Bad("--timeout %v: want a positive time", f.timeout)
	}
	if f.hostname == "" || len(f.hostname) > 64 {
		return fault.Bad("--hostname %q: want 1 to 64 bytes", f.hostname)
	}
	return nil
}

// boot makes the kernel's boot record from flags, the image's config and what
// the tree holds.
func (f *runFlags) boot(tree *rootfs.Tree, args []string) (*rootfs.Boot, error) {
	image := tree.Config
	if image == nil {
		image = new(rootfs.Config)
	}
	b := &rootfs.Boot{
		User: first(f.user, image.User), Cwd: first(f.workdir, image.WorkingDir, "/"),
		Hostname: f.hostname, Pprof: f.pprof, Rows: 24, Cols: 80,
		Net: f.bootNet(),
	}
	if !strings.HasPrefix(b.Cwd, "/") {
		return nil, fault.Bad("--workdir %q: want an absolute path", b.Cwd)
	}
	b.Cwd = path.Clean(b.Cwd)
	if err := f.makeCwd(tree, b.Cwd); err != nil {
		return nil, fault.Bad("--workdir %s: %v", b.Cwd, err)
	}
	if err := f.arrange(tree, b); err != nil {
		return nil, err
	}
	user, err := tree.ResolveUser(b.User)
	if err != nil {
		return nil, err
	}
	b.UID, b.GID, b.Groups = user.UID, user.GID, user.Groups

	b.Terminal = term.IsTerminal(int(os.Stdin.Fd()))
	if b.Terminal {
		if cols, rows, err := term.GetSize(int(os.Stdin.Fd())); err == nil && cols > 0 && rows > 0 {
			b.Rows, b.Cols = rows, cols
		}
	}
	env, err := f.environment(image.Env, user, b.Terminal)
	if err != nil {
		return nil, err
	}
	b.Env = env.list
	switch {
	case f.entrypoint != "":
		args = append([]string{f.entrypoint}, args...)
	case len(args) == 0:
		args = image.Args()
	}
	if len(args) == 0 {
		program, err := tree.DefaultProgram()
		if err != nil {
			return nil, err
		}
		args = []string{program}
	}
	program, err := tree.FindProgram(args[0], b.Cwd, env.get("PATH"))
	if err != nil {
		return nil, err
	}
	b.Args = append([]string{program}, args[1:]...)
	b.Folders = f.folders.record(&f.cfg)
	return b, nil
}

// bootNet is what the kernel is told of its network.
func (f *runFlags) bootNet() rootfs.Net {
	n := &f.cfg.Net
	b := rootfs.Net{Mode: "static", Address: n.Address, Gateway: n.Gateway, DNS: n.DNS, MTU: f.cfg.MTU}
	switch {
	case f.cfg.NoNet:
		return rootfs.Net{Mode: "none"}
	case n.DHCP:
		b.Mode = "dhcp"
	}
	return b
}

// makeCwd makes the working directory, which a disk must have.
func (f *runFlags) makeCwd(tree *rootfs.Tree, cwd string) error {
	if f.root == "" {
		return tree.MakeDir(cwd)
	}
	n, err := tree.Lookup(cwd, true)
	if err == nil && n.Type() != rootfs.Dir {
		err = errors.New("it is not a directory")
	}
	return err
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// environment is the image's variables under the user's, with what every
// process expects where neither has it.
func (f *runFlags) environment(image []string, user *rootfs.User, terminal bool) (*env, error) {
	e := new(env)
	e.set("PATH", rootfs.DefaultPath)
	e.set("HOME", user.Home)
	if t := os.Getenv("TERM"); terminal && t != "" {
		e.set("TERM", t)
	}
	for _, v := range image {
		name, value, _ := strings.Cut(v, "=")
		e.set(name, value)
	}
	return e, e.addUsers(f.envFiles, f.env)
}

// env is an environment in the order it was set.
type env struct{ list []string }

func (e *env) set(name, value string) {
	for i, v := range e.list {
		if strings.HasPrefix(v, name+"=") {
			e.list[i] = name + "=" + value
			return
		}
	}
	e.list = append(e.list, name+"="+value)
}

func (e *env) get(name string) string {
	for _, v := range e.list {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// initrd writes the archive the kernel boots from.
func (f *runFlags) initrd(tree *rootfs.Tree, boot *rootfs.Boot) (*os.File, error) {
	file, err := rootfs.Scratch()
	if err != nil {
		return nil, err
	}
	err = tree.WriteInitrd(file, boot)
	var size int64
	if err == nil {
		size, err = file.Seek(0, io.SeekEnd)
	}
	if err == nil && size+kernelShare > f.cfg.Memory {
		err = fault.Bad("the root file system takes %d MiB, which does not fit in --memory %s", (size+1<<20-1)>>20, f.memory)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// kernelShare is what the kernel and its Go heap need beside the archive.
const kernelShare = 24 << 20
