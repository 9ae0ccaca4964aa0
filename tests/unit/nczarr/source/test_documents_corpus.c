/* SPDX-License-Identifier: BSD-3-Clause */
/* Every array's metadata in the corpus: read, or refused with a reason that is expected; then the
 * same documents damaged, which may end in any way that leaves the program alive. Set
 * ZR_CORPUS_SHOW to see what was refused or cannot be decoded, ZR_CORPUS_DAMAGE for the number of
 * damaged copies of each document. */
#include "tests/unit/nczarr/source/nczarr_zr.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>

static struct {
	size_t n, refused, unreadable, wrong;
	bool show;
	bool damaged; /* nothing is expected of the documents */
	unsigned int damage;
} seen;

/* What may be refused, and how: a piece of the path, one of the message. */
static const char *const expected[][2] = {
	{"array_optional", "data type 'optional' is not supported"},
	{"/bad/", ""},
};

static void note(const char *path, const char *what, const char *why)
{
	if (seen.show)
		(void)fprintf(stderr, "%s: %s: %s\n", what, path, why);
}

static void refused(const char *path, int rc, const char *why)
{
	bool known = seen.damaged;

	if (seen.damaged) {
		assert_true(rc == -EOPNOTSUPP || rc == -EBADMSG || rc == -ERANGE);
		assert_true(strlen(why) > 0);
		return;
	}
	seen.refused++;
	for (size_t i = 0; i < ARRAY_LEN(expected); i++)
		known = known || (strstr(path, expected[i][0]) && strstr(why, expected[i][1]));
	if (known && (rc == -EOPNOTSUPP || rc == -EBADMSG || rc == -ERANGE)) {
		note(path, "refused", why);
		return;
	}
	(void)fprintf(stderr, "%s: %d %s\n", path, rc, why);
	seen.wrong++;
}

/* lengths - of the array, as far as codecs look at them. */
static void lengths(const json_t *doc, struct zr_meta *m, uint64_t *chunk)
{
	const json_t *list = json_get(doc, "chunks");

	m->rank = (uint32_t)json_array_size(list);
	if (m->rank > 64)
		m->rank = 64;
	for (uint32_t i = 0; i < m->rank; i++)
		if (json_u64(json_array_get(list, i), &chunk[i]) < 0)
			chunk[i] = 1;
	m->chunk = chunk;
}

static int read_v2(struct arena *a, const json_t *doc, struct zr_meta *m, uint64_t *chunk,
		   struct err *e)
{
	int rc;

	*m = (struct zr_meta){.format = 2, .fill = json_get(doc, "fill_value")};
	lengths(doc, m, chunk);
	rc = zr_dtype_v2(a, json_get(doc, "dtype"), false, &m->dtype, e);
	return rc < 0 ? rc
		      : zr_codecs_v2(a, json_get(doc, "filters"), json_get(doc, "compressor"),
				     m, e);
}

static void one_array(const char *path, const json_t *doc, int version)
{
	struct ds_array d = {.name = "a"};
	struct err e = ERR_INIT;
	struct zr_meta m;
	struct arena a;
	uint64_t chunk[64];
	int rc;

	arena_init(&a, 16 << 20);
	seen.n++;
	rc = version == 2 ? read_v2(&a, doc, &m, chunk, &e) : zr_v3_meta(&a, doc, &m, &e);
	if (rc == 0) {
		d.type = m.dtype.type;
		rc = zr_fill_value(&a, &m, &d, &e);
	}
	if (rc < 0) {
		refused(path, rc, e.msg);
	} else if (m.unreadable && !seen.damaged) {
		seen.unreadable++;
		note(path, "unreadable", m.unreadable);
	}
	arena_release(&a);
}

