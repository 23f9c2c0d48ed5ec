// What is not a descriptor, or no longer the one it was, must not reach anybody.
#include "check.h"

TEST(high_bits, "numbers that differ from a descriptor's in a high bit")
{
	endpoint e = new_endpoint();
	int note = (int)good(ht_ipc_notification(0));
	struct ht_message m = word(1);
	uint64_t bits;
	// The nucleus has looked these up before.
	is(ht_ipc_send(e.send, &m, NOW), -EAGAIN);
	is(ht_ipc_recv(e.recv, &m, NOW), -EAGAIN);
	good(ht_ipc_signal(note, 1));
	good(ht_ipc_wait(note, &bits, FOREVER));
	int fds[] = {e.send, e.recv, note};
	for (int bit = 16; bit < 32; bit++)
		for (int k = 0; k < 9; k++) {
			int fd = (int)((unsigned)fds[k % 3] | 1u << bit | (k >= 3 ? 1u << (16 + (bit + k / 3) % 16) : 0));
			m = word(1);
			is(ht_ipc_send(fd, &m, NOW), -EBADF);
			is(ht_ipc_call(fd, &m, NOW), -EBADF);
			is(ht_ipc_recv(fd, &m, NOW), -EBADF);
			m.token = 0;
			is(ht_ipc_reply_recv(fd, &m, NOW), -EBADF);
			is(ht_ipc_signal(fd, 1), -EBADF);
			is(ht_ipc_wait(fd, &bits, NOW), -EBADF);
		}
	// The upper half of RDI has no meaning.
	long rax = HT_IPC_BASE + 5;
	uint64_t one = 2, rdi = (unsigned)note | 0xabcd00000000;
	__asm__ volatile("syscall" : "+a"(rax), "+d"(one) : "D"(rdi), "S"(0l), "b"(0l)
		: "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
	is(rax, 0);
	good(ht_ipc_wait(note, &bits, NOW));
	is(bits, 2);
}

TEST(reuse, "an endpoint's place is used again 65,536 times: a number of 16 bits would be the same")
{
	int go[2], ready[2];
	char c;
	is(pipe(go), 0);
	is(pipe(ready), 0);
	endpoint old = new_endpoint();
	int badged = (int)good(ht_ipc_mint(old.send, 5, 0));
	pid_t owner = FORK({
		is(read(go[0], &c, 1), 1);
		close(old.recv);
		endpoint e;
		for (int i = 0; i < 65536; i++) {
			if (i > 0)
				close(e.recv), close(e.send);
			e = new_endpoint();
		}
		is(write(ready[1], "x", 1), 1);
		struct ht_message m = {0};
		ht_ipc_recv(e.recv, &m, FOREVER); // what is not for it
	});
	close(old.recv);
	// Now the nucleus looks it up, and nothing that this process does makes it forget.
	struct ht_message m = word(1);
	is(ht_ipc_send(badged, &m, NOW), -EAGAIN);
	is(write(go[1], "x", 1), 1);
	is(read(ready[0], &c, 1), 1);
	settle(owner);
	m = word(6);
	is(ht_ipc_send(badged, &m, NOW), -EPIPE);
	is(ht_ipc_call(badged, &m, NOW), -EPIPE);
	end(owner);
}
