/* SPDX-License-Identifier: BSD-3-Clause */
/* test_snapshot.c - grounds that are held and renewed; stores over views and stages. */
#include "tests/unit/translate/tree_fx.h"

static void test_grounds(void **state)
{
	struct data d = {.n = 0};
	struct snapshot *a, *b, *c;
	struct snapshots *g;
	struct err e = ERR_INIT;

	(void)state;
	(void)pthread_mutex_init(&d.lock, NULL);
	assert_int_equal(snapshots_new(data_open, &d, &g, &e), 0);
	a = snapshots_get(g);
	b = snapshots_get(g);
	assert_ptr_equal(a, b);
	assert_int_equal(a->number, 0);
	assert_int_equal(snapshots_check(g, &e), 0);
	d.state++;
	assert_int_equal(snapshots_check(g, &e), -ESTALE);
	assert_int_equal(snapshots_reopen(g, &e), 0);
	assert_int_equal(snapshots_check(g, &e), 0);
	c = snapshots_get(g);
	assert_int_equal(c->number, 1);
	assert_int_equal(atomic_load(&d.open_now), 2);
	snapshot_put(g, a);
	assert_int_equal(atomic_load(&d.open_now), 2);
	snapshot_put(g, b);
	assert_int_equal(atomic_load(&d.open_now), 1);
	snapshot_put(g, c);
	assert_int_equal(atomic_load(&d.open_now), 1);
	assert_int_equal(snapshots_reopen(g, &e), 0);
	assert_int_equal(atomic_load(&d.open_now), 1);
	snapshots_free(g);
	assert_int_equal(atomic_load(&d.open_now), 0);
	snapshots_free(NULL);
	data_free(&d);
}

static int open_times;

static int open_once(void *arg, struct view **ret, struct err *e)
{
	return open_times++ == 1 ? err_set(e, -EIO, "made up") : data_open(arg, ret, e);
}

/* a dataset that cannot be opened again: the old ground stays */
static void test_not_renewed(void **state)
{
	struct data d = {.n = 0};
	struct snapshot *a;
	struct snapshots *g;
	struct err e = ERR_INIT;

	(void)state;
	(void)pthread_mutex_init(&d.lock, NULL);
	assert_int_equal(snapshots_new(open_once, &d, &g, &e), 0);
	assert_int_equal(snapshots_reopen(g, &e), -EIO);
	a = snapshots_get(g);
	assert_int_equal(a->number, 0);
	snapshot_put(g, a);
	assert_int_equal(snapshots_reopen(g, &e), 0);
	snapshots_free(g);
	assert_int_equal(atomic_load(&d.open_now), 0);
	open_times = 1;
	assert_int_equal(snapshots_new(open_once, &d, &g, &e), -EIO);
	data_free(&d);
}

/* ---- stores ---- */

