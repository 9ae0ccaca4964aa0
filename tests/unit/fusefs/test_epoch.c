/* SPDX-License-Identifier: BSD-3-Clause */
/* Epochs: states of a changing source are never mixed. The source and the view are fake; the file
 * and the watcher are real. */
#include "fusefs/ops/epoch.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static atomic_int opened, closed, told, failing, moved, torn, content, polled[3];

struct fake_view {
	struct view view;
	int number;
};

static void fake_close(struct source *s)
{
	free(s);
	atomic_fetch_add(&closed, 1);
}

static int fake_check(struct source *s, struct err *e)
{
	(void)s;
	return atomic_load(&moved) ? err_set(e, -ESTALE, "moved") : 0;
}

/* fake_poll - the contents of a directory: a number that its source stores. */
static int fake_poll(struct source *s, struct err *e)
{
	atomic_fetch_add(&polled[s->remote + s->unlisted], 1);
	if (s->ds.n_dims == (uint32_t)atomic_load(&content))
		return 0;
	return err_set(e, -ESTALE, "other content");
}

static const struct source_ops fake_source = {
	.name = "fake", .close = fake_close, .check = fake_check, .poll = fake_poll};

static void fake_view_close(struct view *v)
{
	free(CONTAINER_OF(v, struct fake_view, view));
}

static int fake_list(struct view *v, uint64_t dir, uint64_t cookie, bool want_attr,
		     view_emit *emit, void *arg, struct err *e)
{
	char name[16];

	(void)cookie;
	(void)want_attr;
	(void)e;
	assert_int_equal(dir, VIEW_ROOT);
	(void)snprintf(name, sizeof(name), "v%d",
		       CONTAINER_OF(v, struct fake_view, view)->number);
	(void)emit(arg, name, 2, true, NULL, 1); /* the last entry: to stop has no effect */
	return 0;
}

static const struct view_ops fake_view = {
	.name = "fake", .close = fake_view_close, .list = fake_list};

