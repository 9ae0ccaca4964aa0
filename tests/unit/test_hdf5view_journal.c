/* The journal: what a transaction leaves behind when the process dies, or the disk fails, at any
 * call that writes; and when recovery dies, too. Judge: libhdf5's own driver. */
#include "tests/unit/journal_faults.h"
#include "tests/unit/journal_load.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/io.h"

struct place {
	char dir[40];
	char path[64], base[64];
	int dir_fd;
	uint32_t old, new; /* fingerprints */
	struct stat was;
};

static void copy_file(const char *from, const char *to)
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

static bool same_bytes(const char *a, const char *b)
{
	static uint8_t x[1 << 20], y[1 << 20];
	int in = open(a, O_RDONLY), on = open(b, O_RDONLY);
	ssize_t n = read(in, x, sizeof(x)), m = read(on, y, sizeof(y));

	assert_true(n > 0 && n < (ssize_t)sizeof(x));
	(void)close(in);
	(void)close(on);
	return n == m && memcmp(x, y, (size_t)n) == 0;
}

static bool journal_is_there(const struct place *p)
{
	return faccessat(p->dir_fd, JOURNAL_NAME, F_OK, 0) == 0;
}

static void fresh(struct place *p)
{
	copy_file(p->base, p->path);
	(void)syscall(SYS_unlinkat, p->dir_fd, JOURNAL_NAME, 0); /* of the round before */
}

static void place_make(struct place *p, const struct load_kind *kind)
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
	if (load_run(p->path, p->dir_fd, false, &committed, &e) < 0)
		fail_msg("%s: %s", kind->name, e.msg);
	assert_true(committed);
	assert_false(journal_is_there(p));
	p->new = load_print(p->path);
	assert_true(p->new != 0 && p->new != p->old);
}

static void place_free(struct place *p)
{
	assert_int_equal(unlink(p->path), 0);
	assert_int_equal(unlink(p->base), 0);
	(void)syscall(SYS_unlinkat, p->dir_fd, JOURNAL_NAME, 0);
	assert_int_equal(close(p->dir_fd), 0);
	assert_int_equal(rmdir(p->dir), 0);
}

/* how - what a process did. */
struct how {
	bool died, committed;
	int rc;
};

/* Run the transaction (or, with recover, the recovery) in a process with a fault. */
static struct how in_child(struct place *p, bool recover, bool no_journal, enum fault_kind kind,
			   unsigned at, int code)
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
		fault = (struct fault){.on = true, .kind = kind, .at = at, .code = code};
		h.rc = recover ? hdf5_journal_recover(p->path, p->dir_fd, NULL)
			       : load_run(p->path, p->dir_fd, no_journal, &h.committed, NULL);
		fault.on = false;
		if (fault.n < at)
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

/* After a recovery without faults: which state it is. 'o', 'n'; fails when it is neither. */
static char judge(struct place *p, const char *what, unsigned at)
{
	struct err e = ERR_INIT;
	enum hdf5_journal_state state;
	uint32_t print;

	if (hdf5_journal_look(p->path, p->dir_fd, &state, &e) < 0 ||
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

/* n_kinds: of load_kinds. */
static void at_every_call(enum fault_kind kind, int code, size_t n_kinds, const char *what)
{
	for (size_t k = 0; k < n_kinds; k++) {
		struct place p;
		unsigned states[2] = {0, 0};
		unsigned at;

		place_make(&p, &load_kinds[k]);
		for (at = 1;; at++) {
			struct how how;
			char state;

			fresh(&p);
			how = in_child(&p, false, false, kind, at, code);
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
		how = in_child(&p, false, false, FAULT_HALF, at, 0);
		if (how.rc == 1)
			break;
		assert_int_equal(hdf5_journal_look(p.path, p.dir_fd, &s, NULL), 0);
		if (s != HDF5_JOURNAL_REDO && at % 40 != 0)
			continue; /* nothing but a tail is cut */
		for (unsigned k = 1;; k++, rounds++) {
			enum fault_kind kind = k % 3 == 0   ? FAULT_DIE
					       : k % 3 == 1 ? FAULT_HALF
							    : FAULT_FULL;

			how = in_child(&p, true, false, kind, k, EIO);
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
		how = in_child(&p, false, true, FAULT_HALF, at, 0);
		if (how.rc == 1)
			break;
		assert_int_equal(hdf5_journal_recover(p.path, p.dir_fd, NULL), 0);
		print = load_print(p.path);
		damaged += print != p.old && print != p.new;
	}
	print_message("without a journal: %u calls, damaged after %u\n", at - 1, damaged);
	assert_true(damaged > 0);
	fresh(&p);
	assert_int_equal(in_child(&p, false, true, FAULT_NONE, 0, 0).rc, 0);
	assert_int_equal(load_print(p.path), p.new);
	place_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dies_before),  cmocka_unit_test(dies_half_written),
		cmocka_unit_test(fails_once),   cmocka_unit_test(disk_is_full),
		cmocka_unit_test(short_writes), cmocka_unit_test(recovery_dies),
		cmocka_unit_test(control),
	};

	(void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
