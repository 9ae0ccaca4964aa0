/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_refs.c - documents of references: kerchunk's JSON, and files of its Parquet directories.
 *
 * Properties: nothing crashes or reads outside; what is refused is refused with a message; memory
 * stays within what is allowed; every key of a document that is taken is found, and listed.
 *
 *   make fuzz TIME=60 FUZZ=refs */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nczarr/parquet/parquet.h"
#include "nczarr/refs/refs_int.h"

#define MEMORY ((uint64_t)4 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static bool refused(int rc, const struct err *e)
{
	return (rc == -EBADMSG || rc == -EOPNOTSUPP || rc == -ERANGE || rc == -ENOMEM) &&
	       e->code == rc && e->msg[0];
}

struct below {
	struct refs_index *x;
	const char *key;
	unsigned depth;
};

static bool found(void *arg, const char *name, bool is_dir, const struct refs_found *f);

static void look(struct refs_index *x, const char *key, unsigned depth)
{
	struct below b = {x, key, depth};
	struct refs_found f;
	struct err e = ERR_INIT;
	uint64_t sum = 0;

	require(x->ops->find(x, key, &f, &e) == 0 && f.version != 0);
	for (uint64_t i = 0; f.what == REFS_INLINE && i < f.len; i++)
		sum += f.data[i]; /* all of it can be read */
	require(sum <= 255 * MEMORY);
	if (f.what == REFS_AT)
		require(f.url != NULL && strlen(f.url) <= MEMORY);
	if (f.what == REFS_FOLDER && depth < 20)
		require(x->ops->list(x, key, found, &b, &e) == 0);
	x->ops->done(x, &f);
}

static bool found(void *arg, const char *name, bool is_dir, const struct refs_found *f)
{
	const struct below *b = arg;
	char key[STORE_KEY_MAX + 300];

	require(is_dir == (f == NULL));
	(void)snprintf(key, sizeof(key), "%s%s%s", b->key, *b->key ? "/" : "", name);
	if (strlen(key) <= STORE_KEY_MAX)
		look(b->x, key, b->depth + 1);
	return true;
}

static void as_json(const uint8_t *data, size_t size)
{
	struct refs_index *x = NULL;
	struct err e = ERR_INIT;
	int rc = refs_table_parse(data, size, MEMORY, &x, &e);

	require(rc == 0 || refused(rc, &e));
	if (rc)
		return;
	look(x, "", 0);
	x->ops->close(x);
}

static void as_parquet(const uint8_t *data, size_t size)
{
	static const struct pq_want want[] = {
		{"path", false}, {"offset", true}, {"size", true}, {"raw", false}};
	struct pq_table t;
	struct err e = ERR_INIT;
	int rc = pq_read(data, size, want, ARRAY_LEN(want), MEMORY, &t, &e);
	uint64_t sum = 0;

	require(rc == 0 || refused(rc, &e));
	for (size_t c = 0; rc == 0 && c < ARRAY_LEN(want); c++) {
		const struct pq_column *col = &t.columns[c];

		for (uint64_t i = 0; col->there && i < t.n; i++) {
			if (col->nulls && col->nulls[i])
				continue;
			if (want[c].is_int) {
				sum += (uint64_t)col->ints[i];
				continue;
			}
			require(col->len[i] < col->bytes.len &&
				col->at[i] <= col->bytes.len - col->len[i] - 1);
			require(col->bytes.data[col->at[i] + col->len[i]] == '\0');
		}
	}
	require(rc == 0 || sum == 0);
	pq_table_release(&t);
}

static void as_snappy(const uint8_t *data, size_t size)
{
	uint8_t out[256];
	struct err e = ERR_INIT;
	int rc = pq_snappy(data, size, out, size % sizeof(out), &e);

	require(rc == 0 || refused(rc, &e));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	as_json(data, size);
	as_parquet(data, size);
	as_snappy(data, size);
	return 0;
}
