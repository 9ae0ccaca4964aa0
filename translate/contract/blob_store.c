/* SPDX-License-Identifier: BSD-3-Clause */
/* blob_store.c - an object of a store as a blob: the version that was there when it was opened, and
 * no bytes of any other. */
#include "translate/contract/blob.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "translate/contract/store.h"

#define PARTS 64

struct store_blob {
	struct blob base;
	struct store *store; /* borrowed, or owned */
	bool owned;
	uint64_t version;
	char key[];
};

static struct store_blob *blob_store_of(struct blob *b)
{
	return CONTAINER_OF(b, struct store_blob, base);
}

static void blob_free(struct blob *b)
{
	if (blob_store_of(b)->owned)
		store_close(blob_store_of(b)->store);
	free(blob_store_of(b));
}

static int blob_store_changed(const struct store_blob *b, struct err *e)
{
	return err_set(e, -ESTALE, "'%s' was changed after it was opened", b->key);
}

static int blob_get(struct blob *blob, uint64_t off, uint8_t *out, size_t len, struct err *e)
{
	const struct store_blob *b = blob_store_of(blob);
	uint64_t version = 0, end;
	int rc;

	if (ckd_add(&end, off, (uint64_t)len) || end > b->base.size)
		return err_set(e, -EIO, "'%s' ends at %" PRIu64 ", before offset %" PRIu64,
			       b->key, b->base.size, end);
	if (len == 0)
		return 0;
	rc = store_read(b->store, b->key, off, out, len, &version, e);
	if (rc == -ENOENT || (rc == 0 && version != b->version))
		return blob_store_changed(b, e);
	/* a contradictory answer of a service proves nothing about the file: the reader would take
	 * the file for damaged, permanently */
	if (rc == -EBADMSG && e)
		e->code = -EIO;
	return rc == -EBADMSG ? -EIO : rc;
}

static void blob_ask(struct blob *blob, const struct blob_part *parts, size_t n)
{
	const struct store_blob *b = blob_store_of(blob);
	struct store_range r[PARTS];

	while (n > 0) {
		size_t some = n < PARTS ? n : PARTS;

		for (size_t i = 0; i < some; i++)
			r[i] = (struct store_range){b->key, parts[i].off, parts[i].len};
		store_want(b->store, r, some);
		parts += some;
		n -= some;
	}
}

static int blob_store_blob_same(struct blob *blob, bool remote, struct err *e)
{
	const struct store_blob *b = blob_store_of(blob);
	struct store_stat st;
	int rc = remote ? store_fresh(b->store, b->key, &st, e)
			: store_stat(b->store, b->key, &st, e);

	if (rc == -ENOENT || (rc == 0 && st.version != b->version))
		return blob_store_changed(b, e);
	return rc;
}

static void blob_drop(struct blob *blob)
{
	store_forget(blob_store_of(blob)->store, blob_store_of(blob)->key);
}

static const struct blob_ops g_ops = {
	.close = blob_free,
	.read = blob_get,
	.want = blob_ask,
	.check = blob_store_blob_same,
	.forget = blob_drop,
};

int blob_of_store(struct store *s, const char *key, struct blob **ret, struct err *e)
{
	struct store_stat st;
	struct store_blob *b;
	size_t n = strlen(key);
	int rc = store_stat(s, key, &st, e);

	if (rc < 0)
		return rc;
	if (st.is_dir)
		return err_set(e, -EISDIR, "'%s' is a folder", key);
	b = alloc_array(1, sizeof(*b) + n + 1);
	if (!b)
		return err_nomem(e);
	b->base = (struct blob){
		.ops = &g_ops, .fd = -1, .size = st.size, .version = st.version};
	b->store = s;
	b->version = st.version;
	memcpy(b->key, key, n + 1);
	*ret = &b->base;
	return 0;
}

void blob_take_store(struct blob *b)
{
	blob_store_of(b)->owned = true;
}
