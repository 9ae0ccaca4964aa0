/* SPDX-License-Identifier: BSD-3-Clause */
/* members.c - open members: a bounded number, opened on demand, the least recently used closed
 * first.
 *
 * An opened member is compared with the joined one: the file's identity, and the form of every
 * joined array. So a member that changed meanwhile is never mistaken for the joined one. */
#include "translate/concat/concat_int.h"

#include <errno.h>
#include <string.h>

static void members_close_opened(struct concat *j, struct concat_opened *o)
{
	chunkio_free(o->io);
	free(o->plans);
	free(o->arrays);
	if (o->source != j->first)
		source_close(o->source);
	*o = (struct concat_opened){.source = NULL};
}

static int members_changed(struct concat *j, const struct concat_member *m, struct err *e)
{
	atomic_store(&j->stale, true);
	return err_set(e, -ESTALE, "'%s' changed since it was joined", concat_name(m->path));
}

int concat_verify(struct concat *j, const struct concat_member *m, struct source *s,
		  uint32_t *ret, struct err *e)
{
	auto_buf b = buf_of(PTRDIFF_MAX);
	uint32_t n = 0, found = 0;
	bool twice;

	for (uint32_t k = 0; k < s->ds.n_arrays; k++) {
		buf_clear(&b);
		if (concat_describe(&s->ds, k, j->dim, &b, &twice) == CONCAT_NONE)
			continue;
		if (!buf_ok(&b))
			return err_nomem(e);
		n++;
		for (uint32_t i = 0; i < m->n_forms; i++) {
			const struct concat_form *f = &j->forms.v[m->forms[i]];

			if (f->n_bytes != b.len || memcmp(f->bytes, b.data, b.len) != 0)
				continue;
			found++;
			if (ret)
				ret[i] = k;
		}
	}
	if (found == m->n_forms && (ret || n == found))
		return 0;
	concat_index_drop(j); /* the file is the same by all that can be seen of it */
	return members_changed(j, m, e);
}

/* members_map - which array of the member each joined one is; they must be what they were. */
static int members_map(struct concat *j, const struct concat_member *m, struct concat_opened *o,
		       struct err *e)
{
	auto_free uint32_t *found = alloc_array(m->n_forms, sizeof(*found));
	int rc;

	o->arrays = alloc_array(j->base.ds.n_arrays, sizeof(*o->arrays));
	if (!o->arrays || !found)
		return err_nomem(e);
	rc = concat_verify(j, m, o->source, found, e);
	for (uint32_t i = 0; i < j->base.ds.n_arrays && rc == 0; i++)
		o->arrays[i] = j->arrays[i].joined ? found[j->arrays[i].slot] : CONCAT_NONE;
	return rc;
}

int concat_io(const struct concat *j, struct source *s, uint32_t only, uint64_t cache_bytes,
	      struct plan **ret_plans, struct chunkio **ret, struct err *e)
{
	const struct chunkio_options opts = {
		.cache_bytes = cache_bytes, .shared = j->shared, .uncounted = true};
	struct plan *plans = alloc_array(s->ds.n_arrays, sizeof(*plans));

	*ret_plans = plans;
	if (!plans)
		return err_nomem(e);
	for (uint32_t i = 0; i < s->ds.n_arrays; i++) {
		const struct ds_array *a = &s->ds.arrays[i];
		bool hide = dt_is_vlen(&a->type) || a->unreadable ||
			    (only != CONCAT_NONE && i != only);

		plans[i].kind = hide ? PLAN_HIDE : PLAN_DECODE;
	}
	return chunkio_new(s, plans, &opts, ret, e);
}

static int open_member(struct concat *j, uint32_t member, struct concat_opened *o,
		       struct err *e)
{
	const struct concat_member *m = &j->members[member];
	struct concat_id id;
	int rc = 0;

