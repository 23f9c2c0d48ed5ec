package trace

// formats says how each call is shown: its name, then the kinds of its arguments, then what
// the result is if that is not a decimal number. What begins with > is shown after the call,
// because the call fills it in; so is what follows it. The kinds are in decode.go. A number
// behind a kind is the argument that has its length, counted from 0, "=" is the call's result.
const formats = `
read fd >buf= u
write fd buf2 u
open path openflags newmode
close fd
stat path >stat
fstat fd >stat
lstat path >stat
poll pollfds1 u d
lseek fd l whence =l
mmap p u prot mapflags fd offset =p
mprotect p u prot
munmap p u
brk p =p
rt_sigaction signal sigaction >sigaction u
rt_sigprocmask sighow sigset >sigset u
rt_sigreturn
ioctl fd ioctl x
pread64 fd >buf= u l
pwrite64 fd buf2 u l
readv fd >iovec2 u
writev fd iovec2 u
access path access
pipe >pair
select d x x x timeval
sched_yield
mremap p u u mremap newplace =p
msync p u msync
mincore p u p
madvise p u madvise
shmget x u x
shmat d p x =p
shmctl d d p
dup fd
dup2 fd fd
pause
nanosleep timespec >remains
getitimer d >p
alarm u
setitimer d p >p
getpid
sendfile fd fd p u
socket family socktype protocol
connect fd sockaddr2 u
accept fd >sockaddr* int*
sendto fd buf2 u msgflags sockaddr5 u
recvfrom fd >buf= u msgflags sockaddr* int*
sendmsg fd msghdr msgflags
recvmsg fd >msghdr msgflags
shutdown fd shutdown
bind fd sockaddr2 u
listen fd d
getsockname fd >sockaddr* int*
getpeername fd >sockaddr* int*
socketpair family socktype d >pair
setsockopt fd sockopt skip word4 u
getsockopt fd sockopt skip >int* int*
clone cloneflags p p p x
fork
vfork
execve path strings p
exit d
wait4 d >status wait p
kill d signal
uname >p
semget x d x
semop d p u
semctl d d d x
shmdt p
msgget x x
msgsnd d p u x
msgrcv d >p u d x
msgctl d d p
fcntl fd fcntl fcntlarg
flock fd flock
fsync fd
fdatasync fd
truncate path l
ftruncate fd l
getdents fd >p u
getcwd >text u
chdir path
fchdir fd
rename path path
mkdir path mode
rmdir path
creat path mode
link path path
unlink path
symlink path path
readlink path >buf= u
chmod path mode
fchmod fd mode
chown path d d
fchown fd d d
lchown path d d
umask mode =mode
gettimeofday >timeval p
getrlimit rlimit >limits
getrusage d >p
sysinfo >p
times >p
getuid
syslog d p d
getgid
setuid d
setgid d
geteuid
getegid
setpgid d d
getppid
getpgrp
setsid
setreuid d d
setregid d d
getgroups d >p
setgroups d p
setresuid d d d
getresuid >int* int* int*
setresgid d d d
getresgid >int* int* int*
getpgid d
setfsuid d
setfsgid d
getsid d
capget p >p
capset p p
rt_sigpending >sigset u
rt_sigtimedwait sigset >p timespec u
rt_sigqueueinfo d signal p
rt_sigsuspend sigset u
sigaltstack p >p
utime path p
mknod path filemode dev
personality x
ustat x >p
statfs path >p
fstatfs fd >p
sysfs d x x
getpriority d d
setpriority d d d
sched_setparam d int*
sched_getparam d >int*
sched_setscheduler d policy int*
sched_getscheduler d =policy
sched_get_priority_max policy
sched_get_priority_min policy
sched_rr_get_interval d >timespec
mlock p u
munlock p u
mlockall x
munlockall
vhangup
pivot_root path path
prctl prctl prctlarg x x x
arch_prctl archprctl p
adjtimex p
setrlimit rlimit limits
chroot path
sync
settimeofday timeval p
mount path path path x p
umount2 path x
reboot x x x p
sethostname buf1 u
setdomainname buf1 u
gettid
readahead fd d u
setxattr path path buf3 u x
lsetxattr path path buf3 u x
fsetxattr fd path buf3 u x
getxattr path path >buf= u
lgetxattr path path >buf= u
fgetxattr fd path >buf= u
listxattr path >buf= u
llistxattr path >buf= u
flistxattr fd >buf= u
removexattr path path
lremovexattr path path
fremovexattr fd path
tkill d signal
time >p
futex p futex u timeout p u
sched_setaffinity d u buf1
sched_getaffinity d u >buf=
epoll_create d
getdents64 fd >p u
set_tid_address p
restart_syscall
semtimedop d p u timespec
fadvise64 fd l u advice
timer_create clock p >int*
timer_settime d x itimerspec >itimerspec
timer_gettime d >itimerspec
timer_getoverrun d
timer_delete d
clock_settime clock timespec
clock_gettime clock >timespec
clock_getres clock >timespec
clock_nanosleep clock x timespec >remains
exit_group d
epoll_wait fd >epollevents= d d
epoll_ctl fd epollop fd epollevent
tgkill d d signal
utimes path p
mbind p u d p u x
set_mempolicy d p u
get_mempolicy >int* p u p x
waitid d d >p wait p
ioprio_set d d x
ioprio_get d d
inotify_init
inotify_add_watch fd path inotify
inotify_rm_watch fd d
openat dirfd path openflags newmode
mkdirat dirfd path mode
mknodat dirfd path filemode dev
fchownat dirfd path d d atflags
futimesat dirfd path p
newfstatat dirfd path >stat atflags
unlinkat dirfd path atremove
renameat dirfd path dirfd path
linkat dirfd path dirfd path atflags
symlinkat path dirfd path
readlinkat dirfd path >buf= u
fchmodat dirfd path mode
faccessat dirfd path access
pselect6 d x x x timespec p
ppoll pollfds1 u timespec sigset u
unshare cloneflags
set_robust_list p u
get_robust_list d >p p
splice fd p fd p u spliceflags
tee fd fd u spliceflags
sync_file_range fd d d x
vmsplice fd iovec2 u spliceflags
move_pages d u p p p x
utimensat dirfd path times atflags
epoll_pwait fd >epollevents= d d sigset u
signalfd fd sigset u
timerfd_create clock tfdflags
eventfd u
fallocate fd x l l
timerfd_settime fd x itimerspec >itimerspec
timerfd_gettime fd >itimerspec
accept4 fd >sockaddr* int* sockflags
signalfd4 fd sigset u sfdflags
eventfd2 u efdflags
epoll_create1 epollflags
dup3 fd fd fdflags
pipe2 >pair fdflags
inotify_init1 inflags
preadv fd >iovec2 u d
pwritev fd iovec2 u d
rt_tgsigqueueinfo d d signal p
recvmmsg fd >p u msgflags timespec
prlimit64 d rlimit limits >limits
name_to_handle_at dirfd path p int* x
open_by_handle_at fd p openflags
clock_adjtime clock p
syncfs fd
sendmmsg fd p u msgflags
setns fd cloneflags
getcpu >int* int* p
process_vm_readv d p u p u x
process_vm_writev d p u p u x
kcmp d d d x x
sched_setattr d p x
sched_getattr d >p u x
renameat2 dirfd path dirfd path x
getrandom >buf= u grnd
memfd_create path memfd
execveat dirfd path strings p atflags
membarrier d x d
mlock2 p u x
copy_file_range fd p fd p u x
preadv2 fd >iovec2 u d x x
pwritev2 fd iovec2 u d x x
pkey_mprotect p u prot d
pkey_alloc x x
pkey_free d
statx dirfd path atflags x >p
rseq p u x x
pidfd_send_signal fd signal p x
open_tree dirfd path x
move_mount fd path fd path x
fsopen path x
fsconfig fd d path path d
fsmount fd x x
fspick dirfd path x
pidfd_open d x
clone3 p u
close_range u u x
openat2 dirfd path p u
pidfd_getfd fd fd x
faccessat2 dirfd path access atflags
process_madvise fd p u madvise x
epoll_pwait2 fd >epollevents= d timespec sigset u
mount_setattr dirfd path x p u
process_mrelease fd x
futex_waitv p u x timespec clock
`
