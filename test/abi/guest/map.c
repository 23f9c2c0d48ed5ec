// Calls that map a file into memory, and the use of such memory.
#include "files.h"

static void mapped_at(void *p)
{
	if (p == MAP_FAILED)
		result(-1);
	else
		note("map"), munmap(p, 4096);
}

static void *map(long length, int prot, int flags, int fd, long at)
{
	return (void *)S(mmap, 0, length, prot, flags, fd, at);
}

void call_mmap(subject *s)
{
	EACH(mode, 0, 31, "prot+share") mapped_at(map(4096, mode / 4, mode % 4, s->fd, 0));
	CASE("0") mapped_at(map(0, PROT_READ, MAP_SHARED, s->fd, 0));
	CASE("odd") mapped_at(map(4096, PROT_READ, MAP_SHARED, s->fd, 5));
	CASE("at-4096") mapped_at(map(4096, PROT_READ, MAP_SHARED, s->fd, -4096));
	CASE("far") mapped_at(map(4096, PROT_READ, MAP_SHARED, s->fd, 0x7ffffffffffff000));
	CASE("far44") mapped_at(map(4096, PROT_READ, MAP_SHARED, s->fd, 1L << 44));
	CASE("huge") mapped_at(map(1L << 46, PROT_READ, MAP_SHARED, s->fd, 0));
	CASE("negative") mapped_at(map(-1, PROT_READ, MAP_SHARED, s->fd, 0));
	CASE("prot16") mapped_at(map(4096, 16, MAP_SHARED, s->fd, 0));
	CASE("prot-1") mapped_at(map(4096, -1, MAP_SHARED, s->fd, 0));
	// MAP_FIXED (4) and MAP_FIXED_NOREPLACE (20) at nothing are another matter.
	EACH(bit, 2, 31, "private-flag") bit == 4 || bit == 20 ? (void)0 : mapped_at(map(4096, PROT_READ, MAP_PRIVATE | 1L << bit, s->fd, 0));
	EACH(bit, 2, 31, "validate-flag") bit == 4 || bit == 20 ? (void)0 : mapped_at(map(4096, PROT_READ, MAP_SHARED_VALIDATE | 1L << bit, s->fd, 0));
}

void call_mapped(subject *s)
{
	char *p;
	CASE("read")
	{
		p = map(8192, PROT_READ, MAP_SHARED, s->fd, 0);
		if (p == MAP_FAILED)
			result(-1);
		else
			note("map"), *(volatile char *)p;
	}
	CASE("readbeyond")
	{
		p = map(8192, PROT_READ, MAP_SHARED, s->fd, 0);
		if (p == MAP_FAILED)
			result(-1);
		else
			note("map"), *(volatile char *)(p + 4096);
	}
	CASE("writeshared")
	{
		p = map(4096, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
		if (p == MAP_FAILED)
			result(-1);
		else
			note("map"), p[3] = '!', result(S(msync, P(p), 4096, MS_SYNC)), result(S(pread64, s->fd, P(buffer), 5, 0));
	}
	CASE("writeprivate")
	{
		p = map(4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, s->fd, 0);
		if (p == MAP_FAILED)
			result(-1);
		else
			note("map"), p[3] = '!', result(S(msync, P(p), 4096, MS_ASYNC));
	}
	for (int prot = 0; prot < 8; prot++)
		CASE("protect%d", prot)
		{
			p = map(4096, PROT_READ, MAP_SHARED, s->fd, 0);
			if (p == MAP_FAILED)
				result(-1);
			else
				result(S(mprotect, P(p), 4096, prot));
		}
	for (int advice = 0; advice < 26; advice++)
		CASE("madvise%d", advice)
		{
			p = map(4096, PROT_READ, MAP_PRIVATE, s->fd, 0);
			if (p == MAP_FAILED)
				result(-1);
			else
				result(S(madvise, P(p), 4096, advice));
		}
	CASE("grow")
	{
		p = map(4096, PROT_READ, MAP_SHARED, s->fd, 0);
		if (p == MAP_FAILED)
			result(-1);
		else
			note(S(mremap, P(p), 4096, 8192, 1) == -1 ? "no" : "yes");
	}
	CASE("mincore")
	{
		p = map(4096, PROT_READ, MAP_SHARED, s->fd, 0);
		if (p == MAP_FAILED)
			result(-1);
		else
			result(S(mincore, P(p), 4096, P(buffer)));
	}
}
