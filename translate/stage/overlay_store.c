/* SPDX-License-Identifier: BSD-3-Clause */
/* overlay_store.c - the staged writes over the dataset, as one store. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "translate/stage/stage_int.h"

#define TRIES 100 /* at something that is written again and again */

struct staged {
	struct store base;
	struct stage *s;
	struct stage *own; /* older generations only; closed with the store */
	struct store *below;
	bool (*hides)(const void *arg, const char *key); /* NULL: nothing more */
	const void *arg;
};

static struct staged *overlay_store_of(struct store *s)
{
	return CONTAINER_OF(s, struct staged, base);
}

/* overlay_find - stage_find, and what the store hides. */
static void overlay_find(const struct staged *s, const char *key, struct stage_entry *ret,
			 char *name)
{
	if (s->hides && s->hides(s->arg, key))
		*ret = (struct stage_entry){.kind = STAGE_GONE};
	else
		stage_find(s->s, key, ret, name);
}

static int overlay_store_absent(const char *key, struct err *e)
{
	return err_set(e, -ENOENT, "'%.200s' does not exist", key);
}

static int staged_stat(struct store *st, const char *key, struct store_stat *ret, struct err *e)
{
	struct staged *s = overlay_store_of(st);
	char name[STORE_KEY_MAX + 1];
	struct stage_entry x;

	overlay_find(s, key, &x, name);
	switch (x.kind) {
	case STAGE_DATA:
		*ret = (struct store_stat){
			.size = x.len, .version = ~x.version, .changed = x.mtime_ns};
		return 0;
	case STAGE_DIR:
		*ret = (struct store_stat){.is_dir = true, .version = ~x.version};
		return 0;
	case STAGE_GONE:
		return overlay_store_absent(key, e);
	case STAGE_ALIAS:
		return store_stat(s->below, name, ret, e);
	case STAGE_NOTHING:
		break;
	}
	return store_stat(s->below, key, ret, e);
}

/* overlay_listing - of one directory. */
struct overlay_listing {
	struct staged *s;
	const char *key;
	bool want_stat, stopped;
	store_emit *emit;
	void *arg;
	struct err *e;
};

/* stage_names - names right below a key that exist in the stage, each with its NUL. */
static int stage_names(struct stage *s, const char *key, struct buf *out, struct err *e)
{
	const struct stage_node *n;
	LOCK_SCOPE(&s->lock);

	n = index_walk(&s->index, key, NULL);
	for (n = n ? n->below : NULL; n; n = n->next)
		if (n->alive)
			buf_put(out, n->name, n->name_len + 1);
	return buf_ok(out) ? 0 : err_nomem(e);
}

/* list_staged - names that the stage has; *ret_any: there is one. */
static int list_staged(struct overlay_listing *l, bool *ret_any)
{
	auto_buf names = buf_of(SIZE_MAX / 2);
	int rc = stage_names(l->s->s, l->key, &names, l->e);

	*ret_any = names.len > 0;
	for (const char *name = buf_next(&names, NULL); !rc && name && !l->stopped;
	     name = buf_next(&names, name)) {
		char key[STORE_KEY_MAX + 1];
		struct store_stat st;
		struct stage_entry x;

		if (!store_key_join(l->key, name, strlen(name), key))
			continue;
		overlay_find(l->s, key, &x, NULL);
		if (x.kind == STAGE_GONE) /* meanwhile */
			continue;
		if (l->want_stat)
			rc = staged_stat(&l->s->base, key, &st, l->e);
		if (rc == -ENOENT) /* of an alias, or taken away meanwhile */
			rc = 0;
		else if (!rc)
			l->stopped = !l->emit(l->arg, name, x.kind == STAGE_DIR,
					      l->want_stat ? &st : NULL);
	}
	return rc;
}