static void write_file(const char *path, const char *text)
{
	char tmp[80];
	FILE *f;

	(void)snprintf(tmp, sizeof(tmp), "%s.new", path);
	f = fopen(tmp, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(rename(tmp, path), 0);
}

static int fake_open(void *arg, struct view **ret, struct err *e)
{
	struct source *s;
	struct fake_view *v;

	if (atomic_load(&torn) > 0) { /* the file is replaced during the read */
		atomic_fetch_sub(&torn, 1);
		write_file(arg, "whole");
		return err_set(e, -EBADMSG, "torn");
	}
	if (atomic_load(&failing))
		return err_set(e, atomic_load(&failing), "failing");
	s = calloc(1, sizeof(*s));
	v = calloc(1, sizeof(*v));
	assert_true(s && v);
	s->ops = &fake_source;
	s->ds.n_dims = (uint32_t)atomic_load(&content);
	s->remote = strncmp(arg, "far:", 4) == 0;
	s->unlisted = strcmp(arg, "far:idle") == 0;
	assert_int_equal(s->remote ? 0 : stat(arg, &s->ds.st), 0);
	v->view.ops = &fake_view;
	v->view.source = s;
	v->number = atomic_fetch_add(&opened, 1);
	*ret = &v->view;
	return 0;
}

static void fake_changed(void *arg, const struct buf *names)
{
	atomic_int *mask = arg;

	atomic_fetch_add(&told, 1);
	for (const char *name = NULL; (name = buf_next(names, name));)
		if (name[0] == 'v')
			atomic_fetch_or(mask, 1 << (name[1] - '0'));
}

struct fixture {
	char path[64];
	struct epochs *live;
	atomic_int mask; /* of names that the kernel was notified to forget */
};

static void nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

#define AWAIT(condition)                                                                       \
	do {                                                                                   \
		for (int tries = 0; !(condition) && tries < 2000; tries++)                     \
			nap();                                                                 \
		assert_true(condition);                                                        \
	} while (0)

static int setup_as(void **state, bool directory)
{
	static const char dir[] = "/tmp/nczarrfs-live-XXXXXX";
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = ERR_INIT;

	assert_non_null(f);
	memcpy(f->path, dir, sizeof(dir));
	assert_non_null(mkdtemp(f->path));
	memcpy(f->path + sizeof(dir) - 1, "/f", 3);
	atomic_store(&opened, 0);
	atomic_store(&closed, 0);
	atomic_store(&told, 0);
	atomic_store(&failing, 0);
	atomic_store(&moved, 0);
	if (directory)
		assert_int_equal(mkdir(f->path, 0755), 0);
	else
		write_file(f->path, "one");
	assert_int_equal(epochs_new(f->path, fake_open, f->path, &f->live, &e), 0);
	assert_int_equal(epochs_watch(f->live, fake_changed, &f->mask, &e), 0);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return setup_as(state, false);
}

static int setup_directory(void **state)
{
	return setup_as(state, true);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	epochs_free(f->live);
	assert_int_equal(atomic_load(&opened), atomic_load(&closed));
	(void)remove(f->path); /* a test may have removed it */
	*strrchr(f->path, '/') = '\0';
	assert_int_equal(rmdir(f->path), 0);
	free(f);
	return 0;
}

static void test_inode_numbers(void **state)
{
	struct epoch ep = {.number = 1025};

	(void)state;
	assert_int_equal(live_ino(&ep, VIEW_ROOT), EPOCHS_ROOT);
	assert_int_equal(live_ino(&ep, 7), (uint64_t)1 << 54 | 7);
	assert_int_equal(live_id(live_ino(&ep, 7)), 7);
	assert_int_equal(live_id(EPOCHS_ROOT), VIEW_ROOT);
	ep.number = 1023;
	assert_int_equal(live_id(live_ino(&ep, VIEW_ID_LIMIT - 1)), VIEW_ID_LIMIT - 1);
}

static void test_replaced(void **state)
{
	struct fixture *f = *state;
	struct epoch *ep, *other;
	struct err e = ERR_INIT;
	uint64_t old;

	assert_int_equal(epoch_acquire(f->live, EPOCHS_ROOT, &ep, &e), 0);
	old = live_ino(ep, 5);
	assert_int_equal(epoch_acquire(f->live, old, &other, &e), 0);
	assert_ptr_equal(ep, other);
	epoch_release(f->live, other);

	/* The old epoch lives until its last request ends. */
	write_file(f->path, "two");
	AWAIT(epoch_acquire(f->live, old, &other, &e) == -ESTALE ||
	      (epoch_release(f->live, other), false));
	assert_int_equal(atomic_load(&closed), 0);
	assert_int_equal(atomic_load(&opened), 1);
	epoch_release(f->live, ep);

	assert_int_equal(epoch_acquire(f->live, EPOCHS_ROOT, &ep, &e),
			 0); /* waits for the new one */
	assert_int_equal(ep->number, 1);
	AWAIT(atomic_load(&closed) == 1);
	assert_int_equal(epoch_acquire(f->live, old, &other, &e), -ESTALE);
	assert_int_equal(epoch_acquire(f->live, live_ino(ep, 5), &other, &e), 0);
	epoch_release(f->live, other);
	epoch_release(f->live, ep);
	AWAIT(atomic_load(&f->mask) == 3); /* names of both epochs */
}

static void test_damaged_and_back(void **state)
{
	struct fixture *f = *state;
	struct epoch *ep;
	bool past = false;
	struct err e = ERR_INIT;
	struct stat st;

	assert_false(epochs_broken(f->live, &st));
	atomic_store(&failing, -EBADMSG);
	write_file(f->path, "damaged");
	AWAIT(epochs_broken(f->live, &st));
	assert_int_equal(st.st_size, 3);
	assert_int_equal(epoch_acquire(f->live, EPOCHS_ROOT, &ep, &e), -EIO);
	/* names are still known, so that none seems to be absent */
	assert_int_equal(epoch_acquire_stale(f->live, EPOCHS_ROOT, &ep, &past, &e), 0);
	assert_true(past);
	epoch_release(f->live, ep);
	assert_int_equal(epoch_acquire_stale(f->live, 5, &ep, &past, &e), 0);
	epoch_release(f->live, ep);
	assert_int_equal(epoch_acquire(f->live, 5, &ep, &e), -EIO); /* SEMANTICS C6 */
	AWAIT(atomic_load(&f->mask) == 1);
	assert_int_equal(unlink(f->path), 0);
	assert_int_equal(epoch_acquire(f->live, EPOCHS_ROOT, &ep, &e), -EIO);
	atomic_store(&failing, 0);
	write_file(f->path, "good");
	AWAIT(epoch_acquire(f->live, EPOCHS_ROOT, &ep, &e) == 0);
	assert_int_equal(ep->number, 1);
	epoch_release(f->live, ep);
}

static void test_poke(void **state)
{
	struct fixture *f = *state;
	struct epoch *ep;
	struct err e = ERR_INIT;

	/* A request detected a change; the path looks unchanged. */
	assert_int_equal(epoch_acquire(f->live, EPOCHS_ROOT, &ep, &e), 0);
	assert_int_equal(epoch_result(f->live, ep, -ESTALE, NULL), -ESTALE);
	epoch_release(f->live, ep);
	assert_int_equal(epoch_acquire(f->live, 5, &ep, &e), -ESTALE);
	assert_int_equal(epoch_acquire(f->live, EPOCHS_ROOT, &ep, &e), 0);
	assert_int_equal(ep->number, 1);
	epoch_release(f->live, ep);
}

/* reopen - number of the epoch after the present one. */
static uint64_t reopen(struct epochs *l)
{
	struct epoch *ep;
	struct err e = ERR_INIT;
	uint64_t n;

	assert_int_equal(epoch_acquire(l, EPOCHS_ROOT, &ep, &e), 0);
	assert_int_equal(epoch_result(l, ep, -ESTALE, NULL), -ESTALE);
	epoch_release(l, ep);
	assert_int_equal(epoch_acquire(l, EPOCHS_ROOT, &ep, &e), 0);
	n = ep->number;
	epoch_release(l, ep);
	return n;
}

/* SEMANTICS E6: an inode number contains 10 bits of the epoch. If the kernel holds an inode, no
 * later epoch has the same bits. */
static void test_held_inode(void **state)
{
	struct fixture *f = *state;
	struct fake_view view = {.number = 0};
	struct epoch old = {.number = 1, .view = &view.view}, *ep;
	const uint64_t ino = live_ino(&old, 5);
	struct err e = ERR_INIT;
	struct stat st;

	/* as if a descriptor of epoch 1 had been open for 1024 epochs */
	epochs_reported(f->live, &old, 2);
	epochs_forgotten(f->live, ino, 1);
	assert_int_equal(reopen(f->live), 2);
	assert_int_equal(epoch_acquire(f->live, ino, &ep, &e), -ESTALE);
	epochs_forgotten(f->live, ino, 1);

	/* with an inode of every other epoch no number is left, until one is dropped */
	for (old.number = 0; old.number < EPOCHS_EPOCHS; old.number++)
		epochs_reported(f->live, &old, 1);
	assert_int_equal(epoch_acquire(f->live, EPOCHS_ROOT, &ep, &e), 0);
	assert_int_equal(epoch_result(f->live, ep, -ESTALE, NULL), -ESTALE);
	epoch_release(f->live, ep);
	AWAIT(epochs_broken(f->live, &st));
	assert_int_equal(epoch_acquire(f->live, EPOCHS_ROOT, &ep, &e), -EIO);
	epochs_forgotten(f->live, ino, 1);
	AWAIT(epoch_acquire(f->live, EPOCHS_ROOT, &ep, &e) == 0);
	assert_int_equal(ep->number, EPOCHS_EPOCHS + 1);
	epoch_release(f->live, ep);
}

static void test_same_file(void **state)
{
	struct fixture *f = *state;
	struct epoch *ep;
	struct err e = ERR_INIT;
	char other[80];

	/* Other files appear and disappear in the directory. */
	(void)snprintf(other, sizeof(other), "%s.x", f->path);
	for (int i = 0; i < 5; i++) {
		write_file(other, "x");
		nap();
	}
	assert_int_equal(unlink(other), 0);
	assert_int_equal(epoch_acquire(f->live, EPOCHS_ROOT, &ep, &e), 0);
	assert_int_equal(ep->number, 0);
	epoch_release(f->live, ep);
	epochs_stop(f->live);
	epochs_stop(f->live);
	assert_int_equal(epoch_acquire(f->live, 5, &ep, &e), 0);
	epoch_release(f->live, ep);
}

/* Readers that check that number and view match while the file changes. */
struct reader {
	struct epochs *live;
	atomic_bool stop;
	atomic_int answers, bad;
};

static void *read_on(void *arg)
{
	struct reader *r = arg;
	struct epoch *ep;
	struct err e = ERR_INIT;
	uint64_t ino = EPOCHS_ROOT;

	while (!atomic_load(&r->stop)) {
		int rc = epoch_acquire(r->live, ino, &ep, &e);

		if (rc < 0) {
			if (rc != -ESTALE)
				atomic_fetch_add(&r->bad, 1);
			ino = EPOCHS_ROOT;
			continue;
		}
		if ((uint64_t)CONTAINER_OF(ep->view, struct fake_view, view)->number !=
		    ep->number)
			atomic_fetch_add(&r->bad, 1);
		ino = ino == EPOCHS_ROOT ? live_ino(ep, 9) : ino;
		atomic_fetch_add(&r->answers, 1);
		epoch_release(r->live, ep);
	}
	return NULL;
}

static void test_readers(void **state)
{
	struct fixture *f = *state;
	struct reader r = {.live = f->live};
	pthread_t threads[4];

	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_on, &r), 0);
	for (int i = 0; i < 4; i++) {
		write_file(f->path, i % 2 ? "even" : "odd");
		AWAIT(atomic_load(&opened) == i + 2);
	}
	atomic_store(&r.stop, true);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(atomic_load(&r.bad), 0);
	assert_true(atomic_load(&r.answers) > 0);
}

