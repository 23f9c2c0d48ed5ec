package trace

import (
	"fmt"
	"strings"

	"hardtack/abi/linux"
)

// op is how an argument is shown.
type op uint8

const (
	opDecimal op = iota
	opLong
	opUnsigned
	opHex
	opPointer
	opDescriptor
	opDirectory
	opMode
	opPath
	opText
	opBuffer
	opWord
	opStrings
	opFlags
	opChoice
	opOpen
	opAccess
	opFileMode
	opSocketType
	opClone
	opProtocol
	opControl
	opProcessControl
	opDevice
	opOffset
	opSkip
	opNewMode
	opNewPlace
	opTimeout
	opStat
	opStatus
	opTimespec
	opTimeval
	opTimes
	opItimerspec
	opPair
	opInt
	opAddress
	opIovec
	opMessage
	opSigset
	opSigaction
	opSignal
	opPolls
	opEpollEvent
	opEpollEvents
	opFutex
	opSocketOption
	opLimits
	opRemains
)

// arg is one argument's form.
type arg struct {
	op    op
	names []name // of opFlags and opChoice
	after bool   // shown after the call
	ref   int8   // the argument with its length, from 0; lengthResult, or noLength
}

const (
	noLength     = -1
	lengthResult = -2
)

// form is how a call is shown.
type form struct {
	args   [6]arg
	n      int
	split  int // the first argument that is shown after the call
	result op
}

var simple = map[string]op{
	"d": opDecimal, "u": opUnsigned, "x": opHex, "p": opPointer, "fd": opDescriptor, "dirfd": opDirectory,
	"mode": opMode, "path": opPath, "text": opText, "buf": opBuffer, "word": opWord, "strings": opStrings,
	"openflags": opOpen, "access": opAccess, "filemode": opFileMode, "socktype": opSocketType,
	"cloneflags": opClone, "stat": opStat, "status": opStatus, "timespec": opTimespec, "timeval": opTimeval,
	"times": opTimes, "itimerspec": opItimerspec, "pair": opPair, "int*": opInt, "sockaddr": opAddress,
	"sockaddr*": opAddress, "iovec": opIovec, "msghdr": opMessage, "sigset": opSigset, "sigaction": opSigaction,
	"signal": opSignal, "pollfds": opPolls, "epollevent": opEpollEvent, "epollevents": opEpollEvents,
	"futex": opFutex, "sockopt": opSocketOption, "limits": opLimits,
	"l": opLong, "protocol": opProtocol, "fcntlarg": opControl, "prctlarg": opProcessControl, "dev": opDevice,
	"offset": opOffset, "remains": opRemains, "skip": opSkip, "newmode": opNewMode,
	"newplace": opNewPlace, "timeout": opTimeout,
}

var flagKinds = map[string][]name{
	"prot": protNames, "mapflags": mapNames, "mremap": mremapNames, "msync": msyncNames, "atflags": atNames,
	"msgflags": msgNames, "wait": waitNames, "flock": lockNames, "inotify": inotifyNames,
	"fdflags": descriptorNames, "sockflags": socketFlagNames, "epollflags": epollFlagNames,
	"inflags": inotifyFlagNames, "tfdflags": timerFlagNames, "sfdflags": signalFlagNames, "grnd": randomNames,
	"spliceflags": spliceNames, "efdflags": eventfdNames, "memfd": memfdNames, "atremove": removeNames,
}

var choiceKinds = map[string][]name{
	"whence": whenceNames, "madvise": adviceNames, "family": familyNames, "shutdown": shutNames,
	"sighow": howNames, "clock": clockNames, "epollop": epollOpNames, "fcntl": fcntlNames, "ioctl": ioctlNames,
	"rlimit": limitNames, "policy": policyNames, "prctl": prctlNames, "advice": fileAdviceNames, "archprctl": archNames,
}

// parse reads the table of formats; find gives the number of a call by its name.
func parse(find func(name string) (int, bool)) (map[int]*form, error) {
	forms := map[int]*form{}
	for row := range strings.Lines(formats) {
		words := strings.Fields(row)
		if len(words) == 0 {
			continue
		}
		nr, ok := find(words[0])
		if !ok {
			return nil, fmt.Errorf("trace: there is no call %s", words[0])
		}
		f := new(form)
		if err := f.parse(words[1:]); err != nil {
			return nil, fmt.Errorf("trace: %s: %w", words[0], err)
		}
		forms[nr] = f
	}
	return forms, nil
}

