/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_keys.c - what a mount that writes a remote tree remembers of documents, in the file "base"
 * of its state directory, which may be torn, damaged or of somebody else; and keys as programs give
 * them.
 *
 * Input: a byte of what follows it; a piece, the file's bytes; a piece each, the keys of documents
 * that are written then.
 *
 * Properties: what is refused has a message; what was put is in the store, byte for byte; what
 * one process remembers is read by the next.
 *
 *   make fuzz TIME=60 FUZZ=keys */
#include <dirent.h>
#include <sys/stat.h>

#include "fusefs/write/writable_int.h"
#include "nczarr/nczarr.h"
#include "nczarr/store/store.h"
#include "tests/fuzz/fuzz.h"

#define DOC "{\"zarr_format\": 2}"
#define DOCS_MAX 4

static struct cfg cfg = {.meta_size = 1 << 16, .revalidate = 1};

static int keys_begin(const struct cfg *c, struct store *s, int dir_fd, struct zarr_keys **ret,
		      struct err *e)
{
	const struct zarr_sink_options opts = {
		.dir_fd = dir_fd, .store = s, .consolidated = -1};

	require(c == &cfg);
	return zarr_keys_begin(&opts, ret, e);
}

static const struct fs_rw rw = {
	.doc_key = zarr_doc_key,
	.remote_recover = zarr_store_recover,
	.keys_begin = keys_begin,
	.keys_put = zarr_keys_put,
	.keys_ours = zarr_keys_ours,
	.keys_gone = zarr_keys_gone,
	.keys_commit = zarr_keys_commit,
	.keys_free = zarr_keys_free,
	.doc_check = zarr_doc_check,
};
static const struct app setup = {.cfg = &cfg, .rw = &rw};

/* empty_dir - what is in it, and not in directories of it. */
static void empty_dir(int fd)
{
	DIR *d = fdopendir(dup(fd));
	const struct dirent *x;

	require(d != NULL);
	rewinddir(d);
	while ((x = readdir(d)) != NULL)
		(void)unlinkat(fd, x->d_name, 0); /* directories stay */
	(void)closedir(d);
}

static bool same(struct store *s, const char *key, const char *text)
{
	struct err e = ERR_INIT;
	struct buf b;
	bool ret;

	buf_init(&b, 1 << 16);
	ret = store_get(s, key, &b, &e) == 0 && b.len == strlen(text) &&
	      memcmp(b.data, text, b.len) == 0;
	buf_release(&b);
	return ret;
}

/* write_docs - staged and checked as when a program closes them. Returns how many of them. */
static size_t write_docs(struct rw_keys *k, struct stage *stage, struct store *s,
			 struct slice *in, char *keys[DOCS_MAX])
{
	size_t n = 0;

	while (n < DOCS_MAX && more_of(in)) {
		char *key = piece_text(in);
		struct store *over = NULL;
		struct err e = ERR_INIT;
		int rc = -EINVAL;

		if (store_key_ok(key)) {
			rc = stage_put(stage, key, (const uint8_t *)DOC, strlen(DOC), &e);
			if (rc == 0)
				rc = stage_store(stage, UINT64_MAX, s, &over, &e);
			if (rc == 0)
				rc = rw_keys_check(k, over, key, &e);
			store_close(over);
			if (rc < 0)
				failed_well(rc, &e);
		}
		if (rc == 0)
			keys[n++] = key;
		else
			free(key);
	}
	return n;
}

static void commit(struct rw_keys *k, struct stage *stage, struct store *s, char **keys,
		   size_t n)
{
	struct err e = ERR_INIT;
	uint64_t generation;
	char **left = NULL;
	size_t n_left = 0;
	int rc = stage_freeze(stage, &generation, &e);

	if (rc == -ENODATA)
		return;
	require(rc == 0);
	rc = rw_keys_commit(k, generation, &left, &n_left, &e);
	if (rc < 0) {
		failed_well(rc, &e);
		stage_thaw(stage);
	} else {
		require(stage_retire(stage, NULL, 0, &e) == 0);
	}
	/* one may be where another is a directory; documents of all are brought in line */
	if (rc == 0 && n == 1 && n_left == 0 && !strstr(keys[0], "zmetadata") &&
	    !strstr(keys[0], "zarr.json"))
		require(same(s, keys[0], DOC));
	for (size_t i = 0; i < n_left; i++)
		free(left[i]);
	free(left);
}

/* process - one that opens what is remembered. Returns 0 or why not. */
static int process(const struct rw_state *state, struct store *s, struct slice *in,
		   bool commits)
{
	struct rw_keys *k = NULL;
	struct stage *stage = NULL;
	struct err e = ERR_INIT;
	char *keys[DOCS_MAX];
	size_t n = 0;
	int fd = openat(state->dir_fd, "stage", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

	require(fd >= 0);
	rc = rw_keys_open(&setup, state, s, true, &k, &e);
	if (rc < 0)
		failed_well(rc, &e);
	if (rc == 0) {
		require(stage_open(fd, false, &stage, &e) == 0);
		rw_keys_stage(k, stage);
		n = write_docs(k, stage, s, in, keys);
		if (commits)
			commit(k, stage, s, keys, n);
	}
	for (size_t i = 0; i < n; i++)
		free(keys[i]);
	rw_keys_close(k);
	stage_close(stage);
	(void)close(fd);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char address[] = "s3://bucket/a";
	struct rw_state state = {.path = address,
				 .shown = address,
				 .dir = address,
				 .lock_fd = -1,
				 .remote = true};
	struct slice in = slice_of(data, size), base, rest;
	uint8_t how = rd_u8(&in);
	struct store *s;
	int fd;

	if (!slice_ok(&in))
		return 0;
	base = piece_of(&in);
	state.dir_fd = open(fuzz_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s = store_mem_new();
	require(state.dir_fd >= 0 && s && mkdirat(state.dir_fd, "stage", 0700) == 0);
	if (how & 1)
		require(store_mem_put(s, ".zgroup", "{}", 2) == 0);
	put_file(state.dir_fd, "base", base.p, base.len);
	rest = in;
	if (process(&state, s, &in, how & 2) == 0)
		require(process(&state, s, &rest, true) == 0);
	store_close(s);
	fd = openat(state.dir_fd, "stage", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	empty_dir(fd);
	(void)close(fd);
	empty_dir(state.dir_fd);
	require(unlinkat(state.dir_fd, "stage", AT_REMOVEDIR) == 0);
	(void)close(state.dir_fd);
	return 0;
}
