/* SPDX-License-Identifier: BSD-3-Clause */
/* A remote store that is written key by key: what is put is there byte for byte, documents of all
 * say what the others say, a service that fails anywhere loses nothing; and a store's objects as
 * files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/nczarr/sink_store.h"

#include <limits.h>

#include "nczarr/store/store.h"
#include "translate/tree/store_view.h"

#define NODE3(type) "{\"zarr_format\": 3, \"node_type\": \"" type "\"}"

/* ---- a store, a state directory, a script ---- */

struct blob_proxy {
	struct zs_box box;
	struct store *s;
	struct zarr_keys *k;
	long count, fail_from;
	bool late;
	char log[2048];
};

static int script(void *arg, enum store_mem_what what, const char *key)
{
	struct blob_proxy *f = arg;
	size_t n = strlen(f->log);

	if (what == STORE_MEM_FRESH)
		return 0;
	if (n + strlen(key) + 4 < sizeof(f->log))
		(void)snprintf(f->log + n, sizeof(f->log) - n, "%c%s ",
			       what == STORE_MEM_PUT ? '+' : '-', key);
	if (++f->count >= f->fail_from)
		return f->late ? EIO : -EIO;
	return 0;
}

static void put_mem(struct blob_proxy *f, const char *key, const char *text)
{
	assert_int_equal(store_mem_put(f->s, key, text, strlen(text)), 0);
}

static void far_init(struct blob_proxy *f, bool plain)
{
	static const char *const none[] = {NULL};

	*f = (struct blob_proxy){.fail_from = LONG_MAX};
	zs_box_init(&f->box, none);
	f->s = store_mem_new();
	assert_non_null(f->s);
	f->s->remote = true;
	store_mem_set_script(f->s, script, f, plain);
}

static void far_release(struct blob_proxy *f)
{
	store_close(f->s);
	zs_box_release(&f->box);
}

static void begin(struct blob_proxy *f, int consolidated)
{
	const struct zarr_sink_options o = {
		.dir_fd = f->box.state_fd, .store = f->s, .consolidated = consolidated};

	zs_ok(zarr_keys_begin(&o, &f->k, &e));
}

static void put_as(struct blob_proxy *f, const char *key, const char *text, uint64_t version)
{
	zs_ok(zarr_keys_put(f->k, key, (const uint8_t *)text, strlen(text), version, &e));
}

static uint64_t version_of(struct blob_proxy *f, const char *key)
{
	struct store_stat st;

	return store_stat(f->s, key, &st, NULL) ? 0 : st.version;
}

/* put - over what is there now. */
static void put(struct blob_proxy *f, const char *key, const char *text)
{
	put_as(f, key, text, version_of(f, key));
}

static int commit(struct blob_proxy *f, struct err *e)
{
	int rc = zarr_keys_commit(f->k, e);

	zarr_keys_free(f->k);
	f->k = NULL;
	return rc;
}

static void good(struct blob_proxy *f)
{
	struct err e = ERR_INIT;

	if (commit(f, &e))
		zs_die("commit", &e);
}

static const char *text_of(struct blob_proxy *f, const char *key)
{
	static char text[4][4096];
	static unsigned turn;
	char *p = text[turn++ % 4];
	struct buf b;

	buf_init(&b, 4000);
	p[0] = '\0';
	if (store_get(f->s, key, &b, NULL) == 0) {
		memcpy(p, b.data ? (const void *)b.data : "", b.len);
		p[b.len] = '\0';
	}
	buf_release(&b);
	return p;
}

static void is_json(struct blob_proxy *f, const char *key, const char *want)
{
	const char *got = text_of(f, key);
	json_t *a = NULL, *b = NULL;

	assert_int_equal(json_read(got, strlen(got), &a, NULL), 0);
	assert_int_equal(json_read(want, strlen(want), &b, NULL), 0);
	if (!json_equal(a, b))
		fail_msg("%s is %s", key, got);
	json_decref(a);
	json_decref(b);
}

/* ---- what is put ---- */

