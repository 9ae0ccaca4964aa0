/* SPDX-License-Identifier: BSD-3-Clause */
/* provenance.c - says where bytes come from, in words and numbers. */
#include "translate/chunkio/provenance.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codecs/spec/spec.h"

#define PATH_MAX_BYTES 8192

enum provenance provenance_of(const char *name)
{
	static const char *const names[] = {
		[PROVENANCE_SOURCE] = "source", [PROVENANCE_OFFSET] = "offset",
		[PROVENANCE_LENGTH] = "length", [PROVENANCE_CHAIN] = "chain",
		[PROVENANCE_PLAN] = "plan",     [PROVENANCE_PIECES] = "pieces",
	};
	const size_t prefix = sizeof(PROVENANCE_PREFIX) - 1;

	if (!name || strncmp(name, PROVENANCE_PREFIX, prefix) != 0)
		return PROVENANCE_NONE;
	for (size_t i = PROVENANCE_NONE + 1; i < ARRAY_LEN(names); i++)
		if (strcmp(name + prefix, names[i]) == 0)
			return (enum provenance)i;
	return PROVENANCE_NONE;
}

static int provenance_nothing(struct err *e)
{
	return err_set(e, -ENODATA, "no such information is available");
}

static int done(const struct buf *out, struct err *e)
{
	return buf_ok(out) ? 0 : err_set(e, -E2BIG, "it exceeds %zu bytes", out->max);
}

/* ---- where ---- */

static bool provenance_is_address(const char *s)
{
	const char *colon = strstr(s, "://");

	return colon && colon > s && !memchr(s, '/', (size_t)(colon - s));
}

/* provenance_put_plain - a path, or an address without what may be secret in it. */
static void provenance_put_plain(const char *s, struct buf *out)
{
	const char *host, *at = NULL;
	size_t n = strlen(s), head = 0;

	if (provenance_is_address(s)) {
		n = strcspn(s, "?#");
		host = strstr(s, "://") + 3;
		head = (size_t)(host - s);
		for (size_t i = head; i < n && s[i] != '/'; i++)
			if (s[i] == '@')
				at = s + i + 1;
	}
	if (at) {
		buf_put(out, s, head);
		head = (size_t)(at - s);
		s += head;
		n -= head;
	}
	buf_put(out, s, n);
}

static void put_below(const char *root, const char *key, struct buf *out)
{
	provenance_put_plain(root, out);
	if (!*key)
		return;
	if (out->len > 0 && out->data[out->len - 1] != '/')
		buf_putc(out, '/');
	buf_puts(out, key);
}

/* put_open - what a descriptor has open: bytes of a file beside the source. */
static bool put_open(int fd, struct buf *out)
{
	char name[64], path[PATH_MAX_BYTES];
	ssize_t n;

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = fd >= 0 ? readlink(name, path, sizeof(path)) : -1;
	if (n <= 0 || (size_t)n == sizeof(path) || path[0] != '/')
		return false;
	buf_put(out, path, (size_t)n);
	return true;
}

/* provenance_place - what holds a chunk's stored bytes, appended, and where in it. -EOPNOTSUPP:
 * nothing does as such. */
static int provenance_place(struct source *s, uint32_t array, uint64_t linear,
			    const struct chunk_ref *ref, struct buf *out, uint64_t *ret_off,
			    struct err *e)
{
	struct store_place at = {.off = 0};
	auto_buf key = buf_of(PATH_MAX_BYTES);
	int rc;

	at.key = &key;
	rc = source_place(s, array, linear, ref, &at, e);
	buf_putc(&key, '\0');
	if (rc == 0 && !buf_ok(&key))
		rc = err_nomem(e);
	if (rc == 0) {
		*ret_off = at.whole ? 0 : at.off;
		if (at.full)
			provenance_put_plain((const char *)key.data, out);
		else
			put_below(s->shown ? s->shown : "", (const char *)key.data, out);
	}
	if (rc == -EOPNOTSUPP && ref->where == CHUNK_RANGE && ref->blob != 0 &&
	    put_open(source_fd(s, ref->blob), out)) {
		*ret_off = ref->off;
		return 0;
	}
	return rc;
}

/* ---- chains and plans ---- */

static void provenance_put_chain(const struct codec_chain *chain, uint32_t skipped,
				 struct buf *out)
{
	struct codec_spec specs[CODEC_CHAIN_MAX];
	struct codec_chain left = {.specs = specs};

	for (uint32_t i = 0; i < chain->n && i < CODEC_CHAIN_MAX; i++)
		if (!(skipped >> i & 1))
			specs[left.n++] = chain->specs[i];
	if (left.n > 0)
		codec_spec_print(&left, out);
	else
		buf_puts(out, "none");
}

static void put_plan(const struct plan *p, struct buf *out)
{
	buf_puts(out, p->kind == PLAN_PASS && p->wrap ? "head" : plan_kind_name(p->kind));
	if ((p->kind != PLAN_PASS || p->wrap) && p->reason[0])
		buf_printf(out, ": %s", p->reason);
}

int provenance_array(const struct source *s, const struct ds_array *a, const struct plan *p,
		     enum provenance what, struct buf *out, struct err *e)
{
	if (what == PROVENANCE_SOURCE && s->shown)
		provenance_put_plain(s->shown, out);
	else if (what == PROVENANCE_CHAIN)
		provenance_put_chain(&a->chain, 0, out);
	else if (what == PROVENANCE_PLAN)
		put_plan(p, out);
	else
		return provenance_nothing(e);
	return done(out, e);
}

