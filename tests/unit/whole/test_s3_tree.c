/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects of a remote tree, written as files: what is staged comes to the store as it is, a
 * document only over what it was written over, and what is remembered of that survives a process,
 * a torn record and damage. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "fusefs/write/writable_int.h"
#include "nczarr/nczarr.h"
#include "nczarr/store/store.h"
#include "translate/contract/view.h"

#define GROUP "{\"zarr_format\": 2}"
#define OTHER "{\"zarr_format\":2}"
#define ATTRS "{\"a\": 1}"

static char address[] = "s3://bucket/a/tree";
static char top[] = "/tmp/rw_keys.XXXXXX";
static const char *const ours[] = {"base", "base.new"};

static struct cfg cfg = {.meta_size = 1 << 20, .revalidate = 1};
static struct fs_rw rw;
static struct app setup = {.cfg = &cfg, .rw = &rw};

/* tree - a store, a state directory and a stage, as a mount has them. */
struct tree {
	struct rw_state state;
	struct store *store;
	struct stage *stage;
	struct rw_keys *keys;
	int stage_fd;
};

static int keys_begin(const struct cfg *c, struct store *s, int dir_fd, struct zarr_keys **ret,
		      struct err *e)
{
	const struct zarr_sink_options opts = {
		.dir_fd = dir_fd, .store = s, .consolidated = -1};

	assert_ptr_equal(c, &cfg);
	return zarr_keys_begin(&opts, ret, e);
}

