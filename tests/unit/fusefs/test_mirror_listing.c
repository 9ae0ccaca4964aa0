/* SPDX-License-Identifier: BSD-3-Clause */
/* Listing a mirrored directory: an entry that exists all the time appears once, whatever other
 * listings and changes there are. */
#include "fusefs/mirror/mirror_int.h"
#include "tests/unit/fusefs/mirror_fake.h"

enum { MANY = 600 };

struct seen {
	uint64_t cookie;
	size_t left; /* entries until the buffer is full */
	size_t n;
	int times[MANY];
	char all[4096]; /* names of the first entries, with a slash after directories */
};

static bool take(void *arg, const char *name, uint64_t id, bool is_dir,
		 const struct view_attr *attr, uint64_t next)
{
	struct seen *s = arg;
	int i;

	assert_null(attr);
	assert_true(id > VIEW_ROOT);
	assert_true(next > s->cookie && next < (uint64_t)1 << 55);
	if (s->left == 0)
		return false;
	s->left--;
	s->cookie = next;
	s->n++;
	if (sscanf(name, "f%d", &i) == 1 && i >= 0 && i < MANY)
		s->times[i]++;
	if (strlen(s->all) + strlen(name) + 3 < sizeof(s->all)) {
		strcat(s->all, name);
		strcat(s->all, is_dir ? "/ " : " ");
	}
	return true;
}

/* go_on - list up to n further entries. Returns false at the end. */
static bool go_on(const struct fixture *f, uint64_t dir, struct seen *s, size_t n)
{
	struct err e = ERR_INIT;

	s->left = n;
	assert_int_equal(f->view->ops->list(f->view, dir, s->cookie, true, take, s, &e), 0);
	return s->left == 0;
}

static void test_content(void **state)
{
	const struct fixture *f = *state;
	struct seen s = {.n = 0};
	uint64_t tree;

	put(f, "a.nc", "FAKE");
	put(f, "a.h5", "FAKE");
	put(f, "b.nc", "junk");
	put(f, "o.nc", "FAKE old");
	put(f, "c.zip", "FAKE");
	put_dir(f, "d");
	put(f, "d/.fake", "FAKE");
	put(f, "d/x.nc", "FAKE");
	put(f, "e.h5", "FAKE");
	put(f, "e.zarr", "in the way");
	assert_int_equal(symlink("a.nc", full(f, "l.nc")), 0);
	while (go_on(f, VIEW_ROOT, &s, 1))
		;
	for (const char *const *p =
		     (const char *const[]){"a.nc ", "a.h5 ", "a.zarr/ ", "b.nc ", "o.nc ",
					   "o.nc4 ", "o.zarr/ ", "c.zip ", "c.nc ", "d/ ",
					   "d.nc ", "e.h5 ", "e.zarr ", "l.nc ", NULL};
	     *p; p++)
		assert_non_null(strstr(s.all, *p));
	assert_int_equal(s.n, 14); /* without the mountpoint */
	assert_int_equal(atomic_load(&fake_opened), 0);

	s = (struct seen){.n = 0};
	assert_false(go_on(f, id_at(f, VIEW_ROOT, "d"), &s, 100));
	assert_int_equal(s.n, 2); /* unchanged: it is a dataset */

	tree = id_at(f, VIEW_ROOT, "a.zarr");
	assert_int_equal(atomic_load(&fake_opened), 0);
	assert_int_equal(lookup(f, tree, "data", &(struct view_attr){0}), 0);
}

static void fill(const struct fixture *f, const char *dir)
{
	for (int i = 0; i < MANY; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "%s/f%d", dir, i);
		put(f, name, "");
	}
}

static void test_in_steps(void **state)
{
	static const size_t steps[] = {1, 7, 100, MANY, MANY + 1};
	const struct fixture *f = *state;
	uint64_t dir;

	put_dir(f, "many");
	fill(f, "many");
	dir = id_at(f, VIEW_ROOT, "many");
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct seen s = {.n = 0};

		while (go_on(f, dir, &s, steps[i]))
			;
		assert_int_equal(s.n, MANY);
		for (int k = 0; k < MANY; k++)
			assert_int_equal(s.times[k], 1);
	}
}