/* put_chunk_plan - append the plan of one chunk: the array's, or the chunk's own where that
 * differs. */
static void put_chunk_plan(const struct plan *p, const struct chunk_about *x, struct buf *out)
{
	const char *before = ": ";

	buf_puts(out, chunk_treatment_name(x->how));
	if (x->how == TREATMENT_FILL)
		buf_puts(out, ": it was never written");
	else if (x->how == TREATMENT_FRAME)
		buf_puts(out, ": it is stored differently from the rest of the array");
	else if (x->how != TREATMENT_PASS && p->reason[0])
		buf_printf(out, ": %s", p->reason);
	if (x->how != TREATMENT_PASS)
		before = "; ";
	if (x->cut > 0) {
		buf_printf(out, "%swithout the last %" PRIu64 " bytes", before, x->cut);
		before = ", ";
	}
	if (x->zeros > 0)
		buf_printf(out, "%sfollowed by %" PRIu64 " zero bytes", before, x->zeros);
}

int provenance_chunk(struct chunkio *c, struct source *s, const struct plan *p, uint32_t array,
		     uint64_t linear, enum provenance what, struct buf *out, struct err *e)
{
	const struct ds_array *a = &s->ds.arrays[array];
	struct chunk_about x;
	auto_buf path = buf_of(PATH_MAX_BYTES);
	uint64_t off = 0;
	int rc;

	if (what == PROVENANCE_NONE || what == PROVENANCE_PIECES)
		return provenance_nothing(e);
	if (p->kind == PLAN_ERROR) /* metadata is all there is */
		return provenance_array(s, a, p, what, out, e);
	rc = chunkio_about(c, array, linear, &x, e);
	if (rc == -ENOENT)
		return provenance_nothing(e);
	if (rc < 0)
		return rc;
	if (what == PROVENANCE_PLAN) {
		put_chunk_plan(p, &x, out);
		return done(out, e);
	}
	if (what == PROVENANCE_CHAIN) {
		provenance_put_chain(
			&a->chain, x.ref.where == CHUNK_RANGE ? delivery_skipped(a, &x.ref) : 0,
			out);
		return done(out, e);
	}
	rc = provenance_place(s, array, linear, &x.ref, &path, &off, e);
	if (rc == 0 && !buf_ok(&path))
		rc = err_set(e, -ERANGE, "the path is too long");
	if (rc == 0 && what == PROVENANCE_SOURCE)
		buf_put(out, path.data, path.len);
	else if (rc == 0)
		buf_printf(out, "%" PRIu64, what == PROVENANCE_OFFSET ? off : x.ref.len);
	if (rc == -EOPNOTSUPP && what == PROVENANCE_SOURCE && x.how != TREATMENT_FILL)
		return provenance_array(s, a, p, what, out, e);
	return rc == -EOPNOTSUPP ? provenance_nothing(e) : rc < 0 ? rc : done(out, e);
}

int provenance_view(const struct source *s, const struct plan *plans, enum provenance what,
		    struct buf *out, struct err *e)
{
	uint32_t n[PLAN_ERROR + 1] = {0};
	bool any = false;

	if (what == PROVENANCE_SOURCE && s->shown) {
		provenance_put_plain(s->shown, out);
		return done(out, e);
	}
	if (what != PROVENANCE_PLAN)
		return provenance_nothing(e);
	for (uint32_t i = 0; i < s->ds.n_arrays; i++)
		n[plans[i].kind]++;
	for (size_t i = 0; i < ARRAY_LEN(n); i++) {
		if (n[i] > 0)
			buf_printf(out, "%s%s %" PRIu32, any ? ", " : "",
				   plan_kind_name((enum plan_kind)i), n[i]);
		any = any || n[i] > 0;
	}
	if (!any)
		buf_puts(out, "no variables");
	return done(out, e);
}

int provenance_piece(struct chunkio *c, struct source *s, uint32_t array, uint64_t linear,
		     uint64_t at, uint64_t len, struct buf *out, struct err *e)
{
	const struct ds_array *a = &s->ds.arrays[array];
	uint64_t coords[DS_RANK_MAX] = {0}, off = 0;
	struct chunk_about x;
	auto_buf path = buf_of(PATH_MAX_BYTES);
	int rc = chunkio_about(c, array, linear, &x, e);

	if (rc < 0)
		return rc;
	ds_chunk_coords(a, linear, coords);
	for (uint32_t i = 0; i < a->rank; i++)
		buf_printf(out, "%s%" PRIu64, i ? "." : "", coords[i]);
	buf_printf(out, "%s %" PRIu64 " %" PRIu64 " %s ", a->rank ? "" : "0", at, len,
		   chunk_treatment_name(x.how));
	rc = provenance_place(s, array, linear, &x.ref, &path, &off, e);
	if (rc == 0)
		buf_printf(out, "%" PRIu64 " %" PRIu64 "\n", off, x.ref.len);
	else if (rc == -EOPNOTSUPP)
		buf_puts(out, "- -\n");
	return rc == -EOPNOTSUPP ? 0 : rc;
}
