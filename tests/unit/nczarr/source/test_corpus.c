/* SPDX-License-Identifier: BSD-3-Clause */
/* Every tree and archive of a corpus through the source: it opens, and then its model is sound and
 * every chunk can be read, or it is refused with a message that is expected here. Skips when there
 * is no corpus. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "nczarr/nczarr.h"

#include <cmocka.h>

static const struct source_ops *const formats[] = {&zarr_source_ops};

/* Those that nobody can present, and a part of what is said about them. */
static const struct {
	const char *path, *message;
} refusals[] = {
	{"v2__array_pcodec_C.zarr", "'.zarray': codec 'pcodec' is not supported"},
	{"v3__array_optional.zarr", "'array/zarr.json': data type 'optional' is not supported"},
	/* a scalar with a dimension, and a chunk of six elements */
	{"ref_noshape.file.zip", "'v/.zattrs': 1 dimension names are given for 0 dimensions"},
};

static const char *corpus(void)
{
	const char *dir = getenv("NCZARRFS_CORPUS");

	return dir ? dir : "../shared/corpus";
}

static const char *refusal(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
		if (strstr(path, refusals[i].path))
			return refusals[i].message;
	return NULL;
}

/* sound - what views rely on. */
static void sound(const struct dataset *ds)
{
	assert_true(ds->n_groups >= 1);
	assert_int_equal(ds->groups[0].parent, DS_NONE);
	assert_non_null(ds->format);
	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		const struct ds_array *a = &ds->arrays[i];

		assert_true(a->group < ds->n_groups);
		assert_true(a->name[0] != '\0' && !strchr(a->name, '/'));
		assert_int_equal(a->key, i + 1);
		assert_null(a->unreadable);
		if (dt_is_vlen(&a->type))
			assert_int_equal(a->access, DS_VARIABLE);
		else
			assert_non_null(a->fill);
		for (uint32_t d = 0; d < a->rank; d++) {
			assert_true(a->dims[d] < ds->n_dims);
			assert_int_equal(ds->dims[a->dims[d]].len, a->shape[d]);
			for (uint32_t k = 0; k < d; k++)
				assert_false(a->dims[k] == a->dims[d] &&
					     ds->dims[a->dims[d]].phony);
		}
		for (uint32_t k = 0; k < a->n_attrs; k++)
			assert_true(a->attrs[k].data || a->attrs[k].strings);
	}
}

/* read_all - every chunk of an array; the number of those that cannot be read. */
static uint64_t read_all(struct source *s, uint32_t array, struct err *e)
{
	const struct ds_array *a = &s->ds.arrays[array];
	uint8_t *room = malloc((size_t)a->chunk_bytes + 1);
	uint64_t bad = 0;

	assert_non_null(room);
	for (uint64_t i = 0; i < a->n_chunks && i < 500; i++) {
		struct buf b;
		int rc;

		buf_init(&b, (size_t)64 << 20);
		rc = dt_is_vlen(&a->type)
			     ? source_read_vlen(s, array, i, &b, e)
			     : source_read_chunk(s, array, i, room, (size_t)a->chunk_bytes, e);
		buf_release(&b);
		bad += rc != 0;
	}
	free(room);
	return bad;
}

struct counts {
	unsigned opened, refused, unexpected;
};

static void one(const char *path, struct counts *n)
{
	struct source_options opts = {.max_chunk_bytes = (uint64_t)64 << 20,
				      .max_index_bytes = (uint64_t)64 << 20,
				      .max_meta_bytes = (uint64_t)64 << 20};
	const char *want = refusal(path);
	struct err e = ERR_INIT;
	struct source *s = NULL;
	int rc = source_open(formats, 1, path, &opts, &s, &e);

	if (rc < 0) {
		n->refused++;
		if (!want || !strstr(e.msg, want)) {
			n->unexpected++;
			print_message("refused: %s\n", e.msg);
		}
		opts.keep_going = true;
		rc = source_open(formats, 1, path, &opts, &s, &e);
	} else {
		n->opened++;
		n->unexpected += want != NULL;
	}
	if (rc < 0)
		return;
	sound(&s->ds);
	for (uint32_t i = 0; i < s->ds.n_notes; i++)
		print_message("%s: %s\n", path, s->ds.notes[i]);
	for (uint32_t i = 0; i < s->ds.n_arrays; i++) {
		uint64_t bad = read_all(s, i, &e);

		n->unexpected += bad && !want;
		if (bad)
			print_message("%s: '%s': %llu chunks cannot be read: %s\n", path,
				      s->ds.arrays[i].name, (unsigned long long)bad, e.msg);
	}
	source_close(s);
}

static void test_all(void **state)
{
	struct counts n = {0};
	char name[4096], line[65536], *tab;
	FILE *f;

	(void)state;
	(void)snprintf(name, sizeof(name), "%s/MANIFEST.tsv", corpus());
	f = fopen(name, "r");
	if (!f) {
		print_message("no corpus at %s\n", corpus());
		skip();
	}
	while (f && fgets(line, sizeof(line), f)) {
		tab = strchr(line, '\t');
		if (!tab || (strncmp(line, "zarr", 4) != 0 && strncmp(line, "zip/", 4) != 0))
			continue;
		*tab = '\0';
		(void)snprintf(name, sizeof(name), "%s/%.2000s", corpus(), line);
		one(name, &n);
	}
	(void)fclose(f);
	print_message("%u opened, %u refused\n", n.opened, n.refused);
	assert_true(n.opened > 0);
	assert_int_equal(n.unexpected, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