static void test_bytes(void **state)
{
	struct blob_proxy f;

	(void)state;
	far_init(&f, false);
	put_mem(&f, ".zgroup", "{}");
	put_mem(&f, "old/.zarray", "{}");
	put_mem(&f, "old/0", "x");
	put_mem(&f, "old/d/1", "y");
	put_mem(&f, "v/3", "gone");
	begin(&f, -1);
	zs_ok(zarr_keys_gone(f.k, "old", &e));
	zs_ok(zarr_keys_gone(f.k, "v/3", &e));
	zs_ok(zarr_keys_gone(f.k, "never", &e));
	put(&f, "v/.zarray", "{ \"b\":1.50,\n\"a\" : [ ] }");
	put(&f, "v/0.0", "\x01\x02");
	put(&f, "v/.zattrs", "no document");
	put(&f, "notes.txt", "");
	good(&f);
	assert_string_equal(text_of(&f, "v/.zarray"), "{ \"b\":1.50,\n\"a\" : [ ] }");
	assert_string_equal(text_of(&f, "v/0.0"), "\x01\x02");
	assert_string_equal(text_of(&f, "v/.zattrs"), "no document");
	assert_int_equal(version_of(&f, "old"), 0);
	assert_int_equal(version_of(&f, "v/3"), 0);
	assert_true(version_of(&f, "notes.txt") > 0);
	assert_true(strstr(f.log, "+v/.z") > strstr(f.log, "+v/0.0 "));
	assert_true(strstr(f.log, "-old/.zarray ") > strstr(f.log, "+v/.zarray "));
	assert_true(strstr(f.log, "-old/0 ") > strstr(f.log, "-old/.zarray "));
	far_release(&f);
}

/* An array that is removed and made again: nobody reads old chunks by the new document. */
static void test_again(void **state)
{
	struct blob_proxy f;

	(void)state;
	far_init(&f, false);
	put_mem(&f, "v/.zarray", "{\"n\": 1}");
	put_mem(&f, "v/0", "a");
	put_mem(&f, "v/1", "b");
	begin(&f, -1);
	zs_ok(zarr_keys_gone(f.k, "v", &e));
	put_as(&f, "v/.zarray", "{\"n\": 2}", version_of(&f, "v/.zarray"));
	put(&f, "v/0", "c");
	good(&f);
	assert_string_equal(f.log, "-v/.zarray -v/1 +v/0 +v/.zarray ");
	assert_string_equal(text_of(&f, "v/.zarray"), "{\"n\": 2}");
	far_release(&f);
}

/* ---- documents of all ---- */

static void test_all2(void **state)
{
	struct blob_proxy f;

	(void)state;
	far_init(&f, false);
	put_mem(&f, ".zgroup", "{\"g\": 0}");
	put_mem(&f, ".zmetadata",
		"{\"metadata\": {\".zgroup\": {\"g\": 0}, \"a/.zarray\": {\"n\": 1}, "
		"\"b/.zarray\":"
		" {\"n\": 2}, \"b/.zattrs\": {}}, \"zarr_consolidated_format\": 1}");
	put_mem(&f, "g/.zmetadata", "{\"metadata\": {}}");
	put_mem(&f, "b/.zarray", "{\"n\": 2}");
	put_mem(&f, "b/.zattrs", "{}");
	begin(&f, -1);
	put(&f, "a/.zarray", "{\"n\": 10}");
	put(&f, "g/v/.zarray", "{\"n\": 3}");
	put(&f, "g/v/0", "x");
	zs_ok(zarr_keys_gone(f.k, "b/.zattrs", &e));
	good(&f);
	is_json(&f, ".zmetadata",
		"{\"metadata\": {\".zgroup\": {\"g\": 0}, \"a/.zarray\": {\"n\": 10}, "
		"\"b/.zarray\": {\"n\": 2}, \"g/v/.zarray\": {\"n\": 3}}, "
		"\"zarr_consolidated_format\": 1}");
	is_json(&f, "g/.zmetadata", "{\"metadata\": {\"v/.zarray\": {\"n\": 3}}}");
	assert_true(strstr(f.log, "+.zmetadata ") > strstr(f.log, "+a/.zarray "));
	/* chunks alone: it is not looked at; a writer's own that is right stays as it is */
	f.log[0] = '\0';
	begin(&f, -1);
	put(&f, "a/0", "y");
	good(&f);
	assert_string_equal(f.log, "+a/0 ");
	begin(&f, -1);
	put(&f, "g/v/.zarray", "{\"n\": 4}");
	put(&f, "g/.zmetadata", "{\"metadata\":{\"v/.zarray\":{\"n\":4}}}");
	good(&f);
	assert_string_equal(text_of(&f, "g/.zmetadata"),
			    "{\"metadata\":{\"v/.zarray\":{\"n\":4}}}");
	/* a directory goes */
	begin(&f, -1);
	zs_ok(zarr_keys_gone(f.k, "b", &e));
	good(&f);
	assert_null(strstr(text_of(&f, ".zmetadata"), "b/.zarray"));
	/* never */
	begin(&f, 0);
	put(&f, "a/.zattrs", "{}");
	good(&f);
	assert_int_equal(version_of(&f, ".zmetadata"), 0);
	far_release(&f);
}