/* A file that is replaced during each opening is not broken. */
static void test_replaced_while_opened(void **state)
{
	struct fixture *f = *state;
	struct epoch *ep;
	struct err e = ERR_INIT;
	struct stat st;

	atomic_store(&torn, 8);
	write_file(f->path, "torn");
	AWAIT(atomic_load(&torn) == 0);
	while (atomic_load(&opened) < 2)
		assert_false(epochs_broken(f->live, &st));
	assert_int_equal(epoch_acquire(f->live, EPOCHS_ROOT, &ep, &e), 0);
	assert_int_equal(ep->number, 1);
	epoch_release(f->live, ep);
}

/* A directory's source reports whether it changed; nothing else counts. */
static void test_directory(void **state)
{
	struct fixture *f = *state;
	struct epoch *ep;
	struct err e = ERR_INIT;
	char inside[80];

	/* a file that is not part of the source */
	(void)snprintf(inside, sizeof(inside), "%s/x", f->path);
	write_file(inside, "x");
	assert_int_equal(unlink(inside), 0);
	nap();
	assert_int_equal(epoch_acquire(f->live, EPOCHS_ROOT, &ep, &e), 0);
	assert_int_equal(ep->number, 0);
	epoch_release(f->live, ep);

	/* deep inside, where inotify reports nothing */
	atomic_fetch_add(&content, 1);
	AWAIT(atomic_load(&opened) == 2); /* after a second at most */
	assert_int_equal(epoch_acquire(f->live, EPOCHS_ROOT, &ep, &e), 0);
	assert_int_equal(ep->number, 1);
	epoch_release(f->live, ep);
	AWAIT(atomic_load(&f->mask) == 3);
}

