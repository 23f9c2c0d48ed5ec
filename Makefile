# Hardtack. `make run` boots it, `make test` checks it; `make help` lists all.

GO        ?= go
QEMU_PKG   = qemu-system-x86
APT        = DEBIAN_FRONTEND=noninteractive apt-get
# One flag for all: the kernel's packages name runtime functions by linkname.
export GOFLAGS := -buildvcs=false -ldflags=-checklinkname=0 $(GOFLAGS_EXTRA)
export CGO_ENABLED := 0

DEMO_PKGS  = redis-server nginx bash busybox-static python3-minimal
DEMO_FILES = $(shell find tool/demo/root -type f)
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
# It knows common misspellings only, so names and figures of speech pass. One of Linux's
# field names is misspelled (ifa_prefered).
MISSPELL    = github.com/golangci/misspell/cmd/misspell@v0.8.0

.PHONY: abi abi-known idl help build run check test ui-test crash suites storm test-overlay bench fuzz nightly bench-collector bench-disk bench-net bench-operate bench-sched bench-storage bench-task bench-msg bench-affinity bench-lock bench-nucleus bench-ipc bench-memory bench-cluster bench-follow profile lint lint-subjects cover cover-guest clean install install-libraries uninstall deps deps-cc deps-pc deps-fs deps-apt deps-ui FORCE

help:
	@echo 'make run     boot Redis and NGINX, with a shell on the terminal (RUN="--cpus 4" adds flags)'
	@echo 'make check   the same machine, checked from the host and powered off'
	@echo 'make build   bin/hardtack and the kernel image bin/kernel.elf'
	@echo 'make install  the command, the kernel, the C and Go libraries and the guides to PREFIX (/usr/local)'
	@echo 'make install-libraries  the same without the kernel'
	@echo 'make uninstall  removes what these two have installed in PREFIX'
	@echo 'make test    lint, unit tests, tests in the guest'
	@echo 'make ui-test  the page of hardtack run --ui in Chromium, with a machine at work; renews its pictures in docs/images'
	@echo 'make crash   20,000 crashed and 10,000 damaged disks, disks shared with Linux, file torture (two hours on two cores)'
	@echo 'make suites  the test suites of CPython and Go, on Hardtack and on this Linux, compared (an hour or more)'
	@echo 'make storm   CPUs that wake each other, and random system calls, on many machines (STORM=60 seconds each)'
	@echo 'make bench   the same programs on Hardtack and on Linux; writes docs/bench/'
	@echo 'make bench-ipc  processes that take turns on one CPU, on Hardtack and on Linux; writes docs/bench/ipc.md'
	@echo 'make bench-task  fork-join tasks beside rayon, C, oneTBB, OpenMP, Go pools'
	@echo 'make bench-msg  typed channels beside C, sockets and pipes; writes docs/bench/msg.md'
	@echo 'make bench-affinity  channel-aware scheduling beside unmodified Go'
	@echo 'make bench-lock  locks, and IPC under four concurrency controls; writes docs/bench/lock.md, lock-rtm.md where transactions commit'
	@echo 'make bench-nucleus  the kernel'"'"'s concurrency controls: operations, Redis on four CPUs; writes docs/bench/nucleus.md'
	@echo 'make bench-memory  a well-behaved program beside users who exhaust memory; writes docs/bench/memory.md (EACH=60s a run)'
	@echo 'make test-overlay  Go'\''s own tests with the overlay, each policy, and the race detector: ten minutes'
	@echo 'make bench-sched  threads that share a processor, on Hardtack and on Linux; writes docs/bench/sched.md'
	@echo 'make bench-disk   raw disks on Hardtack and on Linux; writes docs/bench/disk.md'
	@echo 'make bench-collector  what the collector adds to system calls; writes docs/bench/collector.md (OLD=IMAGE: another kernel beside it)'
	@echo 'make bench-storage  ext4 on Hardtack and on Linux, CMailbench, LevelDB; writes docs/bench/storage.md'
	@echo 'make bench-cluster  several kernels in one machine; writes docs/bench/cluster.md'
	@echo 'make bench-follow  tasks and channel-aware scheduling in machines, on Hardtack and on Linux; writes docs/bench/follow.md'
	@echo 'make bench-net  packets, connections and requests through the network card, on Hardtack and on Linux; writes docs/bench/net.md'
	@echo 'make bench-operate  starts of machines, copies of one that runs, programs in it; writes docs/bench/operate.md'
	@echo 'make idl     generate Go and C from idl/*.if'
	@echo 'make fuzz    every fuzz target of the module, or those in the folders FUZZ_IN, for FUZZTIME (10m) each'
	@echo 'make nightly  every fuzz target for a minute'
	@echo 'make profile renew the profile that the kernel is built with'
	@echo 'make abi     renew Linux'"'"'s answers to the cases of test/abi; make abi-known: the list of known differences'
	@echo 'make cover   how much of the kernel the unit tests run; make cover-guest: and the tests in the guest (half an hour)'
	@echo 'make lint    gofmt, vet, staticcheck, tidy, spelling, links in documents, dead code, commit subjects'
	@echo 'make clean   remove bin/ and build/'