static void test_all3(void **state)
{
	struct blob_proxy f;

	(void)state;
	far_init(&f, false);
	put_mem(&f, "zarr.json",
		"{\"node_type\": \"group\", \"consolidated_metadata\": {\"kind\": \"inline\", "
		"\"metadata\": {\"a\": {\"n\": 1}, \"g/v\": {\"n\": 2}, \"g\": {\"n\": 3}}}}");
	put_mem(&f, "g/v/zarr.json", "{\"n\": 2}");
	begin(&f, -1);
	put(&f, "a/zarr.json", "{\"n\": 5, \"consolidated_metadata\": 1}");
	put(&f, "b/zarr.json", NODE3("array"));
	zs_ok(zarr_keys_gone(f.k, "g/v/zarr.json", &e));
	good(&f);
	is_json(&f, "zarr.json",
		"{\"node_type\": \"group\", \"consolidated_metadata\": {\"kind\": \"inline\", "
		"\"metadata\": {\"a\": {\"n\": 5}, \"g\": {\"n\": 3}, "
		"\"b\": " NODE3("array") "}}}");
	/* all of a depth stand together, by group */
	assert_true(strstr(text_of(&f, "zarr.json"), "\"b\"") != NULL);
	f.log[0] = '\0';
	begin(&f, 0);
	put(&f, "b/zarr.json", NODE3("group"));
	good(&f);
	is_json(&f, "zarr.json", "{\"node_type\": \"group\"}");
	far_release(&f);
}

/* ---- others ---- */

static void test_conditions(void **state)
{
	(void)state;
	for (int plain = 0; plain < 2; plain++) {
		struct err e = ERR_INIT;
		struct blob_proxy f;
		uint64_t was;

		far_init(&f, plain);
		put_mem(&f, "v/.zarray", "{\"n\": 1}");
		was = version_of(&f, "v/.zarray");
		put_mem(&f, "v/.zarray", "{\"theirs\": 1}");
		begin(&f, -1);
		put(&f, "v/0", "x");
		put_as(&f, "v/.zarray", "{\"n\": 2}", was);
		assert_int_equal(commit(&f, &e), -ESTALE);
		assert_non_null(strstr(e.msg, "v/.zarray"));
		assert_int_equal(f.count, 0);
		assert_int_equal(zarr_sink_pending("", f.box.state_fd, NULL), 0);
		/* the same bytes are no conflict: they may be ours, put before */
		begin(&f, -1);
		put_as(&f, "v/.zarray", "{\"theirs\": 1}", was);
		put_as(&f, "w/.zarray", "{}", 0);
		good(&f);
		begin(&f, -1);
		put_as(&f, "w/.zarray", "{ }", 0);
		assert_int_equal(commit(&f, &e), -ESTALE);
		far_release(&f);
	}
}

/* A document of all that changes between two looks at it can be taken up. */
static int meddling(void *arg, enum store_mem_what what, const char *key)
{
	struct blob_proxy *f = arg;

	if (what == STORE_MEM_FRESH && strcmp(key, ".zmetadata") == 0 && ++f->count == 2)
		put_mem(f, ".zmetadata", "{\"metadata\": {\"theirs/.zarray\": {}}}");
	return 0;
}

