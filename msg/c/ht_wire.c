#include "ht_wire.h"

#include <stdlib.h>

enum { HT_BLOCK = 4096 }; /* the least that is asked of malloc */

struct ht_block {
	struct ht_block *next;
	size_t size;
	_Alignas(max_align_t) unsigned char mem[];
};

void *ht_arena_alloc(struct ht_arena *a, size_t n, size_t size)
{
	const size_t align = _Alignof(max_align_t);
	if (size != 0 && n > (SIZE_MAX / 2) / size)
		return NULL;
	size_t want = (n * size + align - 1) / align * align;
	if (a->blocks == NULL || a->blocks->size - a->used < want) {
		size_t room = want > HT_BLOCK ? want : HT_BLOCK;
		struct ht_block *b = malloc(sizeof(*b) + room);
		if (b == NULL)
			return NULL;
		b->next = a->blocks;
		b->size = room;
		a->blocks = b;
		a->used = 0;
	}
	void *p = a->blocks->mem + a->used;
	a->used += want;
	memset(p, 0, n * size);
	return p;
}

void ht_arena_reset(struct ht_arena *a)
{
	/* The largest block stays. */
	struct ht_block *keep = NULL;
	while (a->blocks != NULL) {
		struct ht_block *b = a->blocks, *drop = b;
		a->blocks = b->next;
		if (keep == NULL || b->size > keep->size) {
			drop = keep;
			keep = b;
		}
		free(drop);
	}
	if (keep != NULL)
		keep->next = NULL;
	a->blocks = keep;
	a->used = 0;
}

void ht_arena_free(struct ht_arena *a)
{
	ht_arena_reset(a);
	free(a->blocks);
	a->blocks = NULL;
}

void *ht_reader_alloc(struct ht_reader *r, size_t n, size_t size)
{
	void *p = ht_arena_alloc(r->arena, n, size);
	if (p == NULL)
		ht_reader_fail(r);
	return p;
}

struct ht_text ht_take_text(struct ht_reader *r, uint32_t limit)
{
	struct ht_text t = {"", 0};
	uint32_t n = ht_take_count(r, limit, 1);
	const uint8_t *p = ht_take(r, n);
	if (p == NULL || n == 0)
		return t;
	char *s = ht_reader_alloc(r, (size_t)n + 1, 1);
	if (s == NULL)
		return t;
	memcpy(s, p, n);
	t.s = s;
	t.len = n;
	return t;
}

struct ht_cap ht_take_cap(struct ht_reader *r)
{
	struct ht_cap none = {HT_CAP_NONE, -1, NULL}, c = none;
	int kind = ht_take8(r);
	if (r->ncaps > 0) {
		c = *r->caps++;
		r->ncaps--;
	}
	if (c.kind != kind) {
		ht_reader_fail(r);
		return none;
	}
	return c;
}