/* Listings of other directories evict this one, which has to be read again, and it changes. */
static void test_disturbed(void **state)
{
	const struct fixture *f = *state;
	struct seen s = {.n = 0};
	uint64_t dir;
	int round = 0;

	put_dir(f, "many");
	fill(f, "many");
	dir = id_at(f, VIEW_ROOT, "many");
	for (int i = 0; i < 10; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "other%d", i);
		put_dir(f, name);
	}
	while (go_on(f, dir, &s, 50)) {
		for (int i = 0; i < 10; i++) {
			struct seen other = {.n = 0};
			char name[16];

			(void)snprintf(name, sizeof(name), "other%d", i);
			(void)go_on(f, id_at(f, VIEW_ROOT, name), &other, 1);
		}
		for (int i = 0; i < 20; i++) {
			char name[32];

			(void)snprintf(name, sizeof(name), "many/new%d", 20 * round + i);
			put(f, name, "");
			(void)snprintf(name, sizeof(name), "many/f%d", 20 * round + i);
			assert_int_equal(unlink(full(f, name)), 0);
		}
		round++;
		assert_true(20 * round < MANY);
	}
	assert_true(round >= 5);
	for (int k = 0; k < MANY; k++) {
		assert_true(s.times[k] <= 1);
		if (k >= 20 * round)
			assert_int_equal(s.times[k], 1); /* it existed all the time */
	}
}

/* A new listing shows the present state. */
static void test_fresh(void **state)
{
	const struct fixture *f = *state;
	struct seen s = {.n = 0};
	struct err e = ERR_INIT;
	uint64_t dir;

	put_dir(f, "d");
	dir = id_at(f, VIEW_ROOT, "d");
	assert_false(go_on(f, dir, &s, 10));
	put(f, "d/f1", "");
	assert_false(go_on(f, dir, &s, 10));
	assert_int_equal(s.times[1], 1);
	assert_int_equal(rename(full(f, "d"), full(f, "gone")), 0);
	put_dir(f, "d");
	s = (struct seen){.left = 10};
	assert_int_equal(f->view->ops->list(f->view, dir, 0, true, take, &s, &e), -ESTALE);
}

static bool collect(void *arg, const char *source, const char *name, const char *why)
{
	char *text = arg;

	strcat(text, source);
	strcat(text, ">");
	strcat(text, name);
	if (why) {
		strcat(text, ": ");
		strcat(text, why);
	}
	strcat(text, "; ");
	return true;
}

static void test_each(void **state)
{
	const struct fixture *f = *state;
	char text[200] = "";
	struct err e = ERR_INIT;

	put(f, "a.h5", "FAKE");
	put(f, "a.nc", "FAKE");
	put(f, "plain", "FAKE");
	assert_int_equal(mirror_each(f->view, collect, text, &e), 0);
	assert_string_equal(text, "a.nc>a.zarr; a.h5>a.zarr: that name shows 'a.nc'; ");
	put(f, "b.h5", "FAKE");
	put(f, "b.zarr", "something else");
	*text = '\0';
	assert_int_equal(mirror_each(f->view, collect, text, &e), 0);
	assert_non_null(strstr(text, "b.h5>b.zarr: that name exists; "));
}

/* listed - list a real directory completely, as a program does that may remove it. */
static struct where listed(const struct fixture *f, uint64_t dir)
{
	struct seen s = {.n = 0};
	struct where where;
	struct err e = ERR_INIT;

	assert_false(go_on(f, dir, &s, MANY));
	assert_int_equal(real_where(mirror_of(f->view), dir, &where, &e), 0);
	return where;
}

/* Names that disappeared with their dataset: which processes see them, and how long. SEMANTICS
 * P30 */
