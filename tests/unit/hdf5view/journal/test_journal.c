/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal: what a transaction leaves behind when the process dies, or the disk fails, at any
 * call that writes; and when recovery dies, too. Judge: libhdf5's own driver. */
#include "tests/unit/hdf5view/journal/journal_place.h"

#include <sys/wait.h>

/* Not every call for every kind of fault, and fewer under a sanitizer, where forks are slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STRIDE(kind) 11u
#else
#define STRIDE(kind) ((kind) == FAULT_HALF ? 1u : 3u)
#endif
#define COMMIT_FROM 165 /* calls before it are much alike */

/* how - what a process did. */
struct how {
	bool died, committed;
	int rc;
};

/* Run the transaction (or, with recover, the recovery) in a process with faults. */
static struct how with_fault(struct place *p, bool recover, struct fault with)
{
	int status, fds[2];
	struct how how = {.died = true};
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct how h = {.died = false};

		(void)close(fds[0]);
		fault = with;
		fault.on = true;
		h.rc = recover ? hdf5_journal_recover(p->path, p->dir_fd, NULL)
			       : load_run(p->path, p->dir_fd, &h.committed, NULL);
		fault.on = false;
		if (fault.n < with.at || fault.stats < with.stats_from ||
		    fault.reads < with.read_at)
			h.rc = 1; /* there is no such call: the end of the loop */
		_exit(write(fds[1], &h, sizeof(h)) == (ssize_t)sizeof(h) ? 0 : 1);
	}
	assert_int_equal(close(fds[1]), 0);
	if (read(fds[0], &how, sizeof(how)) != (ssize_t)sizeof(how))
		how.died = true;
	assert_int_equal(close(fds[0]), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), how.died ? DIED : 0);
	return how;
}

static struct how in_child(struct place *p, bool recover, enum fault_kind kind, unsigned at,
			   int code)
{
	return with_fault(p, recover, (struct fault){.kind = kind, .at = at, .code = code});
}

/* n_kinds: of load_kinds. */
static void at_every_call(enum fault_kind kind, int code, size_t n_kinds, const char *what)
{
	for (size_t k = 0; k < n_kinds; k++) {
		struct place p;
		unsigned states[2] = {0, 0};
		unsigned at;

		place_make(&p, &load_kinds[k]);
		for (at = 1;; at += at > COMMIT_FROM ? 1 : STRIDE(kind)) {
			struct how how;
			char state;

			fresh(&p);
			how = in_child(&p, false, kind, at, code);
			if (how.rc == 1)
				break;
			state = judge(&p, what, at);
			states[state == 'n']++;
			if (!how.died && how.rc == 0)
				assert_int_equal(state, 'n');
			if (!how.died && how.rc < 0 && !how.committed)
				assert_int_equal(state, 'o');
			if (kind == FAULT_SHORT)
				assert_int_equal(how.rc, 0);
		}
		print_message("%s, %s: %u calls; old after %u, new after %u\n", what,
			      load_kinds[k].name, at - 1, states[0], states[1]);
		assert_true(at > 50);
		assert_true(states[1] > 0);
		assert_true(kind == FAULT_SHORT || states[0] > 0);
		place_free(&p);
	}
}

static void dies_before(void **state)
{
	(void)state;
	at_every_call(FAULT_DIE, 0, 1, "death");
}

static void dies_half_written(void **state)
{
	(void)state;
	at_every_call(FAULT_HALF, 0, ARRAY_LEN(load_kinds), "death in a write");
}

static void fails_once(void **state)
{
	(void)state;
	at_every_call(FAULT_FAIL, EIO, 1, "EIO");
}

static void disk_is_full(void **state)
{
	(void)state;
	at_every_call(FAULT_FULL, ENOSPC, 1, "ENOSPC");
}

static void short_writes(void **state)
{
	(void)state;
	at_every_call(FAULT_SHORT, 0, 1, "short write");
}

