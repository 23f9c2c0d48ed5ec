// Messages: what is sent arrives, whole, with its badge and descriptors, or an errno
// says why not.
#include "check.h"

// answer serves until it is killed: it answers with the content for seed + 1.
static void answer(int recv)
{
	struct ht_ipc_buffer buffer;
	struct ht_message m = {.buffer = &buffer};
	unsigned seed = 0;
	good(ht_ipc_recv(recv, &m, FOREVER));
	for (;;) {
		unsigned n = ht_ipc_bytes(m.info);
		right(&m, n, seed);
		is(m.token != 0, 1);
		content(&m, n, seed + 1);
		good(ht_ipc_reply_recv(recv, &m, FOREVER));
		seed += 2;
	}
}

TEST(call_reply, "call and reply between two processes, each length")
{
	endpoint e = new_endpoint();
	pid_t server = FORK(answer(e.recv));
	struct ht_ipc_buffer buffer;
	struct ht_message m = {.buffer = &buffer};
	for (unsigned n = 0; n <= HT_IPC_LONG; n++) {
		content(&m, n, 2 * n);
		good(ht_ipc_call(e.send, &m, FOREVER));
		right(&m, n, 2 * n + 1);
	}
	end(server);
}

TEST(many, "many short calls, and a server in between")
{
	endpoint front = new_endpoint(), back = new_endpoint();
	pid_t last = FORK({
		struct ht_message m = {0};
		good(ht_ipc_recv(back.recv, &m, FOREVER));
		for (;;) {
			m.words[0]++;
			good(ht_ipc_reply_recv(back.recv, &m, FOREVER));
		}
	});
	pid_t middle = FORK({
		struct ht_message m = {0};
		good(ht_ipc_recv(front.recv, &m, FOREVER));
		for (;;) {
			uint64_t token = m.token;
			m.words[0] *= 2;
			good(ht_ipc_call(back.send, &m, FOREVER));
			m.token = token;
			good(ht_ipc_reply_recv(front.recv, &m, FOREVER));
		}
	});
	for (uint64_t i = 0; i < 20000; i++) {
		struct ht_message m = word(i);
		good(ht_ipc_call(front.send, &m, FOREVER));
		is(m.words[0], 2 * i + 1);
		is(m.info, 8);
	}
	end(middle);
	end(last);
}

TEST(one_way, "send and receive, each length, either side first")
{
	endpoint e = new_endpoint();
	pid_t sender = FORK({
		struct ht_ipc_buffer buffer;
		struct ht_message m = {.buffer = &buffer};
		for (unsigned n = 0; n <= HT_IPC_LONG; n++) {
			content(&m, n, n);
			if (n % 97 == 0)
				sleep_ms(2);
			good(ht_ipc_send(e.send, &m, FOREVER));
		}
	});
	struct ht_ipc_buffer buffer;
	struct ht_message m = {.buffer = &buffer};
	for (unsigned n = 0; n <= HT_IPC_LONG; n++) {
		if (n % 89 == 0)
			sleep_ms(2);
		m.token = 1;
		good(ht_ipc_recv(e.recv, &m, FOREVER));
		right(&m, n, n);
		is(m.token, 0);
	}
	ended(sender);
}

TEST(no_buffer, "a long message where there is no buffer")
{
	endpoint e = new_endpoint();
	pid_t sender = FORK({
		struct ht_ipc_buffer buffer;
		struct ht_message m = {.buffer = &buffer};
		content(&m, 300, 5);
		good(ht_ipc_send(e.send, &m, FOREVER));
	});
	struct ht_message m = {0};
	good(ht_ipc_recv(e.recv, &m, FOREVER));
	is(m.info, 300);
	for (unsigned i = 0; i < HT_IPC_SHORT; i++)
		is(((uint8_t *)m.words)[i], (uint8_t)(5 * 31 + i * 7));
	ended(sender);
}

