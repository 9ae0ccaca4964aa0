/* SPDX-License-Identifier: BSD-3-Clause */
/* sink_store.h - Zarr stores in directories, models of what they are to be, and a sink between
 * them; for unit tests of the Zarr sink. */
#ifndef TESTS_UNIT_NCZARR_SINK_STORE_H
#define TESTS_UNIT_NCZARR_SINK_STORE_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os/open_beneath.h"
#include "nczarr/nczarr.h"
#include "nczarr/sink/sink_int.h"

#include "tests/unit/nczarr/zr_tree.h"

#define GROUP2 "{\"zarr_format\": 2}"
#define GROUP3 "{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {}}"
/* an array of Zarr v2; more: members, each with a comma in front */
#define ARRAY2(dtype, shape, chunks, fill, more)                                               \
	"{\"zarr_format\": 2, \"shape\": " shape ", \"chunks\": " chunks                       \
	", \"dtype\": \"" dtype "\", \"fill_value\": " fill                                    \
	", \"order\": \"C\", \"filters\": null, \"compressor\": null" more "}"

static const struct source_ops *const zs_formats[] = {&zarr_source_ops};
static const struct source_options zs_options = {
	.max_chunk_bytes = 1 << 20, .max_index_bytes = 1 << 20, .max_meta_bytes = 1 << 22};

struct zs_box {
	char top[64], store[96], state[96];
	int state_fd;
	struct store *was_store, *now_store;
	struct source *real, *was, *now;
	struct sink *sink;
};

static inline void zs_die(const char *what, const struct err *e)
{
	fail_msg("%s: %s", what, e->msg);
}

static inline void zs_write(const char *dir, const char *key, const void *p, size_t n)
{
	char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, key);
	for (char *c = path + strlen(dir) + 1; (c = strchr(c, '/')); c++) {
		*c = '\0';
		(void)mkdir(path, 0700);
		*c = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* zs_read - the text of a file of the store; "" it is not there. */
static inline const char *zs_read(const struct zs_box *x, const char *key)
{
	static char text[4][20000];
	static unsigned turn;
	char *p = text[turn++ % 4], path[512];
	size_t n = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", x->store, key);
	f = fopen(path, "r");
	if (f) {
		n = fread(p, 1, sizeof(text[0]) - 1, f);
		(void)fclose(f);
	}
	p[n] = '\0';
	return p;
}

static inline bool zs_exists(const struct zs_box *x, const char *key)
{
	char path[512];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", x->store, key);
	return lstat(path, &st) == 0;
}

/* zs_box_init - a store with the documents of a list, chunks follow with zs_write. */
static inline void zs_box_init(struct zs_box *x, const char *const *list)
{
	*x = (struct zs_box){.state_fd = -1};
	/* in memory where there is such a place: thousands of stores are made */
	(void)snprintf(x->top, sizeof(x->top), "%s/zs_test.XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(x->top));
	(void)snprintf(x->store, sizeof(x->store), "%s/x.zarr", x->top);
	(void)snprintf(x->state, sizeof(x->state), "%s/.x.nczarrfs", x->top);
	assert_int_equal(mkdir(x->store, 0700), 0);
	assert_int_equal(mkdir(x->state, 0700), 0);
	x->state_fd = open(x->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(x->state_fd >= 0);
	for (size_t i = 0; list[i]; i += 2)
		zs_write(x->store, list[i], list[i + 1], strlen(list[i + 1]));
}

static inline struct source *zs_model(const char *const *list, struct store **ret)
{
	struct err e = ERR_INIT;
	struct source *s = NULL;

	*ret = tree_store(list);
	if (zarr_store_open(*ret, "model", &zs_options, &s, &e))
		zs_die("model", &e);
	return s;
}

static inline struct source *zs_open(const struct zs_box *x)
{
	struct err e = ERR_INIT;
	struct source *s = NULL;

	if (source_open(zs_formats, 1, x->store, &zs_options, &s, &e))
		zs_die("open", &e);
	return s;
}

/* zs_begin - was: documents of what the store has, NULL: itself; now: of what it is to be. */
static inline void zs_begin(struct zs_box *x, const char *const *was, const char *const *now,
			    struct zarr_sink_options opts)
{
	struct err e = ERR_INIT;

	x->real = zs_open(x);
	x->was = was ? zs_model(was, &x->was_store) : zs_open(x);
	x->now = zs_model(now, &x->now_store);
	opts.dir_fd = x->state_fd;
	if (zarr_sink_open(x->store, x->real, &opts, &x->sink, &e))
		zs_die("sink", &e);
	if (x->sink->ops->begin(x->sink, x->was, x->now, &e))
		zs_die("begin", &e);
}

static inline void zs_end(struct zs_box *x)
{
	sink_close(x->sink);
	source_close(x->real);
	source_close(x->was);
	source_close(x->now);
	store_close(x->now_store);
	if (x->was_store)
		store_close(x->was_store);
	x->sink = NULL;
	x->real = x->was = x->now = NULL;
	x->was_store = x->now_store = NULL;
}

static inline void zs_box_release(struct zs_box *x)
{
	(void)close(x->state_fd);
	if (getenv("ZS_KEEP")) { /* to be looked at with other programs */
		print_message("%s\n", x->store);
		return;
	}
	if (remove_beneath_err(AT_FDCWD, x->top, NULL) < 0)
		fail_msg("'%s' is left behind", x->top);
}

static inline uint32_t zs_array_named(const struct source *s, const char *name)
{
	for (uint32_t i = 0; i < s->ds.n_arrays; i++)
		if (strcmp(s->ds.arrays[i].name, name) == 0)
			return i;
	fail_msg("no array '%s'", name);
	return 0;
}

/* zs_ok - a call that has to go well. */
#define zs_ok(call)                                                                            \
	do {                                                                                   \
		struct err e = ERR_INIT;                                                       \
		if (call)                                                                      \
			fail_msg("%s: %s", #call, e.msg);                                      \
	} while (0)

#endif