/* It is opened again without an event. */
static void test_broken_directory(void **state)
{
	struct fixture *f = *state;
	struct epoch *ep;
	struct err e = ERR_INIT;
	struct stat st;

	atomic_store(&failing, -EBADMSG);
	atomic_fetch_add(&content, 1);
	assert_int_equal(chmod(f->path, 0700), 0); /* an event */
	AWAIT(epochs_broken(f->live, &st));
	assert_true(S_ISDIR(st.st_mode));
	atomic_store(&failing, 0);
	AWAIT(epoch_acquire(f->live, EPOCHS_ROOT, &ep, &e) == 0);
	assert_int_equal(ep->number, 1);
	epoch_release(f->live, ep);
}

/* A file that could not be opened for lack of a resource is opened again when a request comes: the
 * end of the shortage is no event. */
static void test_not_its_fault(void **state)
{
	struct fixture *f = *state;
	struct epoch *ep;
	struct err e = ERR_INIT;
	struct stat st;

	atomic_store(&failing, -EMFILE);
	write_file(f->path, "other");
	AWAIT(epochs_broken(f->live, &st));
	atomic_store(&failing, 0);
	AWAIT(epoch_acquire(f->live, EPOCHS_ROOT, &ep, &e) == 0);
	assert_int_equal(ep->number, 1);
	epoch_release(f->live, ep);
}

/* A remote source is polled after it was used, and not otherwise. A second one, which is used,
 * shows that time has passed. */
static void test_far(void **state)
{
	struct fixture *f = *state;
	char idle_path[] = "far:idle", used_path[] = "far:used";
	struct epochs *idle, *used;
	struct epoch *ep;
	struct err e = ERR_INIT;
	int before = atomic_load(&opened);

	atomic_store(&polled[1], 0);
	atomic_store(&polled[2], 0);
	assert_int_equal(epochs_new(idle_path, fake_open, idle_path, &idle, &e), 0);
	epochs_remote(idle, 1);
	assert_int_equal(epochs_watch(idle, fake_changed, &f->mask, &e), 0);
	atomic_fetch_add(&content, 1);
	assert_int_equal(epochs_new(used_path, fake_open, used_path, &used, &e), 0);
	epochs_remote(used, 1);
	assert_int_equal(epochs_watch(used, fake_changed, &f->mask, &e), 0);
	AWAIT(epoch_acquire(used, EPOCHS_ROOT, &ep, &e) == 0 &&
	      (epoch_release(used, ep), atomic_load(&polled[1]) >= 2));
	assert_int_equal(atomic_load(&polled[2]), 0);
	/* idle has changed, which was not detected */
	assert_int_equal(atomic_load(&opened), before + 2);
	assert_int_equal(epoch_acquire(idle, EPOCHS_ROOT, &ep, &e), 0);
	epoch_release(idle, ep);
	AWAIT(atomic_load(&opened) == before + 3);
	AWAIT(epoch_acquire(idle, EPOCHS_ROOT, &ep, &e) == 0 &&
	      (epoch_release(idle, ep), ep->number == 1));
	epochs_free(used);
	epochs_free(idle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inode_numbers),
		cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged_and_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_its_fault, setup, teardown),
		cmocka_unit_test_setup_teardown(test_poke, setup, teardown),
		cmocka_unit_test_setup_teardown(test_held_inode, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_readers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replaced_while_opened, setup, teardown),
		cmocka_unit_test_setup_teardown(test_directory, setup_directory, teardown),
		cmocka_unit_test_setup_teardown(test_broken_directory, setup_directory,
						teardown),
		cmocka_unit_test_setup_teardown(test_far, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