static void test_again_later(void **state)
{
	struct err e = ERR_INIT;
	struct blob_proxy f;

	(void)state;
	far_init(&f, false);
	put_mem(&f, ".zmetadata", "{\"metadata\": {}}");
	store_mem_set_script(f.s, meddling, &f, false);
	begin(&f, -1);
	put(&f, "v/.zarray", "{}");
	assert_int_equal(commit(&f, &e), -EAGAIN);
	begin(&f, -1);
	put(&f, "v/.zarray", "{}");
	good(&f);
	is_json(&f, ".zmetadata",
		"{\"metadata\": {\"theirs/.zarray\": {}, \"v/.zarray\": {}}}");
	far_release(&f);
}

/* ---- what fails ---- */

static void fill(struct blob_proxy *f)
{
	put_mem(f, ".zgroup", "{}");
	put_mem(f, ".zmetadata", "{\"metadata\": {\".zgroup\": {}, \"old/.zarray\": {}}}");
	put_mem(f, "old/.zarray", "{}");
	put_mem(f, "old/0", "x");
	put_mem(f, "v/.zarray", "{\"n\": 1}");
	put_mem(f, "v/0", "0");
	put_mem(f, "v/1", "1");
}

/* change - as a stage tells it, time and again; versions are those of the beginning. */
static int change(struct blob_proxy *f, uint64_t zarray, struct err *e)
{
	begin(f, -1);
	assert_int_equal(zarr_keys_gone(f->k, "old", e), 0);
	assert_int_equal(zarr_keys_gone(f->k, "v/1", e), 0);
	put(f, "v/0", "A");
	put(f, "v/2", "B");
	put_as(f, "v/.zarray", "{\"n\": 2}", zarray);
	put_as(f, "w/.zarray", "{\"n\": 3}", 0);
	return commit(f, e);
}

static void test_failing(void **state)
{
	long n = 1;

	(void)state;
	for (long k = 1; k <= n; k++)
		for (int late = 0; late < 2; late++) {
			struct err e = ERR_INIT;
			struct blob_proxy f;
			uint64_t was;
			int rc;

			far_init(&f, k % 2);
			fill(&f);
			was = version_of(&f, "v/.zarray");
			f.fail_from = k;
			f.late = late;
			rc = change(&f, was, &e);
			f.fail_from = LONG_MAX;
			if (rc == 0)
				assert_true(f.count < k);
			else
				n = k + 1;
			assert_int_equal(zarr_store_recover(f.s, f.box.state_fd, &e), 0);
			/* whoever staged it does not know that it is done */
			if (change(&f, was, &e))
				zs_die("again", &e);
			assert_string_equal(text_of(&f, "v/0"), "A");
			assert_string_equal(text_of(&f, "v/2"), "B");
			assert_string_equal(text_of(&f, "v/.zarray"), "{\"n\": 2}");
			assert_int_equal(version_of(&f, "v/1"), 0);
			assert_int_equal(version_of(&f, "old/0"), 0);
			is_json(&f, ".zmetadata",
				"{\"metadata\": {\".zgroup\": {}, \"v/.zarray\": {\"n\": 2}, "
				"\"w/.zarray\": {\"n\": 3}}}");
			far_release(&f);
		}
	assert_true(n > 7);
}

static void test_check(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(zarr_doc_check("v/.zarray", (const uint8_t *)"{}", 2, &e), 0);
	assert_int_equal(zarr_doc_check("v/.zarray", (const uint8_t *)"[]", 2, &e), -EBADMSG);
	assert_int_equal(zarr_doc_check("v/.zarray", (const uint8_t *)"{}}", 3, &e), -EBADMSG);
	assert_int_equal(zarr_doc_check("v/.zarray", (const uint8_t *)"", 0, &e), -EBADMSG);
}

/* ---- a store as files ---- */

struct names {
	char text[512];
	uint64_t next;
	size_t most;
};

static bool add_name(void *arg, const char *name, uint64_t id, bool is_dir,
		     const struct view_attr *attr, uint64_t next)
{
	struct names *n = arg;
	size_t len = strlen(n->text);

	assert_true(id > VIEW_ROOT);
	assert_true(!attr || attr->id == id);
	(void)snprintf(n->text + len, sizeof(n->text) - len, "%s%s ", name, is_dir ? "/" : "");
	n->next = next;
	return --n->most > 0;
}