static bool add_entry(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	char *out = arg;
	size_t n = strlen(out);

	(void)snprintf(out + n, 1000 - n, "%s%s", name, is_dir ? "/ " : " ");
	if (st) {
		assert_int_equal(st->is_dir, is_dir);
		n = strlen(out);
		if (!is_dir)
			(void)snprintf(out + n, 1000 - n, "%d%s ", (int)st->size,
				       st->odd ? "?" : "");
	}
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char *listed(struct store *s, const char *key, bool want_stat)
{
	static char out[1000], sorted[1000];
	char *v[100], *save = NULL;
	struct err e;
	size_t n = 0;
	int rc;

	out[0] = sorted[0] = '\0';
	rc = store_list(s, key, want_stat, add_entry, out, &e);
	if (rc) {
		(void)snprintf(sorted, sizeof(sorted), "%d", rc);
		return sorted;
	}
	if (want_stat)
		return out;
	for (char *t = strtok_r(out, " ", &save); t; t = strtok_r(NULL, " ", &save))
		v[n++] = t;
	qsort(v, n, sizeof(*v), by_name);
	for (size_t i = 0; i < n; i++) {
		(void)strcat(sorted, v[i]);
		(void)strcat(sorted, i + 1 < n ? " " : "");
	}
	return sorted;
}

static const char *got(struct store *s, const char *key)
{
	static char out[200];
	struct store_stat st;
	uint64_t version;
	struct err e;
	struct buf b;
	int rc;

	buf_init(&b, 150);
	rc = store_get(s, key, &b, NULL, &e);
	(void)snprintf(out, sizeof(out), "%.*s", (int)b.len, b.data ? (char *)b.data : "");
	if (rc) {
		(void)snprintf(out, sizeof(out), "%d", rc);
	} else {
		assert_int_equal(store_stat(s, key, &st, &e), 0);
		assert_false(st.is_dir || st.odd);
		assert_int_equal(st.size, b.len);
		for (size_t i = 0; i < b.len; i++) {
			uint8_t c;

			assert_int_equal(store_read(s, key, i, &c, 1, &version, &e), 0);
			assert_int_equal(c, b.data[i]);
			assert_int_equal(version, st.version);
		}
		assert_int_equal(store_read(s, key, b.len, b.data, 1, NULL, &e), -EIO);
	}
	buf_release(&b);
	return out;
}

/* clipped - bytes [off, off + 100) of a key, as far as it goes. */
static const char *clipped(struct store *s, const char *key, uint64_t off)
{
	static char out[200];
	uint8_t room[100];
	struct store_io io = {.off = off, .len = sizeof(room), .to = room, .clip = true};
	struct err e;
	int rc = store_read_io(s, key, &io, &e);

	if (rc)
		(void)snprintf(out, sizeof(out), "%d", rc);
	else
		(void)snprintf(out, sizeof(out), "%.*s", (int)io.len, (const char *)room);
	return out;
}

static bool hides_below(const void *arg, const char *key)
{
	const char *dir = arg;

	return strcmp(key, dir) == 0 || store_key_below(dir, key);
}

static void test_stores(void **state)
{
	struct fx *f = *state;
	struct store *below, *s, *old;
	struct view *view;
	struct stage *st;
	struct err e = ERR_INIT;
	uint64_t g;

	stop(f);
	data_text(&f->d, "g/h/deep", "deep");
	data_text(&f->d, "g/unsure", "?");
	assert_int_equal(data_open(&f->d, &view, &e), 0);
	assert_int_equal(view_store(view, &below, &e), 0);
	assert_string_equal(listed(below, "", false), ".zgroup g/ v/");
	assert_string_equal(listed(below, "g/h", true), "deep 4 ");
	assert_string_equal(listed(below, "none", true), "-2");
	assert_string_equal(listed(below, "v/0.0/x", true), "-2");
	assert_string_equal(got(below, "v/0.0"), "chunk");
	assert_string_equal(got(below, "g/h/deep"), "deep");
	assert_string_equal(got(below, "g"), "-21");
	assert_string_equal(got(below, "g/h/none"), "-2");
	assert_string_equal(got(below, "v/damaged"), "-5");
	assert_string_equal(got(below, "v/damaged/x"), "-5");
	assert_string_equal(listed(below, "g", true), "h/ unsure 0? ");

	assert_int_equal(stage_open(f->fd, false, &st, &e), 0);
	assert_int_equal(stage_put(st, "v/0.0", (const uint8_t *)"new", 3, &e), 0);
	assert_int_equal(stage_put(st, "w/x/0", (const uint8_t *)"w", 1, &e), 0);
	assert_int_equal(stage_gone(st, "g/h", false, &e), 0);
	assert_int_equal(stage_alias(st, "v/0.9", "v/0.1", &e), 0);
	assert_int_equal(stage_gone(st, "v/0.1", false, &e), 0);
	assert_int_equal(stage_store(st, UINT64_MAX, below, &s, &e), 0);
	assert_string_equal(listed(s, "", false), ".zgroup g/ v/ w/");
	assert_string_equal(listed(s, "v", false), ".zarray 0.0 0.9");
	assert_string_equal(listed(s, "g", false), "unsure");
	assert_string_equal(listed(s, "g/h", false), "-2");
	assert_string_equal(listed(s, "w", false), "x/");
	assert_string_equal(listed(s, "w/x", true), "0 1 ");
	assert_string_equal(listed(s, "w/x/0", true), "-2");
	assert_string_equal(got(s, "v/0.0"), "new");
	assert_string_equal(clipped(s, "v/0.0", 1), "ew");
	assert_string_equal(clipped(s, "v/0.0", 3), "");
	assert_string_equal(clipped(s, "v/0.0", UINT64_MAX), "");
	assert_string_equal(clipped(s, ".zgroup", 1), "}");
	assert_string_equal(clipped(s, "v/0.1", 0), "-2");
	assert_string_equal(got(s, "v/0.1"), "-2");
	assert_string_equal(got(s, "v/0.9"), "zero");
	assert_string_equal(got(s, "g/h/deep"), "-2");
	assert_string_equal(got(s, "w"), "-21");
	assert_string_equal(got(s, ".zgroup"), "{}");
	assert_int_equal(store_check(s, &e), 0);
	/* the frozen records, while others are written */
	assert_int_equal(stage_freeze(st, &g, &e), 0);
	assert_int_equal(stage_put(st, "v/0.0", (const uint8_t *)"newer", 5, &e), 0);
	assert_int_equal(stage_put(st, "g/h/again", (const uint8_t *)"x", 1, &e), 0);
	assert_int_equal(stage_store(st, g, below, &old, &e), 0);
	assert_string_equal(got(old, "v/0.0"), "new");
	assert_string_equal(listed(old, "g/h", false), "-2");
	assert_string_equal(got(s, "v/0.0"), "newer");
	assert_string_equal(listed(s, "g/h", false), "again");
	/* keys of the stage and of the dataset that a store does not have */
	stage_store_hide(s, hides_below, "w");
	assert_string_equal(listed(s, "", false), ".zgroup g/ v/");
	assert_string_equal(listed(s, "w", false), "-2");
	assert_string_equal(got(s, "w/x/0"), "-2");
	stage_store_hide(s, hides_below, "v/0.9");
	assert_string_equal(listed(s, "v", false), ".zarray 0.0");
	assert_string_equal(got(s, "v/0.9"), "-2");
	assert_string_equal(got(s, "w/x/0"), "w");
	stage_store_hide(s, hides_below, ".zgroup");
	assert_string_equal(listed(s, "", false), "g/ v/ w/");
	assert_string_equal(got(s, ".zgroup"), "-2");
	store_close(old);
	store_close(s);
	store_close(below);
	stage_close(st);
	view_close(view);
	start(f); /* for teardown */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grounds),
		cmocka_unit_test(test_not_renewed),
		TEST(test_stores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