func (f *form) parse(words []string) error {
	after := false
	f.split = len(words)
	for _, w := range words {
		if strings.HasPrefix(w, "=") {
			var ok bool
			if f.result, ok = simple[w[1:]]; !ok && w != "=policy" {
				return fmt.Errorf("unknown result %s", w)
			}
			if !after {
				f.split--
			}
			continue
		}
		if w[0] == '>' && !after {
			after, f.split = true, f.n
		}
		a := arg{after: after, ref: noLength}
		w = strings.TrimPrefix(w, ">")
		if n := len(w) - 1; n > 0 && w[n] == '=' {
			a.ref, w = lengthResult, w[:n]
		} else if n > 0 && w[n] >= '1' && w[n] <= '5' {
			a.ref, w = int8(w[n]-'0'), w[:n]
		}
		if names, ok := flagKinds[w]; ok {
			a.op, a.names = opFlags, names
		} else if names, ok := choiceKinds[w]; ok {
			a.op, a.names = opChoice, names
		} else if a.op, ok = simple[w]; !ok {
			return fmt.Errorf("unknown kind %s", w)
		}
		if f.n == len(f.args) {
			return fmt.Errorf("more than six arguments")
		}
		f.args[f.n] = a
		f.n++
	}
	return nil
}

// missing are the names of calls that give ENOSYS: who traces a program often looks for these.
var missing = map[int]string{
	linux.SYS_ptrace:                  "ptrace",
	linux.SYS_modify_ldt:              "modify_ldt",
	linux.SYS_acct:                    "acct",
	linux.SYS_swapon:                  "swapon",
	linux.SYS_swapoff:                 "swapoff",
	linux.SYS_iopl:                    "iopl",
	linux.SYS_ioperm:                  "ioperm",
	linux.SYS_quotactl:                "quotactl",
	linux.SYS_io_setup:                "io_setup",
	linux.SYS_io_destroy:              "io_destroy",
	linux.SYS_io_getevents:            "io_getevents",
	linux.SYS_io_submit:               "io_submit",
	linux.SYS_io_cancel:               "io_cancel",
	linux.SYS_mq_open:                 "mq_open",
	linux.SYS_mq_unlink:               "mq_unlink",
	linux.SYS_mq_timedsend:            "mq_timedsend",
	linux.SYS_mq_timedreceive:         "mq_timedreceive",
	linux.SYS_mq_notify:               "mq_notify",
	linux.SYS_mq_getsetattr:           "mq_getsetattr",
	linux.SYS_perf_event_open:         "perf_event_open",
	linux.SYS_fanotify_init:           "fanotify_init",
	linux.SYS_fanotify_mark:           "fanotify_mark",
	linux.SYS_seccomp:                 "seccomp",
	linux.SYS_bpf:                     "bpf",
	linux.SYS_userfaultfd:             "userfaultfd",
	linux.SYS_io_uring_setup:          "io_uring_setup",
	linux.SYS_io_uring_enter:          "io_uring_enter",
	linux.SYS_io_uring_register:       "io_uring_register",
	linux.SYS_memfd_secret:            "memfd_secret",
	linux.SYS_uselib:                  "uselib",
	linux.SYS_create_module:           "create_module",
	linux.SYS_init_module:             "init_module",
	linux.SYS_delete_module:           "delete_module",
	linux.SYS_keyctl:                  "keyctl",
	linux.SYS_add_key:                 "add_key",
	linux.SYS_request_key:             "request_key",
	linux.SYS_kexec_load:              "kexec_load",
	linux.SYS_finit_module:            "finit_module",
	linux.SYS_kexec_file_load:         "kexec_file_load",
	linux.SYS_landlock_create_ruleset: "landlock_create_ruleset",
	linux.SYS_landlock_add_rule:       "landlock_add_rule",
	linux.SYS_landlock_restrict_self:  "landlock_restrict_self",
	linux.SYS_quotactl_fd:             "quotactl_fd",
	linux.SYS_lookup_dcookie:          "lookup_dcookie",
	linux.SYS_io_pgetevents:           "io_pgetevents",
}