build: bin/hardtack bin/kernel.elf

# go build decides what has changed.
bin/hardtack: FORCE
	@mkdir -p bin
	@$(GO) build -o $@ ./cmd/hardtack

bin/kernel.elf: bin/hardtack FORCE
	@bin/hardtack build -o $@

bin/demo: FORCE
	@mkdir -p bin
	@$(GO) build -o $@ ./tool/demo

# The demonstration's root file system. Packages are cached in build/debs.
build/demo.tar: Makefile $(DEMO_FILES) | bin/hardtack deps-apt
	@mkdir -p build/demo/var/www/html
	@seq 1 20000 >build/demo/var/www/html/numbers.txt
	bin/hardtack image debian -o $@ --minimal --applets --add tool/demo/root --add build/demo $(DEMO_PKGS)

run: deps build bin/demo build/demo.tar
	@bin/demo $(RUN)

check: deps build bin/demo build/demo.tar
	@bin/demo -check $(RUN)

# The tests that boot a guest look for this variable.
test: export HARDTACK_GUEST = 1
test: deps deps-cc deps-pc deps-fs deps-apt lint
	$(GO) test -timeout 60m ./...

# The page of hardtack run --ui in a browser, with pictures of it in docs/images.
ui-test: export HARDTACK_UI = $(CURDIR)/docs/images
ui-test: deps build deps-ui
	@mkdir -p docs/images
	$(GO) test -count=1 -timeout 20m -v ./test/ui

# The long form of some tests: every crash state is recovered, compared and checked.
crash: export HARDTACK_CRASH_STATES ?= 20000
crash: export HARDTACK_CRASH_SEED ?= $(shell date +%s)
crash: export HARDTACK_DAMAGE ?= 10000
crash: export HARDTACK_TORTURE ?= 3600
crash: deps deps-cc deps-fs deps-apt
	$(GO) test -timeout 6h -run 'TestCrash|TestDamage|TestMutants' -v ./ext4
	HARDTACK_GUEST=1 $(GO) test -timeout 1h -count=1 -v ./test/peer
	HARDTACK_GUEST=1 $(GO) test -timeout 1h -count=1 -v -run TestPrograms ./test/guest
	HARDTACK_GUEST=1 $(GO) test -timeout 12h -count=1 -v -run TestTorture ./test/guest

# The long form of another: all listed suites of CPython and Go, on this machine's
# Linux and in the guest; or some of them, as in SUITES="test_os test_mmap os/exec".
SUITES ?= all
suites: deps deps-cc deps-apt
	HARDTACK_GUEST=1 HARDTACK_SUITES="$(SUITES)" $(GO) test -timeout 8h -count=1 -v -run 'TestSuites|TestFolderBuilds' ./test/guest

# The long form of another: the CPUs of each concurrency control wake each other
# and put each other to sleep for STORM seconds. Then system calls at random, for
# STORM seconds on each of eleven machines; FUZZ gives other arguments, as in
# FUZZ="-n 5000000", and STORM_TESTS=TestFuzz leaves the CPUs out.
STORM ?= 60
STORM_TESTS ?= TestControls|TestClash|TestClusters|TestFuzz
storm: deps deps-cc deps-fs
	HARDTACK_GUEST=1 HARDTACK_STORM=$(STORM) HARDTACK_FUZZ="$(FUZZ)" $(GO) test -timeout 48h -p 1 -count=1 -v -run '$(STORM_TESTS)' ./test/guest ./test/fuzz

bench: deps deps-cc build bench-ipc
	$(GO) run ./bench/os/report

