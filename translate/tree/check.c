/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - the tree as it would be with one file more: what options.check looks at. */
#include <errno.h>
#include <string.h>

#include "translate/tree/tree_int.h"

/* over - a store in which one key has another content. */
struct over {
	struct store base;
	struct store *rest;
	const char *key;
	const struct dirty_file *w; /* its content; NULL: that of `from` in the rest */
	const char *from;
	bool stays; /* from is there as well */
};

static struct over *tree_check_of(struct store *s)
{
	return CONTAINER_OF(s, struct over, base);
}

static int over_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	struct over *o = tree_check_of(s);

	if (o->from && !o->stays && strcmp(key, o->from) == 0)
		return err_set(e, -ENOENT, "'%.200s' does not exist", key);
	if (strcmp(key, o->key) != 0)
		return store_stat(o->rest, key, ret, e);
	if (!o->w)
		return store_stat(o->rest, o->from, ret, e);
	*ret = (struct store_stat){.size = o->w->size, .version = UINT64_MAX};
	return 0;
}

struct over_listing {
	struct over *o;
	const char *dir;
	store_emit *emit;
	void *arg;
	bool seen, stopped;
};

/* is_entry - whether name in dir is this key. */
static bool is_entry(const char *dir, const char *name, const char *key)
{
	const char *rest = store_key_below(dir, key);

	return rest && strcmp(rest, name) == 0;
}

static bool over_entry(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	struct over_listing *l = arg;

	if (l->o->from && !l->o->stays && is_entry(l->dir, name, l->o->from))
		return true;
	l->seen |= is_entry(l->dir, name, l->o->key);
	l->stopped = !l->emit(l->arg, name, is_dir, st);
	return !l->stopped;
}

static int over_list(struct store *s, const char *key, bool want_stat, store_emit *emit,
		     void *arg, struct err *e)
{
	struct over_listing l = {.o = tree_check_of(s), .dir = key, .emit = emit, .arg = arg};
	const char *name = store_key_name(l.o->key);
	int rc = store_list(l.o->rest, key, want_stat, over_entry, &l, e);
	struct store_stat st;

	if (rc || l.stopped || l.seen || !is_entry(key, name, l.o->key))
		return rc;
	rc = want_stat ? over_stat(s, l.o->key, &st, e) : 0;
	if (!rc)
		(void)emit(arg, name, false, want_stat ? &st : NULL);
	return rc;
}

static int over_read(struct store *s, const char *key, struct store_io *io, struct err *e)
{
	struct over *o = tree_check_of(s);
	size_t n;
	int rc;

	if (strcmp(key, o->key) != 0)
		return store_read_io(o->rest, key, io, e);
	if (!o->w)
		return store_read_io(o->rest, o->from, io, e);
	rc = store_io_size(io, key, o->w->size, e);
	if (!rc)
		rc = work_read(o->w, io->off, io->to, io->len, &n, e);
	io->version = UINT64_MAX;
	return rc;
}

static int over_check(struct store *s, struct err *e)
{
	return store_check(tree_check_of(s)->rest, e);
}

static void over_close(struct store *s)
{
	(void)s; /* on the stack */
}

static const struct store_ops over_ops = {
	.name = "pending",
	.close = over_close,
	.stat = over_stat,
	.list = over_list,
	.read = over_read,
	.check = over_check,
};

static int tree_check_check(struct tree *t, const struct snapshot *g, struct over *o,
			    struct err *e)
{
	struct store *below = NULL;
	int rc;

	if (!t->o.check)
		return 0;
	o->base.ops = &over_ops;
	rc = view_store(g->view, &below, e);
	if (!rc)
		rc = stage_store(t->stage, UINT64_MAX, below, &o->rest, e);
	if (!rc)
		rc = t->o.check(t->o.arg, &o->base, o->key, e);
	store_close(o->rest);
	store_close(below);
	return rc;
}

int check_work(struct tree *t, const struct snapshot *g, const char *key,
	       const struct dirty_file *w, struct err *e)
{
	return tree_check_check(t, g, &(struct over){.key = key, .w = w}, e);
}

int check_moved(struct tree *t, const struct snapshot *g, const char *key, const char *from,
		const struct dirty_file *w, bool stays, struct err *e)
{
	return tree_check_check(
		t, g, &(struct over){.key = key, .from = from, .w = w, .stays = stays}, e);
}