static void test_walk(void **state)
{
	const struct fixture *f = *state;
	struct mirror *m = mirror_of(f->view);
	struct view_attr a;
	struct walk_name at;
	struct where root;

	put(f, "o.nc", "FAKE old");
	put(f, "p.nc", "FAKE");
	root = listed(f, VIEW_ROOT); /* without a request */
	walk_removed(m, &root, "o.nc");
	assert_int_equal(walk_gone(m, &root, "o.zarr", false, &a), -ENOENT);
	free(root.path);
	f->view->write = &mirror_write_ops;
	mirror_caller = gettid();
	root = listed(f, VIEW_ROOT);
	assert_int_equal(walk_gone(m, &root, "o.zarr", false, &a), -ENOENT);
	walk_removed(m, &root, "o.nc");
	assert_int_equal(walk_gone(m, &root, "o.nc", false, &a), -ENOENT);
	assert_int_equal(walk_gone(m, &root, "p.zarr", false, &a), -ENOENT);
	assert_int_equal(walk_gone(m, &root, "none.zarr", false, &a), -ENOENT);
	assert_int_equal(walk_gone(m, &root, "o.zarr", false, &a), 0);
	assert_true(a.is_dir);
	assert_true(walk_gone_id(m, a.id, false, &a, &at));
	assert_string_equal(at.name, "o.zarr");
	assert_int_equal(at.dir, VIEW_ROOT);
	assert_int_equal(walk_gone(m, &root, "o.nc4", true, &a), 0);
	assert_false(a.is_dir);
	assert_int_equal(walk_gone(m, &root, "o.nc4", true, &a), -ENOENT); /* once */
	mirror_caller = getppid();
	assert_int_equal(walk_gone(m, &root, "o.zarr", false, &a), -ENOENT);
	mirror_caller = gettid();
	assert_int_equal(walk_gone(m, &root, "o.zarr", false, &a), 0);
	walk_removed(m, &root, "p.zarr"); /* by its converted view */
	assert_int_equal(walk_gone(m, &root, "p.nc", false, &a), 0);
	free(root.path);
	root = listed(f, VIEW_ROOT); /* a new listing shows the present entries */
	assert_int_equal(walk_gone(m, &root, "o.zarr", false, &a), -ENOENT);
	assert_false(walk_gone_id(m, a.id, false, &a, NULL));
	free(root.path);
	mirror_caller = 0;
}

/* Of more walks than WALKS the latest stays, and so does one with a removal; a walk ends with its
 * directory. */
static void test_walks(void **state)
{
	const struct fixture *f = *state;
	struct mirror *m = mirror_of(f->view);
	struct where first = {0}, dir = {0}, root;
	struct err e = ERR_INIT;
	struct view_attr a;
	char name[40];

	f->view->write = &mirror_write_ops;
	mirror_caller = gettid();
	for (int i = 0; i < 2 * WALKS; i++) {
		(void)snprintf(name, sizeof(name), "d%02d", i);
		put_dir(f, name);
		(void)snprintf(name, sizeof(name), "d%02d/a.nc", i);
		put(f, name, "FAKE");
		(void)snprintf(name, sizeof(name), "d%02d", i);
		free(dir.path);
		dir = listed(f, id_at(f, VIEW_ROOT, name));
		if (i == 0) {
			first = dir;
			dir.path = NULL;
			walk_removed(m, &first, "a.nc");
			assert_int_equal(walk_gone(m, &first, "a.zarr", false, &a), 0);
		}
	}
	assert_int_equal(walk_gone(m, &first, "a.zarr", false, &a), 0);
	walk_removed(m, &dir, "a.nc");
	assert_int_equal(walk_gone(m, &dir, "a.zarr", false, &a), 0);
	assert_int_equal(real_where(m, VIEW_ROOT, &root, &e), 0);
	walk_removed(m, &root, "d00");
	assert_int_equal(walk_gone(m, &first, "a.zarr", false, &a), -ENOENT);
	assert_int_equal(walk_gone(m, &dir, "a.zarr", false, &a), 0);
	free(root.path);
	free(first.path);
	free(dir.path);
	mirror_caller = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_content, setup, teardown),
		cmocka_unit_test_setup_teardown(test_in_steps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disturbed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fresh, setup, teardown),
		cmocka_unit_test_setup_teardown(test_each, setup, teardown),
		cmocka_unit_test_setup_teardown(test_walk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_walks, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
