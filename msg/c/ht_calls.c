#include "ht_msg.h"

#include <stdlib.h>

static int grow(struct ht_calls *c)
{
	uint32_t size = c->size ? 2 * c->size : 16;
	if (size == 0 || size > UINT32_MAX / 2)
		return HT_NO_MEMORY;
	struct ht_call *all = calloc(size, sizeof(*all));
	if (all == NULL)
		return HT_NO_MEMORY;
	for (uint32_t i = 0; i < c->size; i++) {
		if (c->all[i].num == 0)
			continue;
		uint32_t at = c->all[i].id & (size - 1);
		while (all[at].num != 0)
			at = (at + 1) & (size - 1);
		all[at] = c->all[i];
	}
	free(c->all);
	c->all = all;
	c->size = size;
	return 0;
}

/* The place of a call, or of nothing. */
static struct ht_call *find(const struct ht_calls *c, uint32_t id)
{
	if (c->size == 0)
		return NULL;
	for (uint32_t at = id & (c->size - 1); c->all[at].num != 0; at = (at + 1) & (c->size - 1)) {
		if (c->all[at].id == id)
			return &c->all[at];
	}
	return NULL;
}

/* Empties a place and moves up those behind it that would not be found otherwise. */
static void take_out(struct ht_calls *c, struct ht_call *p)
{
	uint32_t mask = c->size - 1, hole = (uint32_t)(p - c->all);
	c->used--;
	c->all[hole].num = 0;
	for (uint32_t at = (hole + 1) & mask; c->all[at].num != 0; at = (at + 1) & mask) {
		uint32_t home = c->all[at].id & mask;
		if (((at - home) & mask) >= ((at - hole) & mask)) {
			c->all[hole] = c->all[at];
			c->all[at].num = 0;
			hole = at;
		}
	}
}

int ht_calls_add(struct ht_calls *c, uint16_t num, void (*done)(void), void *arg, uint32_t *id)
{
	if (2 * c->used >= c->size) {
		int err = grow(c);
		if (err != 0)
			return err;
	}
	do
		c->next++;
	while (find(c, c->next) != NULL);
	uint32_t at = c->next & (c->size - 1);
	while (c->all[at].num != 0)
		at = (at + 1) & (c->size - 1);
	c->all[at] = (struct ht_call){c->next, num, done, arg, 0};
	c->used++;
	*id = c->next;
	return 0;
}

bool ht_calls_take(struct ht_calls *c, uint32_t id, uint16_t num, struct ht_call *out)
{
	struct ht_call *p = find(c, id);
	if (p == NULL || p->num != num)
		return false;
	*out = *p;
	take_out(c, p);
	return true;
}

bool ht_calls_take_id(struct ht_calls *c, uint32_t id, struct ht_call *out)
{
	struct ht_call *p = find(c, id);
	if (p == NULL)
		return false;
	*out = *p;
	take_out(c, p);
	return true;
}

struct ht_call *ht_calls_find(const struct ht_calls *c, uint32_t id) { return find(c, id); }

struct ht_call *ht_calls_late(const struct ht_calls *c, int64_t now, int64_t *next)
{
	*next = 0;
	for (uint32_t i = 0; i < c->size; i++) {
		struct ht_call *p = &c->all[i];
		if (p->num == 0 || p->until == 0)
			continue;
		if (p->until <= now)
			return p;
		if (*next == 0 || p->until < *next)
			*next = p->until;
	}
	return NULL;
}

bool ht_calls_any(struct ht_calls *c, struct ht_call *out)
{
	for (uint32_t i = 0; i < c->size; i++) {
		if (c->all[i].num == 0)
			continue;
		*out = c->all[i];
		take_out(c, &c->all[i]);
		return true;
	}
	return false;
}

void ht_calls_drop(struct ht_calls *c, uint32_t id)
{
	struct ht_call *p = find(c, id);
	if (p != NULL)
		take_out(c, p);
}

void ht_calls_free(struct ht_calls *c)
{
	free(c->all);
	c->all = NULL;
	c->size = c->used = 0;
}