/* members - the arrays of consolidated metadata. */
static void members(const char *path, const json_t *map)
{
	json_t *o = (json_t *)(uintptr_t)map;

	for (void *it = json_object_iter(o); it; it = json_object_iter_next(o, it)) {
		const char *key = json_object_iter_key(it);
		const json_t *v = json_object_iter_value(it);
		size_t n = strlen(key);

		if (n >= 7 && strcmp(key + n - 7, ".zarray") == 0)
			one_array(path, v, 2);
		else if (json_is(json_get(v, "node_type"), "array"))
			one_array(path, v, 3);
	}
}

static void one_document(const char *path, const char *name, const json_t *doc)
{
	if (strcmp(name, ".zarray") == 0)
		one_array(path, doc, 2);
	else if (strcmp(name, ".zmetadata") == 0)
		members(path, json_get(doc, "metadata"));
	else if (json_is(json_get(doc, "node_type"), "array"))
		one_array(path, doc, 3);
	else
		members(path, json_get(json_get(doc, "consolidated_metadata"), "metadata"));
}

/* damage - change a few bytes to others that mean something in JSON or in metadata. */
static void damage(char *text, size_t n, unsigned int seed)
{
	static const char marks[] = "0123456789-.eE[]{},:\"\\uNIntfaOSVM<>|xr ";
	uint32_t state = seed * 2654435761u + 1;

	for (unsigned int i = 0; i < 1 + seed % 3; i++) {
		size_t at;

		state = state * 1664525u + 1013904223u;
		at = (state >> 8) % n;
		state = state * 1664525u + 1013904223u;
		text[at] = marks[(state >> 8) % (sizeof(marks) - 1)];
	}
}

static void damaged_copies(const char *path, const char *name, const char *text, size_t n)
{
	char *copy = malloc(n + 1);

	assert_non_null(copy);
	for (unsigned int i = 0; n && i < seen.damage; i++) {
		json_t *doc = NULL;

		memcpy(copy, text, n);
		damage(copy, n, i);
		if (json_read(copy, n, &doc, NULL) == 0)
			one_document(path, name, doc);
		json_decref(doc);
	}
	free(copy);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *name = path + ftw->base;
	struct err e = ERR_INIT;
	auto_free char *text = NULL;
	json_t *doc = NULL;
	size_t n;
	FILE *f;

	if (type != FTW_F || st->st_size > (1 << 20) ||
	    (strcmp(name, ".zarray") != 0 && strcmp(name, "zarr.json") != 0 &&
	     strcmp(name, ".zmetadata") != 0))
		return 0;
	text = malloc((size_t)st->st_size + 1);
	f = fopen(path, "rb");
	assert_non_null(text);
	assert_non_null(f);
	n = fread(text, 1, (size_t)st->st_size, f);
	assert_int_equal(fclose(f), 0);
	if (seen.damaged) {
		damaged_copies(path, name, text, n);
		return 0;
	}
	if (json_read(text, n, &doc, &e) < 0) {
		note(path, "not JSON", e.msg);
		return 0;
	}
	one_document(path, name, doc);
	json_decref(doc);
	return 0;
}

static void walk(void)
{
	static const char *const parts[] = {"zarr2", "zarr3", "bad"};
	const char *root = getenv("NCZARRFS_CORPUS");
	char path[4096];

	seen.n = 0;
	seen.show = getenv("ZR_CORPUS_SHOW") != NULL;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", root ? root : "../shared/corpus",
			       parts[i]);
		(void)nftw(path, visit, 16,
			   FTW_PHYS); /* a part that is not there has nothing */
	}
}

static void test_corpus(void **state)
{
	(void)state;
	walk();
	if (seen.n == 0)
		skip();
	if (seen.show)
		(void)fprintf(stderr, "%zu arrays, %zu refused, %zu unreadable\n", seen.n,
			      seen.refused, seen.unreadable);
	assert_int_equal(seen.wrong, 0);
}

static void test_damaged(void **state)
{
	const char *many = getenv("ZR_CORPUS_DAMAGE");

	(void)state;
	seen.damaged = true;
	seen.damage = many ? (unsigned int)strtoul(many, NULL, 10) : 50;
	walk();
	if (seen.n == 0)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_corpus),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
