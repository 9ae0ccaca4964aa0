/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal and its surroundings: locks, other programs that change the file, files that are
 * copied or replaced between a crash and the recovery, journals that are damaged or planted. */
#include "tests/unit/hdf5view/journal/journal_place.h"

#include <sys/file.h>
#include <sys/wait.h>

static int setup(void **state)
{
	struct place *p = malloc(sizeof(*p));

	assert_non_null(p);
	place_make(p, &load_kinds[0]);
	fresh(p);
	assert_int_equal(stat(p->path, &p->was), 0);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	fault.on = false;
	place_free(p);
	free(p);
	return 0;
}

static bool same_times(const struct place *p)
{
	struct stat st;

	assert_int_equal(stat(p->path, &st), 0);
	return st.st_mtim.tv_sec == p->was.st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == p->was.st_mtim.tv_nsec && st.st_size == p->was.st_size;
}

static struct h5_journal *begin(struct place *p, hid_t *ret_file)
{
	struct h5_journal *j = NULL;
	hid_t fapl;

	assert_int_equal(h5_journal_open(p->path, p->dir_fd, &j, NULL), 0);
	fapl = h5_journal_fapl(j);
	assert_true(fapl >= 0);
	*ret_file = H5Fopen(p->path, H5F_ACC_RDWR, fapl);
	assert_true(*ret_file >= 0);
	assert_int_equal(H5Pclose(fapl), 0);
	return j;
}

static void without_commit_nothing_happened(void **state)
{
	struct place *p = *state;
	struct stat st;
	hid_t f;
	struct h5_journal *j = begin(p, &f);

	assert_false(h5_journal_changed(j));
	assert_int_equal(load_change(f), 0);
	assert_int_equal(H5Fclose(f), 0);
	assert_true(h5_journal_changed(j));
	assert_int_equal(stat(p->path, &st), 0);
	assert_true(st.st_size > p->was.st_size);
	assert_true(journal_is_there(p));
	assert_true(load_print(p->path) == 0 ||
		    load_print(p->path) == p->old); /* locked, or old */
	h5_journal_close(j);
	assert_true(same_bytes(p->path, p->base));
	assert_true(same_times(p));
	assert_false(journal_is_there(p));
}

static void what_is_written_can_be_read_before_the_commit(void **state)
{
	struct place *p = *state;
	struct h5_journal *j = NULL;

	assert_int_equal(h5_journal_open(p->path, p->dir_fd, &j, NULL), 0);
	for (int round = 0; round < 3; round++) {
		hid_t fapl = h5_journal_fapl(j);
		hid_t f = H5Fopen(p->path, H5F_ACC_RDWR, fapl), g;
		char name[16];

		assert_true(f >= 0);
		(void)snprintf(name, sizeof(name), "round%d", round);
		g = H5Gcreate2(f, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
		assert_int_equal(load_dataset(g, "data", 2000, round), 0);
		assert_int_equal(H5Gclose(g), 0);
		assert_int_equal(H5Lexists(f, "round0", H5P_DEFAULT), 1);
		assert_int_equal(h5_journal_commit(j, NULL, NULL, NULL), -EBUSY);
		assert_int_equal(H5Fclose(f), 0);
		assert_int_equal(H5Pclose(fapl), 0);
	}
	assert_int_equal(h5_journal_commit(j, NULL, NULL, NULL), 0);
	assert_true(h5_journal_committed(j));
	h5_journal_close(j);
	assert_true(load_print(p->path) != 0);
	assert_true(load_print(p->path) != p->old);
}

static int shut_gate(void *arg, struct err *e)
{
	struct place *p = arg;

	assert_true(journal_is_there(p));
	return err_set(e, -ECANCELED, "not now");
}

static int open_gate(void *arg, struct err *e)
{
	struct place *p = arg;
	enum hdf5_journal_state s;

	(void)e;
	assert_int_equal(hdf5_journal_status(p->path, p->dir_fd, &s, NULL), 0);
	assert_int_equal(s, HDF5_JOURNAL_ABANDON); /* no record yet */
	return 0;
}

static void gate(void **state)
{
	struct place *p = *state;
	hid_t f;
	struct h5_journal *j = begin(p, &f);
	struct err e = ERR_INIT;

	assert_int_equal(load_change(f), 0);
	assert_int_equal(H5Fclose(f), 0);
	assert_int_equal(h5_journal_commit(j, shut_gate, p, &e), -ECANCELED);
	assert_string_equal(e.msg, "not now");
	assert_false(h5_journal_committed(j));
	h5_journal_close(j);
	assert_true(same_bytes(p->path, p->base));
	j = begin(p, &f);
	assert_int_equal(load_change(f), 0);
	assert_int_equal(H5Fclose(f), 0);
	assert_int_equal(h5_journal_commit(j, open_gate, p, &e), 0);
	h5_journal_close(j);
	assert_int_equal(load_print(p->path), p->new);
}

static void nothing_written_is_no_commit(void **state)
{
	struct place *p = *state;
	hid_t f;
	struct h5_journal *j = begin(p, &f);

	assert_int_equal(H5Fclose(f), 0);
	assert_int_equal(h5_journal_commit(j, shut_gate, p, NULL), 0);
	h5_journal_close(j);
	assert_true(same_times(p));
	j = begin(p, &f);
	assert_int_equal(load_attr(f, "passing", 1), 0); /* comes and goes, in place */
	assert_int_equal(H5Fclose(f), 0);
	assert_int_equal(h5_journal_commit(j, NULL, NULL, NULL), 0);
	h5_journal_close(j);
	assert_false(same_times(p));
}

static void another_program_has_it(void **state)
{
	struct place *p = *state;
	struct h5_journal *j = NULL;
	int fd = open(p->path, O_RDONLY);

	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(h5_journal_open(p->path, p->dir_fd, &j, NULL), -EAGAIN);
	assert_int_equal(setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1), 0);
	assert_int_equal(h5_journal_open(p->path, p->dir_fd, &j, NULL), 0);
	h5_journal_close(j);
	assert_int_equal(unsetenv("HDF5_USE_FILE_LOCKING"), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(h5_journal_open(p->path, p->dir_fd, &j, NULL), 0);
	fd = open(p->path, O_RDONLY);
	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), -1); /* ours */
	assert_int_equal(close(fd), 0);
	h5_journal_close(j);
}