TEST(badges, "badges")
{
	endpoint e = new_endpoint();
	int one = (int)good(ht_ipc_mint(e.recv, ~0ul, 0)), two = (int)good(ht_ipc_mint(e.send, 2, HT_IPC_CLOEXEC));
	is(ht_ipc_mint(one, 3, 0), -EPERM);
	is(fcntl(one, F_GETFD), 0);
	is(fcntl(two, F_GETFD), FD_CLOEXEC);
	int again = dup(two);
	pid_t sender = FORK({
		int all[] = {one, two, again, e.send};
		for (int i = 0; i < 4; i++) {
			struct ht_message m = word((uint64_t)i);
			m.badge = 77; // not the sender's to choose
			good(ht_ipc_send(all[i], &m, FOREVER));
		}
	});
	uint64_t want[] = {~0ul, 2, 2, 0};
	for (int i = 0; i < 4; i++) {
		struct ht_message m = {0};
		good(ht_ipc_recv(e.recv, &m, FOREVER));
		is(m.words[0], i);
		is(m.badge, want[i]);
	}
	ended(sender);
}

// passed checks that a descriptor is the reading end of a pipe with a letter in it.
static void passed(int fd, char letter)
{
	char c = 0;
	is(read(fd, &c, 1), 1);
	is(c, letter);
	is(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}

TEST(descriptors, "descriptors in messages, both ways")
{
	endpoint e = new_endpoint();
	pid_t server = FORK({
		struct ht_ipc_buffer buffer;
		struct ht_message m = {.buffer = &buffer};
		good(ht_ipc_recv(e.recv, &m, FOREVER));
		for (;;) {
			unsigned n = ht_ipc_descriptors(m.info);
			int got[4];
			for (unsigned i = 0; i < n; i++)
				passed(got[i] = m.buffer->fds[i], (char)('a' + i));
			m.info = ht_ipc_info(8, n);
			for (unsigned i = 0; i < n; i++) {
				int p[2];
				good(pipe(p));
				is(write(p[1], "zyxw" + i, 1), 1);
				close(p[1]);
				m.buffer->fds[i] = p[0];
			}
			good(ht_ipc_reply_recv(e.recv, &m, FOREVER));
		}
	});
	struct ht_ipc_buffer buffer;
	for (unsigned n = 0; n <= 4; n++) {
		struct ht_message m = {.buffer = &buffer, .info = ht_ipc_info(n * 100, n)};
		for (unsigned i = 0; i < n; i++) {
			int p[2];
			good(pipe(p));
			char c = (char)('a' + i);
			is(write(p[1], &c, 1), 1);
			close(p[1]);
			buffer.fds[i] = p[0];
		}
		int sent[4];
		memcpy(sent, buffer.fds, sizeof sent);
		good(ht_ipc_call(e.send, &m, FOREVER));
		is(m.info, ht_ipc_info(8, n));
		for (unsigned i = 0; i < n; i++) {
			passed(buffer.fds[i], "zyxw"[i]);
			close(sent[i]); // still ours
		}
	}
	// Without a buffer they are closed: the other end of a pipe hears of it.
	struct ht_message m = {.buffer = &buffer, .info = ht_ipc_info(8, 1)};
	int p[2];
	good(pipe(p));
	buffer.fds[0] = p[1];
	endpoint other = new_endpoint();
	pid_t drop = FORK({
		close(p[1]);
		struct ht_message got = {0};
		good(ht_ipc_recv(other.recv, &got, FOREVER));
		is(ht_ipc_descriptors(got.info), 0);
		pause();
	});
	good(ht_ipc_send(other.send, &m, FOREVER));
	close(p[1]);
	char c;
	is(read(p[0], &c, 1), 0);
	end(drop);
	end(server);
	buffer.fds[0] = 12345;
	is(ht_ipc_send(e.send, &(struct ht_message){.buffer = &buffer, .info = ht_ipc_info(8, 1)}, NOW), -EBADF);
}

TEST(endpoints_passed, "endpoints in messages and through a socket")
{
	int sv[2];
	is(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	endpoint e = new_endpoint();
	pid_t server = FORK({
		// It takes the receiving end from a socket.
		close(e.recv), close(e.send);
		char control[CMSG_SPACE(sizeof(int))], byte;
		struct iovec v = {&byte, 1};
		struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
		is(recvmsg(sv[1], &h, 0), 1);
		int recv = *(int *)(void *)CMSG_DATA(CMSG_FIRSTHDR(&h));
		struct ht_ipc_buffer buffer;
		struct ht_message m = {.buffer = &buffer};
		good(ht_ipc_recv(recv, &m, FOREVER));
		// The caller gave an endpoint of its own, to which this one sends.
		is(ht_ipc_descriptors(m.info), 1);
		int back = buffer.fds[0];
		m.info = 8;
		good(ht_ipc_reply(&m));
		struct ht_message w = word(99);
		good(ht_ipc_send(back, &w, FOREVER));
	});
	char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
	struct iovec v = {&byte, 1};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	struct cmsghdr *c = CMSG_FIRSTHDR(&h);
	c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
	*(int *)(void *)CMSG_DATA(c) = e.recv;
	is(sendmsg(sv[0], &h, 0), 1);
	close(e.recv); // the one under way keeps the endpoint
	endpoint mine = new_endpoint();
	struct ht_ipc_buffer buffer = {.fds = {mine.send}};
	struct ht_message m = {.buffer = &buffer, .info = ht_ipc_info(0, 1)};
	good(ht_ipc_call(e.send, &m, FOREVER));
	good(ht_ipc_recv(mine.recv, &m, FOREVER));
	is(m.words[0], 99);
	ended(server);
	is(ht_ipc_send(e.send, &m, NOW), -EPIPE);
}

TEST(wrong, "wrong arguments")
{
	endpoint e = new_endpoint();
	int note = (int)good(ht_ipc_notification(0)), plain = open("/dev/null", O_RDWR);
	struct ht_message m = word(1);
	uint64_t bits;
	int bad[] = {-1, 1 << 30, plain, note, e.recv};
	for (int i = 0; i < 5; i++) {
		is(ht_ipc_send(bad[i], &m, NOW), -EBADF);
		is(ht_ipc_call(bad[i], &m, NOW), -EBADF);
	}
	bad[4] = e.send;
	for (int i = 0; i < 5; i++) {
		is(ht_ipc_recv(bad[i], &m, NOW), -EBADF);
		m.token = 0;
		is(ht_ipc_reply_recv(bad[i], &m, NOW), -EBADF);
	}
	bad[3] = e.recv;
	for (int i = 0; i < 5; i++) {
		is(ht_ipc_signal(bad[i], 1), -EBADF);
		is(ht_ipc_wait(bad[i], &bits, NOW), -EBADF);
		is(ht_ipc_signal_wait(bad[i], 1, note, &bits, NOW), -EBADF);
		is(ht_ipc_signal_wait(note, 1, bad[i], &bits, NOW), -EBADF);
		is(ht_ipc_wait(note, &bits, NOW), -EAGAIN);
		if (bad[i] != e.recv && bad[i] != e.send)
			is(ht_ipc_mint(bad[i], 1, 0), -EBADF);
	}
	is(ht_ipc_signal(note, 0), -EINVAL);
	is(ht_ipc_signal_wait(note, 0, note, &bits, NOW), -EINVAL);
	is(ht_ipc_notification(1), -EINVAL);
	is(ht_ipc_mint(e.recv, 1, 1), -EINVAL);
	int fds[2];
	is(ht_ipc_endpoint(fds, 4), -EINVAL);
	is(ht_ipc_plain(11, 0, 0, 0), -ENOSYS);
	is(ht_ipc_plain(0x7fffff, 0, 0, 0), -ENOSYS);
	uint32_t infos[] = {HT_IPC_LONG + 1, 0xffff, 5 << 16, 0xffffffff, 0x80000000};
	struct ht_ipc_buffer buffer = {{0}, {0}};
	for (int i = 0; i < 5; i++) {
		m = (struct ht_message){.info = infos[i], .buffer = &buffer};
		is(ht_ipc_send(e.send, &m, NOW), -EMSGSIZE);
		is(ht_ipc_call(e.send, &m, NOW), -EMSGSIZE);
		is(ht_ipc_reply_recv(e.recv, &m, NOW), -EMSGSIZE);
	}
	m = (struct ht_message){.info = 49};
	is(ht_ipc_send(e.send, &m, NOW), -EFAULT);
	m = (struct ht_message){.info = ht_ipc_info(8, 1)};
	is(ht_ipc_send(e.send, &m, NOW), -EFAULT);
}

TEST(tokens, "forged and stale tokens")
{
	endpoint e = new_endpoint();
	uint64_t forged[] = {1, 0xffff, 0x10000, 0x10001, 0x1ffff, ~0ul, 1ul << 63, 0xffffffff, 511, 512, 513};
	for (unsigned i = 0; i < sizeof forged / sizeof *forged; i++) {
		struct ht_message m = word(1);
		m.token = forged[i];
		long rc = ht_ipc_reply(&m);
		if (rc != -EPIPE && rc != -EINVAL)
			is(rc, -EPIPE);
	}
	struct ht_message none = word(1);
	is(ht_ipc_reply(&none), -EINVAL);
	pid_t client = FORK({
		struct ht_message m = word(7);
		good(ht_ipc_call(e.send, &m, FOREVER));
		is(m.words[0], 8);
		m.words[0] = 9;
		good(ht_ipc_call(e.send, &m, FOREVER));
		is(m.words[0], 10);
	});
	struct ht_message m = {0};
	good(ht_ipc_recv(e.recv, &m, FOREVER));
	uint64_t first = m.token;
	// Not from another process.
	ended(FORK({
		struct ht_message w = word(66);
		w.token = first;
		is(ht_ipc_reply(&w), -EPIPE);
	}));
	m.words[0] = 8;
	good(ht_ipc_reply(&m));
	m = word(66);
	m.token = first;
	is(ht_ipc_reply(&m), -EPIPE); // once only
	m.token = 0;
	good(ht_ipc_recv(e.recv, &m, FOREVER));
	is(m.words[0], 9);
	uint64_t second = m.token;
	m = word(66);
	m.token = first;
	is(ht_ipc_reply(&m), -EPIPE);
	m = word(10);
	m.token = second;
	good(ht_ipc_reply(&m));
	ended(client);
}

TEST(pointers, "buffers that are not there")
{
	endpoint e = new_endpoint();
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(page + 4096, 4096);
	void *wild[] = {(void *)8, (void *)0x7ffffffff000, (void *)0x8000000000000000, (void *)0xffffffff80200000,
		(void *)0xffff800000000000, (void *)~7ul, page + 4096, page + 4096 - 64};
	for (unsigned i = 0; i < sizeof wild / sizeof *wild; i++) {
		struct ht_message m = {.buffer = wild[i], .info = 400};
		is(ht_ipc_send(e.send, &m, NOW), -EFAULT);
		is(ht_ipc_call(e.send, &m, NOW), -EFAULT);
		m = (struct ht_message){.buffer = wild[i], .info = ht_ipc_info(8, 4)};
		is(ht_ipc_send(e.send, &m, NOW), -EFAULT);
	}
	is(ht_ipc_endpoint((void *)8, 0), -EFAULT);
	// A receiver's bad buffer is his own misfortune: the sender is done.
	pid_t receiver = FORK({
		struct ht_message m = {.buffer = wild[0]};
		long rc = ht_ipc_recv(e.recv, &m, FOREVER);
		if (rc != 0)
			is(rc, -EFAULT);
		pause();
	});
	settle(receiver);
	struct ht_ipc_buffer buffer = {{1}, {0}};
	struct ht_message m = {.buffer = &buffer, .info = 400};
	good(ht_ipc_send(e.send, &m, in(10000)));
	end(receiver);
	// Memory that was never touched, and a copy on write, are as good as any.
	struct ht_ipc_buffer *fresh = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t sender = FORK({
		struct ht_message w = {.buffer = &buffer};
		content(&w, 500, 3);
		good(ht_ipc_send(e.send, &w, FOREVER));
		good(ht_ipc_send(e.send, &w, FOREVER));
	});
	m = (struct ht_message){.buffer = fresh + 100};
	good(ht_ipc_recv(e.recv, &m, FOREVER));
	right(&m, 500, 3);
	m.token = 0;
	ended(FORK({
		memset(fresh[100].data, 1, 512);
		good(ht_ipc_recv(e.recv, &m, FOREVER));
		right(&m, 500, 3);
	}));
	ended(sender);
}

TEST(registers, "what is kept and what is not")
{
	endpoint e = new_endpoint();
	pid_t server = FORK(answer(e.recv));
	uint64_t before[2], after[2], rbx, rdi, rsi;
	uint32_t mxcsr = 0x5f80, got_mxcsr; // rounds up
	uint16_t fcw = 0x0f7f, got_fcw;
	__asm__ volatile("ldmxcsr %0; fldcw %1" : : "m"(mxcsr), "m"(fcw));
	long double ld = 1.25L;
	struct ht_message m;
	content(&m, 48, 0);
	register uint64_t r8 __asm__("r8") = m.words[0];
	register uint64_t r9 __asm__("r9") = m.words[1];
	register uint64_t r10 __asm__("r10") = 0;
	register uint64_t r12 __asm__("r12") = m.words[2];
	register uint64_t r13 __asm__("r13") = m.words[3];
	register uint64_t r14 __asm__("r14") = m.words[4];
	register uint64_t r15 __asm__("r15") = m.words[5];
	long rax = HT_IPC_BASE + 2;
	uint64_t rdx = FOREVER;
	__asm__ volatile("mov %%rsp, %[b0]; mov %%rbp, %[b1]; syscall; mov %%rsp, %[a0]; mov %%rbp, %[a1]"
		: "+a"(rax), "+d"(rdx), "=D"(rdi), "=S"(rsi), "=b"(rbx), "+r"(r8), "+r"(r9), "+r"(r10), "+r"(r12), "+r"(r13), "+r"(r14), "+r"(r15),
		[b0] "=m"(before[0]), [b1] "=m"(before[1]), [a0] "=m"(after[0]), [a1] "=m"(after[1])
		: "D"((long)e.send), "S"(48l), "b"(0l)
		: "rcx", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
		"xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	struct ht_message r = {.words = {r8, r9, r12, r13, r14, r15}, .info = (uint32_t)rax};
	__asm__ volatile("stmxcsr %0; fnstcw %1" : "=m"(got_mxcsr), "=m"(got_fcw));
	right(&r, 48, 1);
	is(before[0], after[0]);
	is(before[1], after[1]);
	is(rbx, 0);
	is(rdi, e.send);
	is(rsi, 48);
	is(got_mxcsr & ~0x3fu, mxcsr & ~0x3fu);
	is(got_fcw, fcw);
	is(ld == 1.25L, 1);
	end(server);
}

TEST(secrets, "vector registers do not carry from one process to another")
{
	endpoint e = new_endpoint();
	pid_t server = FORK({
		struct ht_message m = {0};
		good(ht_ipc_recv(e.recv, &m, FOREVER));
		for (;;) {
			__asm__ volatile("movq %0, %%xmm5; movq %0, %%xmm12" : : "r"(0x5ec4e75ec4e7ul) : "xmm5", "xmm12");
			good(ht_ipc_raw(4, e.recv, &m, FOREVER));
		}
	});
	for (int i = 0; i < 100; i++) {
		struct ht_message m = word(1);
		uint64_t five, twelve;
		good(ht_ipc_call(e.send, &m, FOREVER));
		__asm__ volatile("movq %%xmm5, %0; movq %%xmm12, %1" : "=r"(five), "=r"(twelve));
		is(five == 0x5ec4e75ec4e7ul, 0);
		is(twelve == 0x5ec4e75ec4e7ul, 0);
	}
	end(server);
}