/* Death at a call of the recovery of a transaction that died at its most interesting calls. */
static void recovery_dies(void **state)
{
	struct place p;
	unsigned rounds = 0, redone = 0;

	(void)state;
	place_make(&p, &load_kinds[0]);
	for (unsigned at = 1;; at++) {
		enum hdf5_journal_state s;
		struct how how;

		fresh(&p);
		how = in_child(&p, false, FAULT_HALF, at, 0);
		if (how.rc == 1)
			break;
		assert_int_equal(hdf5_journal_status(p.path, p.dir_fd, &s, NULL), 0);
		if (s != HDF5_JOURNAL_REDO && at % 40 != 0)
			continue; /* nothing but a tail is cut */
		for (unsigned k = 1;; k++, rounds++) {
			enum fault_kind kind = k % 3 == 0   ? FAULT_DIE
					       : k % 3 == 1 ? FAULT_HALF
							    : FAULT_FULL;

			how = in_child(&p, true, kind, k, EIO);
			if (how.rc == 1)
				break;
		}
		redone += s == HDF5_JOURNAL_REDO;
		assert_int_equal(judge(&p, "recovery", at), s == HDF5_JOURNAL_REDO ? 'n' : 'o');
	}
	print_message("%u recoveries interrupted, of %u commits\n", rounds, redone);
	assert_true(rounds > 10 && redone > 3);
	place_free(&p);
}

/* When the file's size cannot be queried any more, the appended bytes are still removed, or the
 * journal stays with their position. */
static void size_unknown(void **state)
{
	struct place p;
	unsigned at;

	(void)state;
	place_make(&p, &load_kinds[0]);
	for (at = 1;; at++) {
		struct how how;
		char got;

		fresh(&p);
		how = with_fault(&p, false, (struct fault){.stats_from = at});
		if (how.rc == 1)
			break;
		got = judge(&p, "fstat", at);
		assert_int_equal(got, how.rc == 0 || how.committed ? 'n' : 'o');
	}
	assert_true(at > 4);
	place_free(&p);
}

/* A read that fails says nothing: a commit that is in the journal is not given up for it. */
static void unreadable(void **state)
{
	enum hdf5_journal_state s = HDF5_JOURNAL_NONE;
	struct place p;
	unsigned at;

	(void)state;
	place_make(&p, &load_kinds[0]);
	for (unsigned k = 1; s != HDF5_JOURNAL_REDO; k++) {
		fresh(&p);
		assert_int_not_equal(in_child(&p, false, FAULT_HALF, k, 0).rc, 1);
		assert_int_equal(hdf5_journal_status(p.path, p.dir_fd, &s, NULL), 0);
	}
	for (at = 1;; at++) {
		int rc;

		fault = (struct fault){.on = true, .read_at = at};
		rc = hdf5_journal_status(p.path, p.dir_fd, &s, NULL);
		fault.on = false;
		if (fault.reads < at)
			break;
		assert_true(rc == -EIO || (rc == 0 && s == HDF5_JOURNAL_REDO));
	}
	assert_true(at > 3);
	for (at = 1; with_fault(&p, true, (struct fault){.read_at = at}).rc < 0; at++)
		assert_true(journal_is_there(&p));
	assert_true(at > 3);
	assert_int_equal(judge(&p, "a read", at), 'n');
	place_free(&p);
}

/* Without a journal the same faults must do damage, or they prove nothing. */
static void control(void **state)
{
	struct place p;
	unsigned damaged = 0, at;

	(void)state;
	place_make(&p, &load_kinds[0]);
	for (at = 1;; at++) {
		struct how how;
		uint32_t print;

		fresh(&p);
		how = in_child(&p, false, FAULT_HALF, at, 0);
		if (how.rc == 1)
			break;
		(void)unlinkat(p.dir_fd, JOURNAL_NAME, 0); /* there may be none yet */
		assert_int_equal(hdf5_journal_recover(p.path, p.dir_fd, NULL), 0);
		print = load_print(p.path);
		damaged += print != p.old && print != p.new;
	}
	print_message("without a journal: %u calls, damaged after %u\n", at - 1, damaged);
	assert_true(damaged > 0);
	place_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dies_before),  cmocka_unit_test(dies_half_written),
		cmocka_unit_test(fails_once),   cmocka_unit_test(disk_is_full),
		cmocka_unit_test(short_writes), cmocka_unit_test(recovery_dies),
		cmocka_unit_test(size_unknown), cmocka_unit_test(unreadable),
		cmocka_unit_test(control),
	};

	(void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