	*o = (struct concat_opened){.source = member == 0 ? j->first : NULL};
	if (!o->source)
		rc = source_open(j->formats, j->n_formats, m->path, &j->source_opts, &o->source,
				 e);
	if (rc == -ENOENT || rc == -ENOTDIR) /* a chunk of it is not proven to be absent */
		return members_changed(j, m, e);
	if (rc < 0)
		return rc;
	concat_id_of(&o->source->ds.st, &id);
	if (!concat_id_same(&id, &m->id))
		rc = members_changed(j, m, e);
	rc = rc ? rc : members_map(j, m, o, e);
	rc = rc ? rc
		: concat_io(j, o->source, CONCAT_NONE, j->opts.cache_bytes, &o->plans, &o->io,
			    e);
	if (rc < 0)
		members_close_opened(j, o);
	return rc;
}

/* members_oldest - the least recently used open member without users; its index in open_list. */
static uint32_t members_oldest(const struct concat *j)
{
	uint32_t best = CONCAT_NONE;

	for (uint32_t i = 0; i < j->n_open; i++) {
		const struct concat_slot *s = &j->slots[j->open_list[i]];

		if (s->users == 0 && s->state == CONCAT_OPEN &&
		    (best == CONCAT_NONE || s->used < j->slots[j->open_list[best]].used))
			best = i;
	}
	return best;
}

/* members_make_room_locked - close surplus members; releases the lock meanwhile. */
static void members_make_room_locked(struct concat *j)
{
	while (j->n_open >= j->opts.open_members) {
		uint32_t at = members_oldest(j), member;
		struct concat_opened o;

		if (at == CONCAT_NONE)
			return; /* all are in use: one more than wanted */
		member = j->open_list[at];
		j->open_list[at] = j->open_list[--j->n_open];
		o = j->slots[member].at;
		j->slots[member].state = CONCAT_MOVING;
		(void)pthread_mutex_unlock(&j->lock);
		members_close_opened(j, &o);
		(void)pthread_mutex_lock(&j->lock);
		j->slots[member].state = CONCAT_CLOSED;
		(void)pthread_cond_broadcast(&j->moved);
	}
}

/* members_open_locked - a member that is closed; the lock is given up meanwhile. */
static int members_open_locked(struct concat *j, uint32_t member, struct err *e)
{
	struct concat_slot *s = &j->slots[member];
	size_t cap;
	int rc;

	s->state = CONCAT_MOVING;
	members_make_room_locked(j);
	(void)pthread_mutex_unlock(&j->lock);
	rc = open_member(j, member, &s->at, e);
	(void)pthread_mutex_lock(&j->lock);
	cap = j->cap_open;
	if (rc == 0 &&
	    grow_array(&j->open_list, &cap, (size_t)j->n_open + 1, sizeof(*j->open_list)) < 0) {
		members_close_opened(j, &s->at);
		rc = err_nomem(e);
	}
	j->cap_open = (uint32_t)cap;
	if (rc == 0)
		j->open_list[j->n_open++] = member;
	s->state = rc == 0 ? CONCAT_OPEN : CONCAT_CLOSED;
	(void)pthread_cond_broadcast(&j->moved);
	return rc;
}

int concat_take(struct concat *j, uint32_t member, const struct concat_opened **ret,
		struct err *e)
{
	struct concat_slot *s = &j->slots[member];
	int rc = 0;
	LOCK_SCOPE(&j->lock);

	while (s->state == CONCAT_MOVING)
		(void)pthread_cond_wait(&j->moved, &j->lock);
	if (s->state == CONCAT_CLOSED)
		rc = members_open_locked(j, member, e);
	if (rc == 0) {
		s->users++;
		s->used = ++j->clock;
		*ret = &s->at;
	}
	return rc;
}

void concat_give(struct concat *j, uint32_t member)
{
	LOCK_SCOPE(&j->lock);

	j->slots[member].users--;
}

void concat_close_members(struct concat *j)
{
	for (uint32_t i = 0; i < j->n_open; i++)
		members_close_opened(j, &j->slots[j->open_list[i]].at);
	free(j->open_list);
	j->open_list = NULL;
	j->n_open = 0;
}
