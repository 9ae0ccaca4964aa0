/* SPDX-License-Identifier: BSD-3-Clause */
/* store.c - references as a store: inline values, or ranges of other files. */
#include "nczarr/refs/refs_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct refs_store {
	struct store base;
	struct refs_index *index;
	struct refs_targets *targets;
};

static struct refs_store *refs_store_of(struct store *s)
{
	return CONTAINER_OF(s, struct refs_store, base);
}

static void refs_close(struct store *s)
{
	struct refs_store *r = refs_store_of(s);

	r->index->ops->close(r->index);
	refs_targets_free(r->targets);
	free(r);
}

/* refs_store_measure - set the length of a reference to a whole file. */
static int refs_store_measure(struct refs_store *r, struct refs_found *f, struct err *e)
{
	struct refs_target *x;
	struct blob *b;
	int rc;

	if (f->what != REFS_AT || !f->whole)
		return 0;
	rc = refs_target_take(r->targets, f->url, &x, &b, e);
	if (rc)
		return rc;
	f->len = b->size;
	refs_target_give(r->targets, x);
	return 0;
}

/* refs_store_find - find a reference, with its length. */
static int refs_store_find(struct refs_store *r, const char *key, struct refs_found *ret,
			   struct err *e)
{
	int rc = r->index->ops->find(r->index, key, ret, e);

	if (rc)
		return rc;
	rc = refs_store_measure(r, ret, e);
	if (rc)
		r->index->ops->done(r->index, ret);
	return rc;
}

static void put_stat(const struct refs_found *f, struct store_stat *ret)
{
	*ret = (struct store_stat){.is_dir = f->what == REFS_FOLDER,
				   .size = f->what == REFS_FOLDER ? 0 : f->len,
				   .version = f->version};
}

static int refs_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	struct refs_store *r = refs_store_of(s);
	struct refs_found f;
	int rc = refs_store_find(r, key, &f, e);

	if (rc)
		return rc;
	put_stat(&f, ret);
	r->index->ops->done(r->index, &f);
	return 0;
}

struct refs_store_listing {
	struct refs_store *r;
	bool want_stat;
	store_emit *emit;
	void *arg;
};

static bool refs_store_emit_one(void *arg, const char *name, bool is_dir,
				const struct refs_found *f)
{
	const struct refs_store_listing *l = arg;
	struct refs_found own = f ? *f : (struct refs_found){.what = REFS_FOLDER, .version = 1};
	struct store_stat st;

	if (!l->want_stat)
		return l->emit(l->arg, name, is_dir, NULL);
	/* an inaccessible target exists; reading it returns the error */
	if (refs_store_measure(l->r, &own, NULL) < 0)
		st = (struct store_stat){.odd = true, .version = own.version};
	else
		put_stat(&own, &st);
	return l->emit(l->arg, name, is_dir, &st);
}

static int refs_list(struct store *s, const char *key, bool want_stat, store_emit *emit,
		     void *arg, struct err *e)
{
	struct refs_store *r = refs_store_of(s);
	struct refs_store_listing l = {
		.r = r, .want_stat = want_stat, .emit = emit, .arg = arg};

	return r->index->ops->list(r->index, key, refs_store_emit_one, &l, e);
}

/* read_at - read bytes of the target; f is measured. */
static int read_at(struct refs_store *r, const struct refs_found *f, uint64_t off, uint8_t *out,
		   size_t len, struct err *e)
{
	struct refs_target *x;
	struct blob *b;
	uint64_t at, end;
	int rc = refs_target_take(r->targets, f->url, &x, &b, e);

	if (rc)
		return rc;
	if (ckd_add(&at, f->whole ? 0 : f->off, off) || ckd_add(&end, at, (uint64_t)len) ||
	    end > b->size)
		rc = err_set(e, -EIO,
			     "the reference to %" PRIu64 " bytes at offset %" PRIu64
			     " of '%.150s' exceeds its size of %" PRIu64,
			     f->len, f->off, f->url, b->size);
	else
		rc = blob_read(b, at, out, len, e);
	refs_target_give(r->targets, x);
	return rc;
}