/* emit_below - an entry of the dataset, unless the stage knows better. */
static bool emit_below(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	struct overlay_listing *l = arg;
	char key[STORE_KEY_MAX + 1];
	struct stage_entry x;

	if (!store_key_join(l->key, name, strlen(name), key))
		return true;
	overlay_find(l->s, key, &x, NULL);
	if (x.kind != STAGE_NOTHING)
		return true;
	l->stopped = !l->emit(l->arg, name, is_dir, st);
	return !l->stopped;
}

/* staged_list - a name that is staged meanwhile moves from the dataset to the stage: in this order
 * it is listed, perhaps twice. */
static int staged_list(struct store *st, const char *key, bool want_stat, store_emit *emit,
		       void *arg, struct err *e)
{
	struct overlay_listing l = {.s = overlay_store_of(st),
				    .key = key,
				    .want_stat = want_stat,
				    .emit = emit,
				    .arg = arg,
				    .e = e};
	struct stage_entry x;
	bool any = false;
	int rc = 0, absent = 0;

	overlay_find(l.s, key, &x, NULL);
	if (x.kind == STAGE_GONE)
		return overlay_store_absent(key, e);
	if (x.kind == STAGE_DATA || x.kind == STAGE_ALIAS)
		return err_set(e, -ENOTDIR, "'%.200s' is a file", key);
	if (!stage_hides(l.s->s, key))
		rc = store_list(l.s->below, key, want_stat, emit_below, &l, e);
	if (rc == -ENOENT)
		absent = rc;
	else if (rc || l.stopped)
		return rc;
	rc = list_staged(&l, &any);
	return rc || any || x.kind == STAGE_DIR || !*key ? rc : absent;
}

/* staged_read - a key that is written again meanwhile is read again, from the range that the caller
 * wants: the size of the earlier version may have cut it. */
static int staged_read(struct store *st, const char *key, struct store_io *io, struct err *e)
{
	struct staged *s = overlay_store_of(st);
	const struct store_io wanted = *io;
	char name[STORE_KEY_MAX + 1];
	struct stage_entry x;
	int rc = -ESTALE;

	for (int i = 0; rc == -ESTALE && i < TRIES; i++) {
		*io = wanted;
		overlay_find(s, key, &x, name);
		if (x.kind == STAGE_NOTHING || x.kind == STAGE_ALIAS)
			return store_read_io(s->below, x.kind == STAGE_ALIAS ? name : key, io,
					     e);
		if (x.kind == STAGE_GONE)
			return overlay_store_absent(key, e);
		if (x.kind == STAGE_DIR)
			return err_set(e, -EISDIR, "'%.200s' is a directory", key);
		rc = store_io_size(io, key, x.len, e);
		rc = rc ? rc : stage_read(s->s, key, &x, io->off, io->to, io->len, e);
	}
	io->version = ~x.version;
	return rc;
}

static int staged_check(struct store *st, struct err *e)
{
	return store_check(overlay_store_of(st)->below, e);
}

static void staged_close(struct store *st)
{
	stage_close(overlay_store_of(st)->own);
	free(overlay_store_of(st));
}

static const struct store_ops staged_ops = {
	.name = "staged",
	.close = staged_close,
	.stat = staged_stat,
	.list = staged_list,
	.read = staged_read,
	.check = staged_check,
};

int stage_store(struct stage *s, uint64_t generation, struct store *base, struct store **ret,
		struct err *e)
{
	struct staged *st = alloc_array(1, sizeof(*st));
	int rc;

	if (!st)
		return err_nomem(e);
	*st = (struct staged){.base.ops = &staged_ops, .below = base};
	rc = stage_up_to(s, generation, &st->own, e);
	if (rc) {
		free(st);
		return rc;
	}
	st->s = st->own ? st->own : s;
	*ret = &st->base;
	return 0;
}

void stage_store_hide(struct store *st, bool (*hides)(const void *arg, const char *key),
		      const void *arg)
{
	overlay_store_of(st)->hides = hides;
	overlay_store_of(st)->arg = arg;
}
