/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_read.c - reads chunks: stored bytes, or elements in the form of the model.
 *
 * Elements take up to four steps, each skipped if it has no work: stored bytes, decoded elements,
 * elements in the model's order, elements in the model's form. The last step writes to the
 * caller's memory. */
#include "nczarr/source/chunks.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "translate/model/value.h"

#define SCRATCH_KEPT 8
#define SCRATCH_BIG ((size_t)64 << 20) /* a larger buffer is freed */
#define LONG 200

/* ---- working memory ---- */

void zr_scratch_free(struct zr_scratch *m)
{
	if (!m)
		return;
	buf_release(&m->stored);
	buf_release(&m->elems);
	buf_release(&m->moved);
	buf_release(&m->strings);
	codec_scratch_free(m->codec);
	free(m);
}

struct zr_scratch *zr_scratch_take(struct zr_data *d)
{
	struct zr_scratch *m;

	(void)pthread_mutex_lock(&d->lock);
	m = d->scratch;
	if (m) {
		d->scratch = m->next;
		d->n_scratch--;
	}
	(void)pthread_mutex_unlock(&d->lock);
	if (m)
		return m;
	m = alloc_array(1, sizeof(*m));
	if (!m)
		return NULL;
	m->stored = m->elems = m->moved = m->strings = buf_of(PTRDIFF_MAX);
	m->codec = codec_scratch_new();
	if (!m->codec) {
		zr_scratch_free(m);
		return NULL;
	}
	return m;
}

void zr_scratch_give(struct zr_data *d, struct zr_scratch *m)
{
	if (m && m->stored.cap + m->elems.cap + m->moved.cap + m->strings.cap <= SCRATCH_BIG) {
		buf_clear(&m->stored);
		buf_clear(&m->elems);
		buf_clear(&m->moved);
		buf_clear(&m->strings);
		(void)pthread_mutex_lock(&d->lock);
		if (d->n_scratch < SCRATCH_KEPT) {
			m->next = d->scratch;
			d->scratch = m;
			d->n_scratch++;
			m = NULL;
		}
		(void)pthread_mutex_unlock(&d->lock);
	}
	zr_scratch_free(m);
}

/* ---- objects ---- */

/* chunk_gone - -ESTALE if x's object was replaced since it was listed, as far as its size shows. */
static int chunk_gone(const struct chunk_location *x, const char *key, struct err *e)
{
	struct store_stat st;
	int rc = store_stat(x->p->s->store, key, &st, NULL);

	if (rc == -ENOENT)
		return err_set(e, -ESTALE, "'%.*s' was removed after the source was opened",
			       LONG, key);
	if (rc == 0 && (x->p->table.sized || x->p->remote) && x->size != ZR_UNREADABLE &&
	    !st.odd && st.size != x->size)
		return err_set(e, -ESTALE,
			       "'%.*s' was changed: it has %" PRIu64
			       " bytes instead of %" PRIu64,
			       LONG, key, st.size, x->size);
	return 0;
}

int zr_object_blame(const struct chunk_location *x, int code, struct err *e)
{
	char key[ZR_OBJECT_KEY];
	int rc = zr_object_name(x->p, x->object, key, e);

	rc = rc ? rc : chunk_gone(x, key, e);
	return rc ? rc : err_wrap(e, code, "'%.*s'", LONG, key);
}

/* chunk_end - the result of a read of x's object, with its version if code is 0. If the store could
 * not read it, it exists, so it is not absent; the message of the store names the key. */
static int chunk_end(const struct chunk_location *x, const char *key, int code,
		     uint64_t version, struct err *e)
{
	int rc = 0;

	if (code == 0)
		return zr_version_agree(x->p, x->object, version)
			       ? 0
			       : err_set(e, -ESTALE, "'%.*s' was changed while it was read",
					 LONG, key);
	if (!x->p->remote)
		rc = chunk_gone(x, key, e);
	else if (code == -ENOENT) /* another request may take as long as the failed one */
		rc = err_set(e, -ESTALE, "'%.*s' was removed after the source was opened", LONG,
			     key);
	if (rc)
		return rc;
	if (code == -ENOENT || code == -EISDIR || code == -EACCES || code == -EXDEV ||
	    code == -ELOOP)
		code = -EIO;
	if (e)
		e->code = code;
	return code;
}

int zr_object_read(const struct chunk_location *x, uint64_t off, uint8_t *out, size_t len,
		   uint64_t *ret_version, struct err *e)
{
	uint64_t version = 0;
	char key[ZR_OBJECT_KEY];
	int rc = zr_object_name(x->p, x->object, key, e);

	if (rc)
		return rc;
	rc = store_read(x->p->s->store, key, off, out, len, &version, e);
	if (ret_version)
		*ret_version = version;
	return chunk_end(x, key, rc, version, e);
}

/* chunk_get - read a whole object of any size into m->stored. */
static int chunk_get(const struct chunk_location *x, uint64_t limit, struct zr_scratch *m,
		     struct err *e)
{
	uint64_t version = 0;
	char key[ZR_OBJECT_KEY];
	int rc = zr_object_name(x->p, x->object, key, e);