static int refs_store_read_found(struct refs_store *r, const char *key,
				 const struct refs_found *f, struct store_io *io,
				 struct err *e)
{
	int rc;

	if (f->what == REFS_FOLDER)
		return err_set(e, -EISDIR, "'%s' is a directory", key);
	rc = store_io_size(io, key, f->len, e);
	if (rc || io->len == 0)
		return rc;
	if (f->what == REFS_AT) {
		rc = read_at(r, f, io->off, io->to, io->len, e);
		return rc ? err_wrap(e, rc, "'%s'", key) : 0;
	}
	memcpy(io->to, f->data + io->off, io->len);
	return 0;
}

static int refs_read(struct store *s, const char *key, struct store_io *io, struct err *e)
{
	struct refs_store *r = refs_store_of(s);
	struct refs_found f;
	int rc = refs_store_find(r, key, &f, e);

	if (rc)
		return rc;
	rc = refs_store_read_found(r, key, &f, io, e);
	io->version = f.version;
	r->index->ops->done(r->index, &f);
	return rc;
}

/* refs_want - prefetch from open targets only: opening one would block. */
static void refs_want(struct store *s, const struct store_range *want, size_t n)
{
	struct refs_store *r = refs_store_of(s);

	for (size_t i = 0; i < n; i++) {
		struct refs_found f;
		struct refs_target *x;
		struct blob *b;

		if (r->index->ops->find(r->index, want[i].key, &f, NULL))
			continue;
		if (f.what == REFS_AT && refs_target_if_open(r->targets, f.url, &x, &b)) {
			uint64_t len = f.whole ? b->size : f.len;
			struct blob_part part = {.len = u64_min(want[i].len, len)};

			if (want[i].off == UINT64_MAX)
				part.off = len - part.len;
			else
				part.off = u64_min(want[i].off, len);
			part.len = u64_min(part.len, len - part.off);
			if (!f.whole && ckd_add(&part.off, part.off, f.off))
				part.len = 0;
			if (part.len > 0 && part.off < b->size &&
			    part.len <= b->size - part.off)
				blob_want(b, &part, 1);
			refs_target_give(r->targets, x);
		}
		r->index->ops->done(r->index, &f);
	}
}

static int refs_check(struct store *s, struct err *e)
{
	struct refs_store *r = refs_store_of(s);

	if (refs_targets_changed(r->targets))
		return err_set(e, -ESTALE, "a file that is referred to was changed");
	return r->index->ops->check(r->index, e);
}

static int refs_place(struct store *s, const char *key, struct store_place *ret, struct err *e)
{
	struct refs_store *r = refs_store_of(s);
	struct refs_found f;
	int rc = r->index->ops->find(r->index, key, &f, e);

	if (rc)
		return rc;
	if (f.what == REFS_AT)
		rc = refs_target_place(r->targets, f.url, ret->key, e);
	else
		rc = err_set(e, -EOPNOTSUPP, "'%s' is embedded in the reference file", key);
	ret->full = true;
	ret->whole = f.whole;
	ret->off = f.off;
	r->index->ops->done(r->index, &f);
	return rc;
}

static const struct store_ops g_ops = {
	.name = "references",
	.close = refs_close,
	.stat = refs_stat,
	.list = refs_list,
	.read = refs_read,
	.check = refs_check,
	.want = refs_want,
	.place = refs_place,
};

int store_refs_open(struct refs_index *x, struct refs_targets *t, struct store **ret,
		    struct err *e)
{
	struct refs_store *r = alloc_array(1, sizeof(*r));

	if (!r)
		return err_nomem(e);
	r->base.ops = &g_ops;
	r->base.remote = x->remote;
	r->index = x;
	r->targets = t;
	*ret = &r->base;
	return 0;
}