static void look(struct view *v, uint64_t dir, const char *name, struct view_attr *ret)
{
	struct err e = ERR_INIT;

	if (v->ops->lookup(v, dir, name, strlen(name), ret, &e))
		zs_die(name, &e);
}

static void test_view(void **state)
{
	const struct stat st = {.st_mode = S_IFDIR | 0644, .st_uid = 7};
	struct view_attr v, a, b, x;
	struct names n = {.most = 100};
	struct err e = ERR_INIT;
	uint8_t room[16];
	struct view *w;
	struct span s;
	struct blob_proxy f;

	(void)state;
	far_init(&f, false);
	fill(&f);
	assert_int_equal(store_view_open(f.s, &st, 0, &w, &e), 0);
	assert_int_equal(w->ops->list(w, VIEW_ROOT, 0, true, add_name, &n, &e), 0);
	assert_string_equal(n.text, ".zgroup .zmetadata old/ v/ ");
	n = (struct names){.most = 1};
	assert_int_equal(w->ops->list(w, VIEW_ROOT, 0, false, add_name, &n, &e), 0);
	n.most = 1;
	assert_int_equal(w->ops->list(w, VIEW_ROOT, n.next, false, add_name, &n, &e), 0);
	assert_string_equal(n.text, ".zgroup .zmetadata ");
	look(w, VIEW_ROOT, "v", &v);
	assert_true(v.is_dir && v.mode == 0755 && v.uid == 7);
	look(w, v.id, "0", &a);
	assert_true(!a.is_dir && a.size == 1 && a.mode == 0644);
	look(w, v.id, "0", &b);
	assert_int_equal(a.id, b.id);
	assert_int_equal(w->ops->parent(w, v.id), VIEW_ROOT);
	assert_int_equal(w->ops->getattr(w, a.id, &x, &e), 0);
	assert_int_equal(x.size, 1);
	assert_int_equal(w->ops->read(w, a.id, 0, 16, room, &s, &e), 0);
	assert_int_equal(s.len, 1);
	assert_int_equal(room[0], '0');
	assert_int_equal(w->ops->read(w, a.id, 1, 16, room, &s, &e), 0);
	assert_int_equal(s.len, 0);
	/* another version is another file */
	put_mem(&f, "v/0", "zz");
	assert_int_equal(w->ops->read(w, a.id, 0, 16, room, &s, &e), -ESTALE);
	look(w, v.id, "0", &b);
	assert_int_not_equal(a.id, b.id);
	assert_int_equal(w->ops->lookup(w, v.id, "9", 1, &x, &e), -ENOENT);
	assert_int_equal(w->ops->lookup(w, b.id, "9", 1, &x, &e), -ENOTDIR);
	assert_int_equal(w->ops->lookup(w, v.id, "..", 2, &x, &e), -ENOENT);
	assert_int_equal(w->ops->getattr(w, 12345, &x, &e), -ESTALE);
	assert_int_equal(w->ops->list(w, b.id, 0, true, add_name, &n, &e), -ENOTDIR);
	/* directories that are known are not asked for */
	assert_int_equal(w->ops->lookup(w, VIEW_ROOT, "n", 1, &x, &e), -ENOENT);
	assert_int_equal(store_view_dirs(w, "n/c/0/1", &e), 0);
	look(w, VIEW_ROOT, "n", &x);
	look(w, x.id, "c", &x);
	assert_true(x.is_dir);
	for (int i = 0; i < 5000; i++) { /* many are found as well */
		char name[16];

		(void)snprintf(name, sizeof(name), "%d", i);
		put_mem(&f, name, "");
		look(w, VIEW_ROOT, name, &x);
	}
	look(w, v.id, "0", &a);
	assert_int_equal(a.id, b.id);
	w->ops->close(w);
	far_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),      cmocka_unit_test(test_again),
		cmocka_unit_test(test_all2),       cmocka_unit_test(test_all3),
		cmocka_unit_test(test_conditions), cmocka_unit_test(test_again_later),
		cmocka_unit_test(test_failing),    cmocka_unit_test(test_check),
		cmocka_unit_test(test_view),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