	if (rc)
		return rc;
	m->stored.max = (size_t)u64_min(limit, PTRDIFF_MAX);
	rc = store_get(x->p->s->store, key, &m->stored, &version, e);
	m->stored.max = PTRDIFF_MAX;
	if (rc == -ERANGE)
		return err_set(e, -EBADMSG, "'%.*s' has more than %" PRIu64 " bytes", LONG, key,
			       limit);
	return chunk_end(x, key, rc, version, e);
}

int chunk_location_bytes(const struct chunk_location *x, uint64_t limit, struct zr_scratch *m,
			 const uint8_t **ret, size_t *ret_len, struct err *e)
{
	const bool whole = x->where == ZR_OBJECT;
	const uint64_t len = whole ? x->size : x->len;
	char key[ZR_OBJECT_KEY];
	uint8_t *to;
	int rc;

	buf_clear(&m->stored);
	if (whole && !x->p->remote) { /* its size may not be known */
		rc = chunk_get(x, limit, m, e);
		*ret = m->stored.data;
		*ret_len = m->stored.len;
		return rc;
	}
	if (len > limit) {
		rc = zr_object_name(x->p, x->object, key, e);
		if (rc)
			return rc;
		if (len == ZR_UNREADABLE)
			return err_set(e, -EIO, "'%.*s' exists but cannot be read", LONG, key);
		return whole ? err_set(e, -EBADMSG, "'%.*s' has more than %" PRIu64 " bytes",
				       LONG, key, limit)
			     : err_set(e, -EBADMSG,
				       "'%.*s': a chunk of %" PRIu64
				       " stored bytes exceeds %" PRIu64,
				       LONG, key, len, limit);
	}
	*ret_len = (size_t)len;
	if (x->where == ZR_MEMORY) {
		*ret = x->mem + x->off;
		return 0;
	}
	to = buf_grow(&m->stored, (size_t)len);
	if (!to && len > 0)
		return err_nomem(e);
	*ret = to;
	return zr_object_read(x, x->off, to, (size_t)len, NULL, e);
}

int zr_read_stored(struct source *src, uint32_t array, uint64_t linear,
		   const struct chunk_ref *ref, uint64_t off, uint8_t *out, size_t len,
		   struct err *e)
{
	struct chunk_location x;
	uint64_t version;
	int rc = zr_find_in(src, array, linear, &x, e);

	if (rc)
		return rc;
	chunk_location_release(&x);
	if ((x.where != ZR_OBJECT && x.where != ZR_PART) || x.size == ZR_UNREADABLE ||
	    x.off != ref->off || (x.where == ZR_PART ? x.len : x.size) != ref->len)
		return err_set(e, -ESTALE, "the chunk was moved");
	rc = zr_object_read(&x, ref->off + off, out, len, &version, e);
	if (!rc && x.where == ZR_PART && x.version != version)
		return err_set(e, -ESTALE, "a shard was replaced while it was read");
	return rc;
}

/* ---- elements ---- */

/* chunk_convert - convert decoded elements in stored order to the model's elements. */
static int chunk_convert(const struct zr_place *p, const uint8_t *in, struct zr_scratch *m,
			 uint8_t *out, size_t len, struct err *e)
{
	const struct zr_dtype *t = &p->meta->dtype;
	uint64_t n = len / p->a->type.size;
	uint8_t *to = out;

	if (t->conv == ZR_FIELDS) {
		buf_clear(&m->moved);
		to = buf_grow(&m->moved, (size_t)n * t->stored); /* <= p->stored_bytes */
		if (!to)
			return err_nomem(e);
	}
	zr_rearrange(p->meta, p->array->stored, p->a->rank, p->a->chunk, t->stored, false, in,
		     to);
	if (t->conv == ZR_FIELDS)
		zr_fields(t, n, false, to, out);
	else if (t->conv == ZR_UTF32)
		return zr_utf32(out, n, p->a->type.size, t->big, e);
	return 0;
}

static int chunk_read_found(const struct chunk_location *x, struct zr_scratch *m, uint8_t *out,
			    size_t len, struct err *e)
{
	const struct zr_place *p = x->p;
	size_t whole = (size_t)p->stored_bytes, n;
	uint8_t *elems = out;
	const uint8_t *in;
	int rc = chunk_location_bytes(x, 2 * p->stored_bytes + ZR_SLACK, m, &in, &n, e);

	if (rc)
		return rc;
	if (!p->as_is) {
		elems = buf_grow(&m->elems, whole);
		if (!elems)
			return err_nomem(e);
	}
	rc = codec_chain_decode(&p->meta->chain, 0, p->meta->dtype.stored, in, n, elems, whole,
				m->codec, e);
	if (!rc && !p->as_is)
		rc = chunk_convert(p, elems, m, out, len, e);
	return rc ? zr_object_blame(x, rc, e) : 0;
}

int zr_read_chunk(struct source *src, uint32_t array, uint64_t linear, uint8_t *out, size_t len,
		  struct err *e)
{
	struct zr_data *d = zr_of(src)->data;
	struct zr_scratch *m;
	struct chunk_location x;
	int rc = zr_find_in(src, array, linear, &x, e);

	if (rc)
		return rc;
	if (x.where == ZR_NOWHERE) {
		value_repeat(out, len, x.p->a->fill, x.p->a->type.size);
		return 0;
	}
	m = zr_scratch_take(d);
	rc = m ? chunk_read_found(&x, m, out, len, e) : err_nomem(e);
	zr_scratch_give(d, m);
	chunk_location_release(&x);
	return rc;
}