/* Another program writes n bytes at off while the transaction goes on. */
static void meddle(struct place *p, off_t off, bool keep_times)
{
	int fd = open(p->path, O_WRONLY);
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pwrite(fd, "meddled", 7, off), 7);
	if (keep_times) {
		const struct timespec t[2] = {st.st_atim, st.st_mtim};

		assert_int_equal(futimens(fd, t), 0);
	}
	assert_int_equal(close(fd), 0);
}

static void another_program_changes_it(void **state)
{
	struct place *p = *state;

	for (int k = 0; k < 3; k++) {
		hid_t f;
		struct h5_journal *j = begin(p, &f);
		struct stat st;

		assert_int_equal(load_change(f), 0);
		assert_int_equal(H5Fclose(f), 0);
		meddle(p, k < 2 ? 1000 + 10 * k : 40, k == 1);
		assert_int_equal(h5_journal_commit(j, NULL, NULL, NULL), -ESTALE);
		h5_journal_close(j);
		assert_false(journal_is_there(p));
		/* when the superblock is another one the tail may be the other program's */
		assert_int_equal(stat(p->path, &st), 0);
		assert_int_equal(st.st_size > p->was.st_size, k == 2);
	}
}

/* ---- after a crash ---- */

/* The process died in the commit: `back` calls after the first at which there was a record. */
static void die_in_apply(struct place *p, unsigned back)
{
	enum hdf5_journal_state s;
	unsigned last = 0;

	for (unsigned at = 1;; at++) {
		pid_t pid;
		int status;
		bool committed;

		fresh(p);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			fault = (struct fault){.on = true, .kind = FAULT_HALF, .at = at};
			_exit(load_run(p->path, p->dir_fd, &committed, NULL) ? 1 : 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(WEXITSTATUS(status), DIED);
		assert_int_equal(hdf5_journal_status(p->path, p->dir_fd, &s, NULL), 0);
		if (s == HDF5_JOURNAL_REDO && ++last > back)
			return;
		at += s != HDF5_JOURNAL_REDO && at < 150 ? 10 : 0;
	}
}

static void a_copy_can_be_recovered(void **state)
{
	struct place *p = *state;

	die_in_apply(p, 5);
	copy_file(p->path, p->base);
	assert_int_equal(rename(p->base, p->path), 0); /* another inode */
	assert_int_equal(hdf5_journal_recover(p->path, p->dir_fd, NULL), 0);
	assert_int_equal(load_print(p->path), p->new);
	copy_file(p->path, p->base);
}

static void expect_foreign(struct place *p)
{
	enum hdf5_journal_state s;
	struct h5_journal *j = NULL;
	struct err e = ERR_INIT;

	copy_file(p->path, p->base);
	assert_int_equal(hdf5_journal_status(p->path, p->dir_fd, &s, NULL), 0);
	assert_int_equal(s, HDF5_JOURNAL_FOREIGN);
	assert_int_equal(hdf5_journal_recover(p->path, p->dir_fd, &e), -ESTALE);
	assert_non_null(strstr(e.msg, "journal"));
	assert_int_equal(h5_journal_open(p->path, p->dir_fd, &j, &e), -EBUSY);
	assert_true(same_bytes(p->path, p->base));
	assert_true(journal_is_there(p));
}

static void a_backup_in_its_place(void **state)
{
	struct place *p = *state;

	die_in_apply(p, 3);
	copy_file(p->base, p->path); /* the same inode */
	expect_foreign(p);
}

static void a_file_that_was_changed_since(void **state)
{
	struct place *p = *state;

	die_in_apply(p, 6);
	meddle(p, 700, false);
	meddle(p, 1500, false);
	expect_foreign(p);
}

/* What a dead transaction wrote behind the end is cut off only while the file is its own. */
static void a_tail(void **state)
{
	struct place *p = *state;
	hid_t f;
	struct stat st;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)begin(p, &f);
		(void)load_change(f);
		(void)H5Fflush(f, H5F_SCOPE_GLOBAL);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(stat(p->path, &st), 0);
	assert_true(st.st_size > p->was.st_size);
	assert_int_equal(load_print(p->path), p->old); /* libhdf5 does not mind it */
	copy_file(p->path, p->base);
	assert_int_equal(rename(p->base, p->path), 0); /* another inode: it is left alone */
	copy_file(p->path, p->base);
	assert_int_equal(hdf5_journal_recover(p->path, p->dir_fd, NULL), 0);
	assert_false(journal_is_there(p));
	assert_true(same_bytes(p->path, p->base));
	/* and libhdf5 cuts it off, as the superblock has the end */
	f = H5Fopen(p->path, H5F_ACC_RDWR, H5P_DEFAULT);
	assert_int_equal(load_attr(f, "passing", 1), 0);
	assert_int_equal(H5Fclose(f), 0);
	assert_true(load_print(p->path) != 0);
}