# Processes that take turns: pipes, sockets, channels, Hardtack's own calls.
bench-ipc: deps deps-cc build
	$(GO) run ./bench/ipc/report

bench-task: deps-cc
	$(GO) run ./bench/task/report

bench-msg: deps-cc
	$(GO) run ./bench/msg/report -rounds $(or $(ROUNDS),7) $(FIFO:%=-fifo=%)

# Channel-aware scheduling. EXEC goes before each measured command.
bench-affinity: deps deps-cc
	$(GO) run ./bench/affinity/report -exec "$(EXEC)" -rounds $(or $(ROUNDS),3)

# Go's own tests, with the overlay also in the programs that they build. Plain
# GOFLAGS: the tests must see what Go's own builders see. Go's cache of results does
# not know that the runtime reads HARDTACK_AFFINITY, hence -count=1.
POLICIES   ?= off process node group
OVERLAY_PKGS ?= runtime sync time context net/http
test-overlay: bin/hardtack deps-cc
	@list=$$(bin/hardtack go env | sed -n 's/^overlay *//p'); \
	for policy in $(POLICIES); do \
	  echo "policy $$policy"; \
	  GOFLAGS=-overlay=$$list CGO_ENABLED=1 HARDTACK_AFFINITY=$$policy \
	    $(GO) test -count=1 -short -timeout 60m $(OVERLAY_PKGS) || exit 1; \
	done; \
	echo 'policy group, race detector'; \
	GOFLAGS=-overlay=$$list CGO_ENABLED=1 HARDTACK_AFFINITY=group \
	  $(GO) test -count=1 -race -short -timeout 60m -run 'Chan|Select|Sched|Gosched|GOMAXPROCS' runtime && \
	GOFLAGS=-overlay=$$list CGO_ENABLED=1 HARDTACK_AFFINITY=group \
	  $(GO) test -count=1 -race -short -timeout 60m sync context time
	HARDTACK_CGROUP=1 $(GO) test -count=1 -v -run TestCgroup ./overlay

# Locks, and the nucleus core under its concurrency controls. FIFO=true (root) gives the
# measuring threads real-time priority, as in bench-msg: other programs then starve.
bench-lock:
	$(GO) run ./bench/lock/report -rounds $(or $(ROUNDS),5) $(FIFO:%=-fifo=%)

# The kernel under its concurrency controls.
bench-nucleus: deps deps-cc deps-apt build
	$(GO) run ./bench/nucleus/report -rounds $(or $(ROUNDS),3)

# Users who exhaust memory beside a program that behaves: hundreds of runs of EACH.
EACH ?= 60s
bench-memory: deps deps-cc build
	$(GO) run ./bench/memory/report -each $(EACH)

# Several kernels in one machine: instructions only, three minutes.
bench-cluster: deps deps-cc build
	$(GO) run ./bench/cluster/report

# Packages task and affinity in machines; WHAT=speed,rows measures some figures only.
bench-follow: deps deps-cc build
	$(GO) run ./bench/follow/report $(WHAT:%=-what %)

# How threads share a processor.
bench-sched: deps deps-cc build
	$(GO) run ./bench/sched/report

bench-disk: deps deps-cc build
	$(GO) run ./bench/os/diskreport

# Instructions only, so it takes two minutes and other programs do not matter.
bench-net: deps deps-cc build
	$(GO) run ./bench/net/report

# Starts, copies, exec.
bench-operate: deps deps-cc build
	$(GO) run ./bench/operate/report -reps $(or $(ROUNDS),7)

# ext4 here and under Linux; ENTRIES=1000000 for LevelDB suites as long as the paper's.
ENTRIES    ?= 20000
bench-storage: deps deps-cc deps-apt build
	$(GO) run ./bench/storage/report -entries $(ENTRIES) -reps $(or $(ROUNDS),3)

# Delays by the collector of garbage.
bench-collector: deps deps-cc build
	$(GO) run ./bench/memory/collect/report $(OLD:%=-old %)

# Every fuzz target of the module in turn; its seeds run with make test. By default Go spends up
# to a minute on making one new input smaller, which leaves no time for targets with large inputs.
FUZZTIME ?= 10m
FUZZ_IN  ?= $(patsubst %/,%,$(filter-out bin/ build/,$(wildcard */)))
nightly: FUZZTIME = 1m
fuzz nightly: deps deps-cc
	@grep -roE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' $(FUZZ_IN) | while IFS=: read -r file func; do \
	  $(GO) test -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x ./$$(dirname $$file) </dev/null || exit 1; \
	done