static int set_up(void **state)
{
	(void)state;
	rw = (struct fs_rw){
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
	return mkdtemp(top) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return rmdir(top);
}

static int opened(struct tree *t, bool empty, struct err *e)
{
	int rc = rw_keys_open(&setup, &t->state, t->store, empty, &t->keys, e);

	if (rc == 0)
		rw_keys_stage(t->keys, t->stage);
	return rc;
}

static void begin(struct tree *t)
{
	struct err e = ERR_INIT;

	*t = (struct tree){.state = {.path = address,
				     .shown = address,
				     .dir = top,
				     .dir_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
				     .lock_fd = -1,
				     .remote = true}};
	assert_true(t->state.dir_fd >= 0);
	t->store = store_mem_new();
	assert_int_equal(store_mem_put(t->store, ".zgroup", GROUP, strlen(GROUP)), 0);
	assert_int_equal(store_mem_put(t->store, "v/0", "old", 3), 0);
	assert_int_equal(mkdirat(t->state.dir_fd, "stage", 0700), 0);
	t->stage_fd = openat(t->state.dir_fd, "stage", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(stage_open(t->stage_fd, false, &t->stage, &e), 0);
	assert_int_equal(opened(t, false, &e), 0);
}

/* empty_dir - what a test left in the state directory, or in the stage. */
static void empty_dir(int fd)
{
	char name[32];

	for (int i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof(name), "log.%d", i);
		(void)unlinkat(fd, name, 0);
		(void)snprintf(name, sizeof(name), "%d", i);
		(void)unlinkat(fd, name, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		(void)unlinkat(fd, ours[i], 0);
}

static void end(struct tree *t)
{
	rw_keys_close(t->keys);
	stage_close(t->stage);
	store_close(t->store);
	empty_dir(t->stage_fd);
	empty_dir(t->state.dir_fd);
	assert_int_equal(unlinkat(t->state.dir_fd, "stage", AT_REMOVEDIR), 0);
	(void)close(t->stage_fd);
	(void)close(t->state.dir_fd);
}

/* staged - a file as a program wrote it, checked as when it was closed. */
static int staged(struct tree *t, const char *key, const char *text, struct err *e)
{
	struct store *over = NULL;
	int rc = stage_put(t->stage, key, (const uint8_t *)text, strlen(text), e);

	assert_int_equal(rc, 0);
	rc = stage_store(t->stage, UINT64_MAX, t->store, &over, e);
	assert_int_equal(rc, 0);
	rc = rw_keys_check(t->keys, over, key, e);
	store_close(over);
	return rc;
}

static int committed(struct tree *t, char ***left, size_t *n_left, struct err *e)
{
	uint64_t generation;
	int rc;

	*left = NULL;
	*n_left = 0;
	assert_int_equal(stage_freeze(t->stage, &generation, e), 0);
	rc = rw_keys_commit(t->keys, generation, left, n_left, e);
	if (rc < 0)
		stage_thaw(t->stage);
	else
		assert_int_equal(stage_retire(t->stage, NULL, 0, e), 0);
	return rc;
}

static void commits(struct tree *t)
{
	struct err e = ERR_INIT;
	char **left;
	size_t n;

	if (committed(t, &left, &n, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(n, 0);
	free(left);
}

static void has(struct tree *t, const char *key, const char *text)
{
	struct err e = ERR_INIT;
	struct buf b;

	buf_init(&b, 1 << 20);
	assert_int_equal(store_get(t->store, key, &b, &e), text ? 0 : -ENOENT);
	if (text) {
		assert_int_equal(b.len, strlen(text));
		assert_memory_equal(b.data, text, b.len);
	}
	buf_release(&b);
}

static void test_put_and_gone(void **state)
{
	struct err e = ERR_INIT;
	struct tree t;
	struct view *v;

	(void)state;
	begin(&t);
	assert_int_equal(staged(&t, "w/0", "chunk", &e), 0);
	assert_int_equal(staged(&t, ".zattrs", ATTRS, &e), 0);
	assert_int_equal(stage_gone(t.stage, "v", &e), 0);
	assert_int_equal(stage_mkdir(t.stage, "nothing", &e), 0);
	assert_int_equal(faccessat(t.state.dir_fd, "base", F_OK, 0), 0);
	commits(&t);
	has(&t, "w/0", "chunk");
	has(&t, ".zattrs", ATTRS);
	has(&t, "v/0", NULL);
	/* nothing waits: nothing is remembered */
	assert_int_equal(faccessat(t.state.dir_fd, "base", F_OK, 0), -1);
	assert_int_equal(rw_keys_snapshot(t.keys, &v, &e), 0);
	v->ops->close(v);
	end(&t);
}

/* What has a passing name is said to be left. */
static void test_passing(void **state)
{
	struct err e = ERR_INIT;
	struct tree t;
	char **left;
	size_t n;

	(void)state;
	begin(&t);
	assert_int_equal(staged(&t, "v/1.partial", "x", &e), 0);
	assert_int_equal(staged(&t, "v/__atomic1", "x", &e), 0);
	assert_int_equal(staged(&t, "v/.partial", "x", &e), 0); /* nothing before it */
	assert_int_equal(committed(&t, &left, &n, &e), 0);
	assert_int_equal(n, 2);
	assert_string_equal(left[0], "v/1.partial\tit is the name of a temporary file");
	assert_string_equal(left[1], "v/__atomic1\tit is the name of a temporary file");
	for (size_t i = 0; i < n; i++)
		free(left[i]);
	free(left);
	has(&t, "v/1.partial", NULL);
	has(&t, "v/.partial", "x");
	end(&t);
}

static void test_checks(void **state)
{
	struct err e = ERR_INIT;
	struct tree t;
	char key[1100];

	(void)state;
	begin(&t);
	memset(key, 'k', sizeof(key) - 1);
	key[1017] = '\0'; /* behind "a/tree/" */
	assert_int_equal(rw_keys_check(t.keys, t.store, key, &e), 0);
	key[1017] = 'k';
	key[1018] = '\0';
	assert_int_equal(rw_keys_check(t.keys, t.store, key, &e), -ENAMETOOLONG);
	assert_non_null(strstr(e.msg, "a key in S3 has at most 1024 bytes"));
	assert_int_equal(staged(&t, "v/.zarray", "{no", &e), -EINVAL);
	assert_int_equal(e.code, -EINVAL);
	assert_true(e.msg[0] != '\0');
	assert_int_equal(rw_keys_check(t.keys, t.store, "none/.zarray", &e), -ENOENT);
	end(&t);
}

/* A document that somebody else wrote meanwhile is not written over. */
static void test_meanwhile(void **state)
{
	struct err e = ERR_INIT;
	struct tree t;
	char **left;
	size_t n;

	(void)state;
	begin(&t);
	assert_int_equal(staged(&t, ".zgroup", OTHER, &e), 0);
	assert_int_equal(staged(&t, ".zgroup", OTHER, &e), 0); /* it is known already */
	assert_int_equal(store_mem_put(t.store, ".zgroup", GROUP " ", strlen(GROUP) + 1), 0);
	assert_int_equal(committed(&t, &left, &n, &e), -ESTALE);
	assert_non_null(strstr(e.msg, ".zgroup"));
	has(&t, ".zgroup", GROUP " ");
	end(&t);
}

/* The next process knows what a document was, also behind a record that is torn. */
static void test_next_process(void **state)
{
	struct err e = ERR_INIT;
	struct tree t;
	char **left;
	size_t n;
	int fd;

	(void)state;
	begin(&t);
	assert_int_equal(staged(&t, ".zgroup", OTHER, &e), 0);
	fd = openat(t.state.dir_fd, "base", O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(write(fd,
			       "\0"
			       "0123456789abcd",
			       15),
			 15);
	(void)close(fd);
	assert_int_equal(staged(&t, ".zattrs", ATTRS, &e), 0);
	rw_keys_close(t.keys);
	assert_int_equal(opened(&t, false, &e), 0);
	assert_int_equal(store_mem_put(t.store, ".zattrs", ATTRS " ", strlen(ATTRS) + 1), 0);
	assert_int_equal(committed(&t, &left, &n, &e), -ESTALE);
	assert_non_null(strstr(e.msg, ".zattrs"));
	end(&t);
}

/* A commit of which no end is known put this: it is not somebody else's. */
static void test_put_before(void **state)
{
	static const char other[] = OTHER;
	uint64_t sum = 14695981039346656037u;
	struct err e = ERR_INIT;
	char record[64];
	struct tree t;
	int fd, n;

	(void)state;
	begin(&t);
	assert_int_equal(staged(&t, ".zgroup", OTHER, &e), 0);
	for (size_t i = 0; i + 1 < sizeof(other); i++)
		sum = (sum ^ (uint8_t)other[i]) * 1099511628211u;
	n = snprintf(record, sizeof(record), "%c#%016llx .zgroup", 0, (unsigned long long)sum);
	fd = openat(t.state.dir_fd, "base", O_WRONLY | O_APPEND | O_CLOEXEC);
	for (int i = 0; i < 2; i++) /* twice is once */
		assert_int_equal(write(fd, record, (size_t)n + 1), n + 1);
	(void)close(fd);
	assert_int_equal(store_mem_put(t.store, ".zgroup", OTHER, strlen(OTHER)), 0);
	rw_keys_close(t.keys);
	assert_int_equal(opened(&t, false, &e), 0);
	assert_int_equal(
		stage_put(t.stage, ".zgroup", (const uint8_t *)GROUP, strlen(GROUP), &e), 0);
	commits(&t);
	has(&t, ".zgroup", GROUP);
	end(&t);
}

/* What was written while a commit ran is for what that commit put. */
static void test_written_meanwhile(void **state)
{
	struct err e = ERR_INIT;
	uint64_t generation;
	struct tree t;
	char **left;
	size_t n;

	(void)state;
	begin(&t);
	assert_int_equal(staged(&t, ".zgroup", OTHER, &e), 0);
	assert_int_equal(stage_freeze(t.stage, &generation, &e), 0);
	assert_int_equal(staged(&t, ".zgroup", GROUP, &e), 0);
	assert_int_equal(rw_keys_commit(t.keys, generation, &left, &n, &e), 0);
	free(left);
	assert_int_equal(stage_retire(t.stage, NULL, 0, &e), 0);
	has(&t, ".zgroup", OTHER);
	assert_int_equal(faccessat(t.state.dir_fd, "base", F_OK, 0), 0);
	rw_keys_close(t.keys);
	assert_int_equal(opened(&t, false, &e), 0);
	commits(&t);
	has(&t, ".zgroup", GROUP);
	end(&t);
}

/* stat_closing - while the store is asked a program closes another document. */
static struct tree *closing;
static int (*plain_stat)(struct store *s, const char *key, struct store_stat *ret, struct err *e);
static int closed;

static int stat_closing(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	struct tree *t = closing;
	struct err other = ERR_INIT;

	closing = NULL;
	if (t && strcmp(key, ".zgroup") == 0) {
		assert_int_equal(staged(t, ".zattrs", "{}", &other), 0);
		closed++;
	}
	closing = t;
	return plain_stat(s, key, ret, e);
}

/* A document is closed while a commit asks the store: neither waits for the other. */
static void test_closed_meanwhile(void **state)
{
	static struct store_ops ops;
	struct err e = ERR_INIT;
	uint64_t generation;
	struct tree t;
	char **left;
	size_t n;

	(void)state;
	(void)alarm(60); /* the mutex would be taken twice */
	begin(&t);
	ops = *t.store->ops;
	plain_stat = ops.stat;
	ops.stat = stat_closing;
	t.store->ops = &ops;
	assert_int_equal(staged(&t, ".zgroup", OTHER, &e), 0);
	assert_int_equal(stage_freeze(t.stage, &generation, &e), 0);
	assert_int_equal(staged(&t, ".zgroup", GROUP, &e), 0);
	closing = &t;
	assert_int_equal(rw_keys_commit(t.keys, generation, &left, &n, &e), 0);
	closing = NULL;
	assert_true(closed > 0);
	free(left);
	assert_int_equal(stage_retire(t.stage, NULL, 0, &e), 0);
	has(&t, ".zgroup", OTHER);
	commits(&t);
	has(&t, ".zgroup", GROUP);
	has(&t, ".zattrs", "{}");
	end(&t);
	(void)alarm(0);
}

/* Damaged records say nothing; a list that is no file is an error. */
static void test_damaged_list(void **state)
{
	static const char bad[] = "x\0"
				  "0123456789abcdeg .zgroup\0"
				  "0123456789abcdef_.zgroup\0"
				  "0123456789abcdef ../up\0"
				  "#0123456789abcdef .zgroup\0" /* of nothing known */
				  "0123456789abcdef .zgroup\0"
				  "0000000000000001 .zgroup"; /* the first holds */
	struct err e = ERR_INIT;
	struct tree t;
	char **left;
	size_t n;
	int fd;

	(void)state;
	begin(&t);
	rw_keys_close(t.keys);
	fd = openat(t.state.dir_fd, "base", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, bad, sizeof(bad)), sizeof(bad));
	assert_int_equal(opened(&t, false, &e), 0);
	assert_int_equal(staged(&t, ".zgroup", OTHER, &e), 0);
	assert_int_equal(committed(&t, &left, &n, &e), -ESTALE); /* it never was that version */
	rw_keys_close(t.keys);
	assert_int_equal(ftruncate(fd, ((off_t)256 << 20) + 1), 0);
	(void)close(fd);
	assert_int_equal(opened(&t, false, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "/base' is damaged"));
	assert_int_equal(unlinkat(t.state.dir_fd, "base", 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", t.state.dir_fd, "base"), 0);
	assert_int_equal(opened(&t, false, &e), -ELOOP);
	assert_non_null(strstr(e.msg, "/base'"));
	t.keys = NULL;
	end(&t);
}

/* A state directory that takes nothing: what was written is refused, not half remembered. */
static void test_cannot_note(void **state)
{
	struct err e = ERR_INIT;
	struct tree t;

	(void)state;
	begin(&t);
	assert_int_equal(mkdirat(t.state.dir_fd, "base", 0700), 0);
	assert_int_equal(staged(&t, ".zgroup", OTHER, &e), -EISDIR);
	assert_non_null(strstr(e.msg, "/base'"));
	assert_int_equal(unlinkat(t.state.dir_fd, "base", AT_REMOVEDIR), 0);
	end(&t);
}

static void test_no_tree(void **state)
{
	struct err e = ERR_INIT;
	struct tree t;

	(void)state;
	begin(&t);
	rw_keys_close(t.keys);
	store_close(t.store);
	t.store = store_mem_new();
	t.keys = NULL;
	assert_int_equal(opened(&t, false, &e), -ENOENT);
	assert_string_equal(e.msg, "'s3://bucket/a/tree': no Zarr store exists there (-o "
				   "rw,create creates one)");
	assert_int_equal(opened(&t, true, &e), 0);
	end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put_and_gone),
		cmocka_unit_test(test_passing),
		cmocka_unit_test(test_checks),
		cmocka_unit_test(test_meanwhile),
		cmocka_unit_test(test_next_process),
		cmocka_unit_test(test_put_before),
		cmocka_unit_test(test_written_meanwhile),
		cmocka_unit_test(test_closed_meanwhile),
		cmocka_unit_test(test_damaged_list),
		cmocka_unit_test(test_cannot_note),
		cmocka_unit_test(test_no_tree),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