static void a_journal_of_somebody_else(void **state)
{
	struct place *p = *state;
	enum hdf5_journal_state s;

	die_in_apply(p, 2);
	assert_int_equal(fchmodat(p->dir_fd, JOURNAL_NAME, 0622, 0), 0);
	assert_int_equal(hdf5_journal_status(p->path, p->dir_fd, &s, NULL), -EPERM);
	assert_int_equal(fchmodat(p->dir_fd, JOURNAL_NAME, 0600, 0), 0);
	if (fchownat(p->dir_fd, JOURNAL_NAME, 12345, 12345, 0) == 0)
		assert_int_equal(hdf5_journal_recover(p->path, p->dir_fd, NULL), -EPERM);
	(void)syscall(SYS_unlinkat, p->dir_fd, JOURNAL_NAME, 0);
	assert_int_equal(symlinkat("base.nc", p->dir_fd, JOURNAL_NAME), 0);
	assert_true(hdf5_journal_recover(p->path, p->dir_fd, NULL) < 0);
	(void)syscall(SYS_unlinkat, p->dir_fd, JOURNAL_NAME, 0);
}

/* Damage anywhere in a journal: an error and the file as it was, or the commit; never a third. */
static void damaged_journals(void **state)
{
	struct place *p = *state;
	static uint8_t log[FILENAME_MAX * 256];
	char half[64];
	unsigned refused = 0, redone = 0, abandoned = 0;
	size_t n;
	int fd;

	die_in_apply(p, 4);
	(void)snprintf(half, sizeof(half), "%s/half.nc", p->dir);
	copy_file(p->path, half);
	fd = openat(p->dir_fd, JOURNAL_NAME, O_RDONLY);
	n = (size_t)read(fd, log, sizeof(log));
	assert_true(n > JOURNAL_SLOTS && n < sizeof(log));
	assert_int_equal(close(fd), 0);
	for (unsigned k = 0; k < 600; k++) {
		/* the records byte by byte, then anywhere; the end is cut off, too */
		size_t at = k < 128   ? JOURNAL_PAGE + k
			    : k < 200 ? k - 128
				      : (size_t)k * 7919 % n;
		size_t len = k % 5 == 4 && k > 200 ? at : n;
		uint8_t old = log[at];
		int rc;

		copy_file(half, p->path);
		(void)syscall(SYS_unlinkat, p->dir_fd, JOURNAL_NAME, 0);
		log[at] ^= (uint8_t)(1 + k % 255);
		fd = openat(p->dir_fd, JOURNAL_NAME, O_WRONLY | O_CREAT, 0600);
		assert_int_equal(write(fd, log, len), (ssize_t)len);
		assert_int_equal(close(fd), 0);
		log[at] = old;
		rc = hdf5_journal_recover(p->path, p->dir_fd, NULL);
		refused += rc < 0;
		if (rc < 0)
			assert_true(same_bytes(p->path, half));
		else if (load_print(p->path) == p->new)
			redone++;
		else
			abandoned++;
	}
	print_message("%u refused, %u redone, %u without a record\n", refused, redone,
		      abandoned);
	assert_true(refused > 50 && redone > 100 && abandoned < 10);
	(void)syscall(SYS_unlinkat, p->dir_fd, JOURNAL_NAME, 0);
	assert_int_equal(unlink(half), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(without_commit_nothing_happened),
		T(what_is_written_can_be_read_before_the_commit),
		T(gate),
		T(nothing_written_is_no_commit),
		T(another_program_has_it),
		T(another_program_changes_it),
		T(a_copy_can_be_recovered),
		T(a_backup_in_its_place),
		T(a_file_that_was_changed_since),
		T(a_tail),
		T(a_journal_of_somebody_else),
		T(damaged_journals),
	};

	(void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