# The profile by which the compiler builds the kernel: cmd/kernel/default.pgo.
profile: deps deps-cc build
	$(GO) run ./bench/os/report -profile cmd/kernel/default.pgo -load 20s

lint:
	@bad=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$bad" ]; then echo "gofmt: $$bad" >&2; exit 1; fi
	$(GO) vet ./...
	$(GO) mod tidy -diff
	$(GO) run $(STATICCHECK) ./...
	$(GO) run ./cmd/hardtack vet-msg ./idl/... ./msg/...
	$(GO) run ./tool/deadcode tool/deadcode/exceptions.txt
	@$(MAKE) -s lint-subjects
	git ls-files '*.md' '*.go' '*.s' '*.c' '*.h' Makefile | xargs $(GO) run $(MISSPELL) -i prefered -error
	$(GO) test ./test/docs

# Subjects of commits have at most 72 characters, in those since SUBJECTS_SINCE.
SUBJECTS_SINCE ?= 23bf0d541a7e5294b8eef2f0ed7f40926c0c493e
lint-subjects:
	@if git merge-base --is-ancestor $(SUBJECTS_SINCE) HEAD 2>/dev/null; then \
	  git log --format='%h %s' $(SUBJECTS_SINCE)..HEAD | \
	    awk '{ n = length($$0) - length($$1) - 1; if (n > 72) { print "subject of " n " characters: " $$0; bad = 1 } } END { exit bad }' >&2; \
	else echo 'commit subjects: skipped, $(SUBJECTS_SINCE) is not in this history'; fi

# How much of the kernel the unit tests run.
COVER_PKGS = hardtack/kernel/...,hardtack/nucleus/...
cover:
	@mkdir -p build/cover
	$(GO) test -covermode=atomic -coverpkg=$(COVER_PKGS) -coverprofile=build/cover/host.txt ./kernel/... ./nucleus/... >build/cover/host.log || { cat build/cover/host.log; exit 1; }
	@$(GO) run ./tool/coverage -min 70 host=build/cover/host.txt

# And the tests in the guest, in a kernel that notes what runs; COVER_GUEST are the tests.
# test/abi and IPC on four CPUs are left out: they take long and add little.
COVER_GUEST ?= ^(TestSystemCalls|TestIPC|TestIPCLimits|TestChannels|TestStorage|TestDisk|TestInitSignals|TestPrograms|TestHeap)$$
cover-guest: deps deps-cc deps-fs deps-apt cover
	@rm -rf build/cover/guest && mkdir -p build/cover/guest
	HARDTACK_GUEST=1 HARDTACK_GUEST_COVER=1 GOCOVERDIR=$(CURDIR)/build/cover/guest \
	  $(GO) test -timeout 40m -count=1 -run '$(COVER_GUEST)' -skip '^TestIPC$$/^4$$' ./test/guest
	$(GO) tool covdata textfmt -i=build/cover/guest -o=build/cover/guest.txt
	@$(GO) run ./tool/coverage -min 85 -page docs/bench/coverage.md host=build/cover/host.txt guest=build/cover/guest.txt


# Linux's answers to test/abi's cases, and the differences from them that are known.
abi: deps deps-cc deps-fs deps-apt
	$(GO) test -timeout 60m -count=1 -run TestLinux -v ./test/abi -linux

abi-known: deps deps-cc deps-fs
	HARDTACK_GUEST=1 $(GO) test -timeout 30m -count=1 -run TestAnswers -v ./test/abi -known

