// Hardtack's own calls (abi/ipc), which use registers that others keep.
#include "fuzz.h"

void message(thread *t)
{
	struct ht_message m;
	short kind, set;
	word("any", 3, &kind, &set);
	for (int i = 0; i < 6; i++)
		m.words[i] = argument(t, kind, 0);
	m.token = one_in(t, 4) ? boundary(t) : me.token;
	m.info = one_in(t, 4) ? (uint32_t)next(&t->rng) : below(t, 600) | (one_in(t, 8) ? below(t, 6) : 0) << 16;
	m.buffer = (struct ht_ipc_buffer *)(one_in(t, 16) ? wild(t) : one_in(t, 3) ? 0 : (uintptr_t)t->slots);
	if (m.buffer == (void *)t->slots)
		for (int i = 0; i < 4; i++)
			m.buffer->fds[i] = fd_base + (int)below(t, k_kinds);
	unsigned nr = below(t, 12);
	static const int receiver[] = {1, 4, 9};
	int fd = fd_base + (nr >= 5 && nr <= 7 ? k_note : k_send);
	for (int i = 0; i < 3; i++)
		if ((int)nr == receiver[i])
			fd = fd_base + k_receive;
	if (one_in(t, 8))
		fd = fd_base + (int)below(t, k_kinds);
	if (nr == 7) // the descriptor that is signalled
		m.info = (uint32_t)(fd_base + k_note);
	uint64_t deadline = one_in(t, 4) ? boundary(t) : one_in(t, 3) ? HT_IPC_FOREVER : HT_IPC_NOW;
	ring *r = t->ring;
	unsigned at = r->count++ % ring_calls;
	r->call[at].nr = HT_IPC_BASE + nr;
	r->call[at].args[0] = (uint64_t)fd, r->call[at].args[1] = m.info, r->call[at].args[2] = deadline;
	r->call[at].args[3] = m.token, r->call[at].args[4] = (uintptr_t)m.buffer, r->call[at].args[5] = 0;
	r->call[at].result = not_yet;
	long rc;
	if (nr == 8)
		rc = ht_ipc_plain(8, one_in(t, 8) ? (long)wild(t) : (long)t->slots, one_in(t, 8) ? (long)boundary(t) : 0, 0);
	else if (nr == 9 || nr == 10)
		rc = ht_ipc_plain(nr, one_in(t, 8) ? (long)boundary(t) : nr == 9 ? fd : 0, (long)boundary(t), 0);
	else
		rc = ht_ipc_raw(nr, fd, &m, deadline);
	r->call[at].result = rc;
	if (rc >= 0 && nr >= 9)
		me.recent[below(t, 8)] = (int)rc;
	if (m.token != 0)
		me.token = m.token;
}
