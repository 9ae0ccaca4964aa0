/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of filters that writers requested: its contents, damaged lists, and the view that shows
 * them. */
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

#include "base/os/open_beneath.h"
#include "codecs/spec/spec.h"
#include "fusefs/write/chunk_set.h"
#include "fusefs/app/codec_rules_int.h"

static char top[] = "/tmp/chains.XXXXXX";
static int dir = -1;

static int set_up(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(top));
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)close(dir);
	return rmdir(top);
}

static void put_list(const char *text, size_t n)
{
	int fd = openat(dir, COMMIT_CHAINS, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	(void)close(fd);
}

static void no_list(void)
{
	assert_int_equal(unlinkat(dir, COMMIT_CHAINS, 0), 0);
}

/* ---- recording ---- */

static const struct codec_chain *chain_of(const char *text)
{
	static struct codec_chain room[8];
	static struct arena arena;
	static size_t i;
	struct err e = ERR_INIT;

	if (i == 0)
		arena_init(&arena, 1 << 20);
	i = i % (ARRAY_LEN(room) - 1) + 1;
	room[i] = (struct codec_chain){0};
	if (text && codec_spec_parse(&arena, text, strlen(text), &room[i], &e) < 0)
		fail_msg("%s", e.msg);
	return &room[i];
}

static void noted(const char *asked, const char *stored, const char *line)
{
	const uint64_t one[1] = {4};
	struct ds_group root = {.name = "", .parent = DS_NONE};
	struct ds_array a = {.name = "v",
			     .rank = 1,
			     .type = {.kind = DT_INT, .size = 4},
			     .shape = one,
			     .chain = *chain_of(asked)};
	const struct dataset ds = {.n_groups = 1, .groups = &root, .n_arrays = 1, .arrays = &a};
	struct buf list;

	buf_init(&list, 1 << 16);
	assert_int_equal(commit_chains_note(&list, &ds, 0, chain_of(stored), false), 0);
	buf_putc(&list, '\0');
	assert_string_equal(list.data, line);
	buf_clear(&list);
	buf_clear(&list);
	assert_int_equal(commit_chains_note(&list, &ds, 0, &a.chain, true), 0);
	assert_int_equal(list.len, asked ? strlen(asked) + 4 : 4); /* with its name, or none */
	buf_clear(&list);
	a.rank = 0; /* a scalar has no filters */
	assert_int_equal(commit_chains_note(&list, &ds, 0, chain_of(stored), false), 0);
	assert_int_equal(list.len, 0);
	buf_release(&list);
}

static void test_note(void **state)
{
	(void)state;
	noted("1,5", "1,5", "/v\t\n");
	noted("1,5", "1,4", "/v\t1,5\n");
	noted(NULL, "1,4", "/v\tnone\n");
	noted("2,4|1,5", NULL, "/v\t2,4|1,5\n");
	noted(NULL, NULL, "/v\t\n");
}

/* A list without room for another line is an error; it is not truncated. */
static void test_no_room(void **state)
{
	struct ds_group root = {.name = "", .parent = DS_NONE};
	struct ds_array a = {.name = "v", .rank = 1, .type = {.kind = DT_INT, .size = 4}};
	const struct dataset ds = {.n_groups = 1, .groups = &root, .n_arrays = 1, .arrays = &a};
	struct buf list;

	(void)state;
	buf_init(&list, 2);
	assert_int_equal(commit_chains_note(&list, &ds, 0, chain_of("1,5"), false), -ENOMEM);
	buf_release(&list);
}

static void test_keep(void **state)
{
	struct err e = ERR_INIT;
	struct buf more, got;
	char text[64] = "";
	int fd;

	(void)state;
	buf_init(&more, 100);
	buf_init(&got, 100);
	assert_int_equal(commit_chains_keep(dir, &more, &e), 0); /* nothing to record: no file */
	assert_int_equal(faccessat(dir, COMMIT_CHAINS, F_OK, 0), -1);
	buf_puts(&more, "/v\t1,5\n");
	assert_int_equal(commit_chains_keep(dir, &more, &e), 0);
	assert_int_equal(commit_form_note(dir, 3, &e), 0);
	fd = openat(dir, COMMIT_CHAINS, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	(void)close(fd);
	assert_string_equal(text, "/v\t1,5\nzarr_format\t3\n");
	no_list();
	/* not through a link, nor over a directory */
	assert_int_equal(symlinkat("/etc/passwd", dir, COMMIT_CHAINS), 0);
	assert_int_equal(commit_chains_keep(dir, &more, &e), -ELOOP);
	assert_string_equal(e.msg, "'chains': too many levels of symbolic links");
	no_list();
	assert_int_equal(mkdirat(dir, COMMIT_CHAINS ".new", 0700), 0);
	assert_int_equal(commit_chains_keep(dir, &more, &e), -EISDIR);
	assert_non_null(strstr(e.msg, "'chains.new'"));
	assert_int_equal(unlinkat(dir, COMMIT_CHAINS ".new", AT_REMOVEDIR), 0);
	assert_int_equal(mkdirat(dir, COMMIT_CHAINS, 0700), 0);
	assert_true(commit_chains_keep(dir, &more, &e) < 0);
	assert_int_equal(unlinkat(dir, COMMIT_CHAINS, AT_REMOVEDIR), 0);
	(void)unlinkat(dir, COMMIT_CHAINS ".new", 0);
	buf_release(&more);
	buf_release(&got);
}

/* ---- layouts ---- */

static char store[] = "/tmp/layouts.XXXXXX";

/* doc - write store/name/file. */
static void doc(const char *name, const char *file, const char *text)
{
	char path[100];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", store, name);
	(void)mkdir(path, 0755); /* it may exist */
	(void)snprintf(path, sizeof(path), "%s/%s/%s", store, name, file);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* v2, v3 - write an array in that format. */
static void v2(const char *name, char separator)
{
	char text[400];

	(void)snprintf(text, sizeof(text),
		       "{\"zarr_format\": 2, \"shape\": [2], \"chunks\": [1], \"dtype\": "
		       "\"<i4\", \"compressor\": null, \"filters\": null, \"fill_value\": 0, "
		       "\"order\": \"C\", \"dimension_separator\": \"%c\"}",
		       separator);
	doc(name, ".zarray", text);
}

static void v3(const char *name, const char *encoding, char separator)
{
	char text[600];

	(void)snprintf(text, sizeof(text),
		       "{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": [2], "
		       "\"data_type\": \"int32\", \"chunk_grid\": {\"name\": \"regular\", "
		       "\"configuration\": {\"chunk_shape\": [1]}}, \"chunk_key_encoding\": "
		       "{\"name\": \"%s\", \"configuration\": {\"separator\": \"%c\"}}, "
		       "\"fill_value\": 0, \"codecs\": [{\"name\": \"bytes\", "
		       "\"configuration\": {\"endian\": \"little\"}}]}",
		       encoding, separator);
	doc(name, "zarr.json", text);
}

static void layouts_are(bool is_v3, const char *want)
{
	static const struct source_ops *const formats[] = {&zarr_source_ops};
	const struct source_options opts = {.cut_bytes = 1 << 20,
					    .max_chunk_bytes = 1 << 20,
					    .max_index_bytes = 1 << 20,
					    .max_meta_bytes = 1 << 20};
	const struct cfg cfg = {.command = CFG_MOUNT, .zarr.zarr3 = is_v3};
	struct source *s = NULL;
	struct err e = ERR_INIT;
	char text[64] = "";
	int fd;

	if (source_open(formats, 1, store, &opts, &s, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(commit_layouts_keep(&cfg, dir, s, &e), 0);
	source_close(s);
	fd = openat(dir, COMMIT_CHAINS, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	(void)close(fd);
	assert_string_equal(text, want);
}

/* Only arrays that differ from the mount are listed, and replace those listed before. */
static void test_layouts(void **state)
{
	struct stat a, b;

	(void)state;
	assert_non_null(mkdtemp(store));
	doc("", ".zgroup", "{\"zarr_format\": 2}");
	v2("a", '.');
	v2("b", '.');
	put_list("/v\t1,5\n@/old\t/\n/w\t1,4\n", 22);
	layouts_are(false, "/v\t1,5\n/w\t1,4\n");
	v2("b", '/');
	layouts_are(false, "/v\t1,5\n/w\t1,4\n@/b\t/\n");
	assert_int_equal(fstatat(dir, COMMIT_CHAINS, &a, 0), 0);
	layouts_are(false, "/v\t1,5\n/w\t1,4\n@/b\t/\n");
	assert_int_equal(fstatat(dir, COMMIT_CHAINS, &b, 0), 0);
	assert_int_equal(a.st_ino, b.st_ino); /* an unchanged list is not written again */
	remove_beneath(AT_FDCWD, store);
	assert_int_equal(mkdir(store, 0755), 0);
	doc("", "zarr.json",
	    "{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {}}");
	v3("a", "default", '.');
	v3("b", "v2", '/');
	layouts_are(true, "/v\t1,5\n/w\t1,4\n@/b\t/\n"); /* not nested: no default of v3 here */
	no_list();
	remove_beneath(AT_FDCWD, store);
}

/* ---- the view ---- */

static struct {
	const struct fs_rules *rules;
	char text[256]; /* of the rules that the view was opened with */
	bool zarr3, nested, strict;
	int rc;
	unsigned closed;
} seen;

static void close_view(struct view *v)
{
	seen.closed++;
	free(v);
}

static const struct view_ops plain = {.close = close_view};

static int open_view(struct source *s, const struct cfg *cfg, const struct view_request *want,
		     struct view **ret, struct err *e)
{
	struct buf b;

	assert_null(s);
	seen.rules = want->rules;
	seen.zarr3 = cfg->zarr.zarr3;
	seen.nested = cfg->zarr.nested;
	seen.strict = cfg->zarr.strict_json;
	buf_init(&b, sizeof(seen.text) - 1);
	for (uint32_t i = 0; want->rules && i < want->rules->filters.n; i++) {
		const struct codec_rule *r = &want->rules->filters.v[i];

		buf_printf(&b, "%s=", r->vars);
		if (r->none)
			buf_puts(&b, "none");
		codec_spec_print(&r->chain, &b);
		buf_putc(&b, ' ');
	}
	for (uint32_t i = 0; want->rules && i < want->rules->layouts.n; i++) {
		const struct plan_layout *x = &want->rules->layouts.v[i];

		buf_printf(&b, "%s:%c%s ", x->path, x->nested ? '/' : '.', x->lead ? "c" : "");
	}
	(void)snprintf(seen.text, sizeof(seen.text), "%.*s", (int)b.len, (const char *)b.data);
	buf_release(&b);
	if (seen.rc)
		return err_set(e, seen.rc, "as the test wants");
	*ret = alloc_array(1, sizeof(**ret));
	assert_non_null(*ret);
	(*ret)->ops = &plain;
	return 0;
}

static int opened(const struct fs_rules *rules, struct err *e)
{
	struct cfg cfg = {.command = CFG_MOUNT};
	const struct app setup = {.cfg = &cfg, .view_open = open_view};
	const struct view_request want = {.rules = rules};
	struct view *v = NULL;
	int rc = commit_tree_view(&setup, NULL, &want, dir, &v, e);

	if (rc < 0)
		return rc;
	view_close(v);
	return 0;
}

#define LIST(text) put_list(text, sizeof(text) - 1)

static void test_view(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	seen.closed = 0;
	assert_int_equal(opened(NULL, &e), 0); /* no list: unchanged */
	assert_null(seen.rules);
	LIST("/v\t1,5\n/g/w\tnone\nzarr_format\t3\n");
	assert_int_equal(opened(NULL, &e), 0);
	assert_string_equal(seen.text, "/v=1,5 /g/w=none ");
	assert_true(seen.zarr3 && seen.nested && seen.strict);
	/* the later line applies, an empty one cancels; names are not patterns */
	LIST("/v\t1,5\n/v\t2,4|1,5\n/w\t1,1\n/w\t\n/a*[b]\t1,2\n");
	assert_int_equal(opened(NULL, &e), 0);
	assert_string_equal(seen.text, "/=1,5 /v=2,4|1,5 /=1,1 /a\\*\\[b\\]=1,2 ");
	LIST("zarr_format\t2\n@/v\t/\n/w\t1,5\n@/a\t.c\n");
	assert_int_equal(opened(NULL, &e), 0);
	assert_true(!seen.zarr3 && !seen.nested);
	assert_string_equal(seen.text, "/w=1,5 /a:.c /v:/ ");
	assert_int_equal(seen.closed, 4);
	no_list();
}

/* Lines that are malformed, or without filters, are ignored; later lines count. */
static void test_view_damaged(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	LIST("\n\t\nno tab\nrelative\t1,5\n/v\tno-such-filter,,,\n/w\t1,3\n/x\t1,4");
	assert_int_equal(opened(NULL, &e), 0);
	/* the last line has no line end: it is incomplete */
	assert_string_equal(seen.text, "/w=1,3 ");
	LIST("/v\t1,5\n\0/w\t1,3\n");
	assert_int_equal(opened(NULL, &e), 0);
	assert_string_equal(seen.text, "/v=1,5 ");
	LIST("");
	assert_int_equal(opened(NULL, &e), 0);
	assert_null(seen.rules);
	no_list();
	assert_int_equal(symlinkat("/etc/passwd", dir, COMMIT_CHAINS), 0);
	assert_int_equal(opened(NULL, &e), -ELOOP);
	no_list();
}

/* Appended to the user's rules; nothing remains if the view cannot be opened. */
static void test_view_rules(void **state)
{
	const struct codec_rule rule = {.vars = "/v", .chain = *chain_of("1,1")};
	const struct fs_rules rules = {.filters = {1, &rule}};
	struct err e = ERR_INIT;

	(void)state;
	LIST("/v\t1,5\n");
	assert_int_equal(opened(&rules, &e), 0);
	assert_string_equal(seen.text, "/v=1,1 /v=1,5 ");
	seen.rc = -EIO;
	assert_int_equal(opened(&rules, &e), -EIO);
	assert_string_equal(e.msg, "as the test wants");
	seen.rc = 0;
	no_list();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_note),         cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_keep),         cmocka_unit_test(test_view),
		cmocka_unit_test(test_view_damaged), cmocka_unit_test(test_view_rules),
		cmocka_unit_test(test_layouts),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