# What other projects build with: the command, the C library with its headers and its
# description for pkg-config, the Go libraries as a module of their own, the guides. It
# leaves bin/ alone. C_BUILD is where the C library is compiled.
PREFIX     ?= /usr/local
INSTALLED   = $(abspath $(PREFIX))
C_BUILD    ?= build/c
C_FLAGS    ?= -O2 -g
C_PUBLIC    = $(filter-out msg/c/ht_int.h msg/c/ht_ring.h,$(wildcard msg/c/*.h))
C_OBJECTS   = $(patsubst msg/c/%.c,$(C_BUILD)/%.o,$(wildcard msg/c/*.c))
INSTALL_TO  = $(DESTDIR)$(INSTALLED)

$(C_BUILD)/%.o: msg/c/%.c $(wildcard msg/c/*.h)
	@mkdir -p $(@D)
	$(CC) -std=c11 -fPIC $(C_FLAGS) -c -o $@ $<

$(C_BUILD)/libhardtack.a: $(C_OBJECTS)
	@rm -f $@
	$(AR) rcs $@ $^

# hardtack run looks for the kernel there, if there is none beside the command.
install: install-libraries
	@mkdir -p '$(INSTALL_TO)/lib/hardtack'
	'$(INSTALL_TO)/bin/hardtack' build -o '$(INSTALL_TO)/lib/hardtack/kernel.elf'

install-libraries: deps-cc $(C_BUILD)/libhardtack.a
	@mkdir -p '$(INSTALL_TO)/bin' '$(INSTALL_TO)/include/hardtack' '$(INSTALL_TO)/lib/pkgconfig' '$(INSTALL_TO)/share/doc/hardtack'
	$(GO) build -o '$(INSTALL_TO)/bin/hardtack' ./cmd/hardtack
	install -m 644 $(C_PUBLIC) '$(INSTALL_TO)/include/hardtack'
	install -m 644 $(C_BUILD)/libhardtack.a '$(INSTALL_TO)/lib'
	sed 's|@PREFIX@|$(INSTALLED)|' msg/c/hardtack.pc.in >'$(INSTALL_TO)/lib/pkgconfig/hardtack.pc'
	$(GO) run ./tool/library -o '$(INSTALL_TO)/share/hardtack/go'
	install -m 644 LICENSE docs/guides/*.md '$(INSTALL_TO)/share/doc/hardtack'

# Removes what install has put there, and leaves the folders that others use too.
uninstall:
	rm -f '$(INSTALL_TO)/bin/hardtack' '$(INSTALL_TO)/lib/libhardtack.a' '$(INSTALL_TO)/lib/pkgconfig/hardtack.pc'
	rm -rf '$(INSTALL_TO)/include/hardtack' '$(INSTALL_TO)/lib/hardtack' '$(INSTALL_TO)/share/hardtack' '$(INSTALL_TO)/share/doc/hardtack'

# Interfaces that kernels serve to each other, and to programs.
KERNEL_IDL  = $(patsubst %,idl/%.if,monitor spawn live)
SERVICE_IDL = $(patsubst %,idl/%.if,process clusters names klog metrics)

# The generated packages; a test compares them with what is committed.
idl: bin/hardtack
	bin/hardtack idl $(filter-out idl/types.if idl/machine.if $(KERNEL_IDL) $(SERVICE_IDL),$(wildcard idl/*.if))
	bin/hardtack idl --no-transport $(SERVICE_IDL)
	bin/hardtack idl --lang go --no-transport $(KERNEL_IDL)
	bin/hardtack idl --lang go idl/machine.if

clean:
	rm -rf bin build

# What the host must have. Root installs it; other users are told the package's name.
# $(call need,COMMAND,PACKAGES)
define need
	@command -v $(1) >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo 'installing $(2)'; \
	    $(APT) -qq update && $(APT) -qq -y --no-install-recommends install $(2) >/dev/null; \
	  else \
	    echo '$(1) is missing; install the package: apt-get install $(2)' >&2; exit 1; \
	  fi; }
endef

deps:
	@command -v $(GO) >/dev/null || { echo 'Go 1.26 is missing: https://go.dev/dl/' >&2; exit 1; }
	$(call need,qemu-system-x86_64,$(QEMU_PKG))

# e2fsck and similar tools, as a second opinion in the file system's tests.
deps-fs:
	$(call need,e2fsck,e2fsprogs)

deps-ui:
	$(call need,chromium,chromium)

# The guest programs that are written in C.
deps-cc:
	$(call need,gcc,gcc libc6-dev)

# Tests install the C library and ask pkg-config for it, and follow the tutorial.
deps-pc:
	$(call need,pkg-config,pkg-config)
	$(call need,curl,curl)

# apt's package lists, which a new machine may not have.
deps-apt:
	@command -v apt-cache >/dev/null || { echo 'apt is missing: the packages for the demonstration come from Debian' >&2; exit 1; }
	@apt-cache show redis-server >/dev/null 2>&1 || { \
	  if [ "$$(id -u)" = 0 ]; then $(APT) -qq update; \
	  else echo 'apt knows no packages; run: apt-get update' >&2; exit 1; fi; }

FORCE:
