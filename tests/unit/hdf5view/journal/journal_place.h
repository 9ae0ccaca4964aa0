/* SPDX-License-Identifier: BSD-3-Clause */
/* journal_place.h - a directory with a file, the file after a transaction, and a judge of the
 * remains of an interruption. */
#ifndef TESTS_UNIT_HDF5VIEW_JOURNAL_JOURNAL_PLACE_H
#define TESTS_UNIT_HDF5VIEW_JOURNAL_JOURNAL_PLACE_H

#include "tests/unit/hdf5view/journal/journal_faults.h"
#include "tests/unit/hdf5view/journal/journal_load.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct place {
	char dir[40];
	char path[64], base[64];
	int dir_fd;
	uint32_t old, new; /* fingerprints */
	struct stat was;
};

static inline void copy_file(const char *from, const char *to)
{
	static uint8_t mem[1 << 20];
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ssize_t n;

	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, mem, sizeof(mem))) > 0)
		assert_int_equal(write(out, mem, (size_t)n), n);
	assert_int_equal(n, 0);
	assert_int_equal(close(in), 0);
	assert_int_equal(close(out), 0);
}

static inline bool same_bytes(const char *a, const char *b)
{
	static uint8_t x[1 << 20], y[1 << 20];
	int in = open(a, O_RDONLY), on = open(b, O_RDONLY);
	ssize_t n = read(in, x, sizeof(x)), m = read(on, y, sizeof(y));

	assert_true(n > 0 && n < (ssize_t)sizeof(x));
	(void)close(in);
	(void)close(on);
	return n == m && memcmp(x, y, (size_t)n) == 0;
}

static inline bool journal_is_there(const struct place *p)
{
	return faccessat(p->dir_fd, JOURNAL_NAME, F_OK, 0) == 0;
}

static inline void fresh(struct place *p)
{
	copy_file(p->base, p->path);
	(void)syscall(SYS_unlinkat, p->dir_fd, JOURNAL_NAME, 0); /* of the round before */
}

static inline void place_make(struct place *p, const struct load_kind *kind)
{
	bool committed;
	struct err e = ERR_INIT;

	memset(&fault, 0, sizeof(fault));
	memset(p, 0, sizeof(*p));
	(void)snprintf(p->dir, sizeof(p->dir), "/tmp/nczarrfs-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	(void)snprintf(p->path, sizeof(p->path), "%s/x.nc", p->dir);
	(void)snprintf(p->base, sizeof(p->base), "%s/base.nc", p->dir);
	p->dir_fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->dir_fd >= 0);
	assert_int_equal(load_make(p->base, kind), 0);
	fresh(p);
	p->old = load_print(p->path);
	assert_true(p->old != 0);
	if (load_run(p->path, p->dir_fd, &committed, &e) < 0)
		fail_msg("%s: %s", kind->name, e.msg);
	assert_true(committed);
	assert_false(journal_is_there(p));
	p->new = load_print(p->path);
	assert_true(p->new != 0 && p->new != p->old);
}

static inline void place_free(struct place *p)
{
	assert_int_equal(unlink(p->path), 0);
	assert_int_equal(unlink(p->base), 0);
	(void)syscall(SYS_unlinkat, p->dir_fd, JOURNAL_NAME, 0);
	assert_int_equal(close(p->dir_fd), 0);
	assert_int_equal(rmdir(p->dir), 0);
}

/* After a recovery without faults: which state it is. 'o', 'n'; fails when it is neither. */
static inline char judge(struct place *p, const char *what, unsigned at)
{
	struct err e = ERR_INIT;
	enum hdf5_journal_state state;
	uint32_t print;

	if (hdf5_journal_status(p->path, p->dir_fd, &state, &e) < 0 ||
	    state == HDF5_JOURNAL_FOREIGN || hdf5_journal_recover(p->path, p->dir_fd, &e) < 0)
		fail_msg("%s at call %u: %s (%d)", what, at, e.msg, (int)state);
	assert_false(journal_is_there(p));
	print = load_print(p->path);
	if (print == p->old) {
		if (!same_bytes(p->path, p->base))
			fail_msg("%s at call %u: old, but other bytes", what, at);
		return 'o';
	}
	if (print != p->new)
		fail_msg("%s at call %u: neither old nor new", what, at);
	return 'n';
}

#endif
