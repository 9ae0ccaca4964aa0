/* SPDX-License-Identifier: BSD-3-Clause */
/* State directories: their paths, their locks, their removal. */
#include "fusefs/write/writable_int.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char top[] = "/tmp/rw_state.XXXXXX";

static const char *in_top(const char *name)
{
	static char path[4][600];
	static int i;

	i = (i + 1) % 4;
	(void)snprintf(path[i], sizeof(path[i]), "%s/%s", top, name);
	return path[i];
}

static void make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
}

static int set_up(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(top));
	make_file(in_top("a.nc"));
	assert_int_equal(mkdir(in_top("b.zarr"), 0700), 0);
	assert_int_equal(mkdir(in_top("s"), 0700), 0);
	assert_int_equal(symlink("a.nc", in_top("link.nc")), 0);
	return 0;
}

static int tear_down(void **state)
{
	static const char *const files[] = {"a.nc", "link.nc"}, *const dirs[] = {"b.zarr", "s",
										 "."};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		assert_int_equal(unlink(in_top(files[i])), 0);
	/* all directories are empty */
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		assert_int_equal(rmdir(strcmp(dirs[i], ".") ? in_top(dirs[i]) : top), 0);
	return 0;
}

static void test_place(void **state)
{
	struct cfg cfg = {.mountpoint = (char[]){"/mnt/x"}};
	struct rw_state s = RW_STATE_INIT;
	struct err e = ERR_INIT;
	struct stat st;

	(void)state;
	assert_int_equal(rw_state_open(&cfg, in_top("a.nc"), false, &s, &e), -ENOENT);
	assert_int_equal(rw_state_open(&cfg, in_top("none.nc"), true, &s, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "none.nc': no such file"));
	assert_int_equal(rw_state_open(&cfg, in_top("a.nc"), true, &s, &e), 0);
	assert_string_equal(s.dir, in_top(".a.nc.nczarrfs"));
	assert_string_equal(s.path, in_top("a.nc"));
	assert_false(s.is_dir);
	assert_true(rw_state_bare(&s));
	assert_int_equal(stat(s.dir, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	rw_state_close(&s);
	assert_int_equal(s.dir_fd, -1);
	assert_int_equal(access(in_top(".a.nc.nczarrfs"), F_OK), -1);
	assert_int_equal(rw_state_open(&cfg, in_top("b.zarr"), true, &s, &e), 0);
	assert_true(s.is_dir);
	assert_string_equal(s.dir, in_top(".b.zarr.nczarrfs"));
	rw_state_close(&s);
}

static void test_locked(void **state)
{
	struct cfg cfg = {.mountpoint = (char[]){"/mnt/x"}};
	struct rw_state s = RW_STATE_INIT, t = RW_STATE_INIT;
	struct err e = ERR_INIT;
	char who[64];

	(void)state;
	assert_int_equal(rw_state_open(&cfg, in_top("a.nc"), true, &s, &e), 0);
	/* another name of the same file is the same dataset */
	assert_int_equal(rw_state_open(&cfg, in_top("link.nc"), true, &t, &e), -EBUSY);
	(void)snprintf(who, sizeof(who), "process %ld, mounted on /mnt/x", (long)getpid());
	assert_non_null(strstr(e.msg, who));
	assert_int_equal(rw_state_open(&cfg, in_top("link.nc"), false, &t, &e), -EBUSY);
	rw_state_close(&s);
	assert_int_equal(rw_state_open(&cfg, in_top("link.nc"), true, &t, &e), 0);
	assert_string_equal(t.dir, in_top(".a.nc.nczarrfs"));
	rw_state_close(&t);
}

static void test_kept(void **state)
{
	struct cfg cfg = {0};
	struct rw_state s = RW_STATE_INIT;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(rw_state_open(&cfg, in_top("a.nc"), true, &s, &e), 0);
	make_file(in_top(".a.nc.nczarrfs/log"));
	assert_false(rw_state_bare(&s));
	rw_state_close(&s);
	assert_int_equal(rw_state_open(&cfg, in_top("a.nc"), false, &s, &e), 0);
	assert_int_equal(unlinkat(s.dir_fd, "log", 0), 0);
	rw_state_close(&s);
	assert_int_equal(access(in_top(".a.nc.nczarrfs"), F_OK), -1);
}

/* test_base - pending writes apply to one state of a file, and to no other. */
static void test_base(void **state)
{
	struct cfg cfg = {0};
	struct rw_state s = RW_STATE_INIT;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(rw_state_open(&cfg, in_top("a.nc"), true, &s, &e), 0);
	assert_int_equal(rw_state_base(&s, &e), 0);
	assert_true(rw_state_bare(&s));
	make_file(in_top(".a.nc.nczarrfs/log"));
	rw_state_close(&s);
	assert_int_equal(rw_state_open(&cfg, in_top("a.nc"), true, &s, &e), 0);
	assert_int_equal(rw_state_same(&s, &e), 0);
	assert_int_equal(truncate(in_top("a.nc"), 10), 0);
	assert_int_equal(rw_state_same(&s, &e), -ESTALE);
	assert_non_null(strstr(e.msg, "changed by another program"));
	/* not while this mount changes it, or after it died meanwhile */
	assert_int_equal(rw_state_changing(&s, &e), 0);
	assert_int_equal(rw_state_same(&s, &e), 0);
	assert_int_equal(rw_state_base(&s, &e), 0);
	assert_int_equal(rw_state_same(&s, &e), 0);
	/* after a failed change another program's change is still detected */
	assert_int_equal(rw_state_changing(&s, &e), 0);
	assert_int_equal(truncate(in_top("a.nc"), 0), 0);
	rw_state_unchanged(&s);
	assert_int_equal(rw_state_same(&s, &e), -ESTALE);
	/* if the base cannot be removed, the file must not be changed */
	assert_int_equal(unlinkat(s.dir_fd, "base", 0), 0);
	assert_int_equal(rw_state_changing(&s, &e), 0);
	assert_int_equal(mkdirat(s.dir_fd, "base", 0700), 0);
	assert_true(rw_state_changing(&s, &e) < 0);
	assert_int_equal(unlinkat(s.dir_fd, "base", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(s.dir_fd, "log", 0), 0);
	rw_state_close(&s);
	assert_int_equal(access(in_top(".a.nc.nczarrfs"), F_OK), -1);
}

static void test_elsewhere(void **state)
{
	struct cfg cfg = {0};
	struct rw_state s = RW_STATE_INIT;
	struct err e = ERR_INIT;
	char *dir, *path, *other, long_name[256];

	(void)state;
	cfg.write.state_dir = strdup(in_top("s"));
	assert_int_equal(rw_state_dir(&cfg, in_top("a.nc"), &dir, &path, &e), 0);
	free(path);
	assert_int_equal(strncmp(dir, in_top("s/.a.nc-"), strlen(in_top("s/.a.nc-"))), 0);
	/* a file of the same name in another directory has another state */
	make_file(in_top("s/a.nc"));
	assert_int_equal(rw_state_dir(&cfg, in_top("s/a.nc"), &other, &path, &e), 0);
	assert_string_not_equal(dir, other);
	assert_int_equal(unlink(path), 0);
	free(path);
	free(other);
	assert_int_equal(rw_state_open(&cfg, in_top("link.nc"), true, &s, &e), 0);
	assert_string_equal(s.dir, dir);
	rw_state_close(&s);
	free(dir);
	free(cfg.write.state_dir);
	cfg.write.state_dir = NULL;
	/* a name that leaves no room for the suffix */
	memset(long_name, 'x', sizeof(long_name));
	long_name[250] = '\0';
	make_file(in_top(long_name));
	assert_int_equal(rw_state_open(&cfg, in_top(long_name), true, &s, &e), 0);
	rw_state_close(&s);
	assert_int_equal(unlink(in_top(long_name)), 0);
}

static void test_not_ours(void **state)
{
	struct cfg cfg = {0};
	struct rw_state s = RW_STATE_INIT;
	struct err e = ERR_INIT;
	const char *dir = in_top(".a.nc.nczarrfs");

	(void)state;
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(chmod(dir, 0770), 0);
	assert_int_equal(rw_state_open(&cfg, in_top("a.nc"), true, &s, &e), -EACCES);
	if (geteuid() == 0) {
		assert_int_equal(chmod(dir, 0700), 0);
		assert_int_equal(chown(dir, 12345, 12345), 0);
		assert_int_equal(rw_state_open(&cfg, in_top("a.nc"), true, &s, &e), -EACCES);
	}
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(symlink("b.zarr", dir), 0);
	assert_true(rw_state_open(&cfg, in_top("a.nc"), true, &s, &e) < 0);
	assert_int_equal(unlink(dir), 0);
}

static void test_left(void **state)
{
	static const char text[] = "a\0b/c d\twhy\0plain";
	struct err e = ERR_INIT;
	const char *at;
	struct buf b;

	(void)state;
	buf_init(&b, 100);
	assert_int_equal(rw_left(&b, &e), 0);
	assert_null(buf_next(&b, NULL));
	buf_put(&b, text, sizeof(text));
	assert_int_equal(rw_left(&b, &e), 0);
	at = buf_next(&b, NULL);
	assert_string_equal(at, "a");
	at = buf_next(&b, at);
	assert_string_equal(at, "b/c d\twhy");
	at = buf_next(&b, at);
	assert_string_equal(at, "plain");
	assert_null(buf_next(&b, at));
	b.len--;
	assert_int_equal(rw_left(&b, &e), -EBADMSG);
	buf_release(&b);
}

/* far_of - state directory of an address, borrowed for some time. */
static const char *far_of(const struct cfg *cfg, const char *address)
{
	static char text[16][600];
	static unsigned turn;
	char *p = text[turn++ % 16], *dir = NULL, *path = NULL;
	struct err e = ERR_INIT;

	if (rw_state_dir(cfg, address, &dir, &path, &e) < 0) {
		assert_int_equal(e.code, -ENOENT);
		return NULL;
	}
	assert_string_equal(path, address);
	(void)snprintf(p, sizeof(text[0]), "%s", dir);
	free(dir);
	free(path);
	return p;
}

/* A remote dataset has its state below the user's directory: one, however the address is
 * written. */
static void test_far(void **state)
{
	struct cfg cfg = {.is_remote = true}, other = {.is_remote = true};
	struct rw_state s = RW_STATE_INIT, t = RW_STATE_INIT;
	struct err e = ERR_INIT;
	struct stat st;
	const char *dir;

	(void)state;
	assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
	assert_int_equal(unsetenv("AWS_ENDPOINT_URL"), 0);
	assert_int_equal(unsetenv("AWS_ENDPOINT_URL_S3"), 0);
	assert_int_equal(setenv("HOME", "/nowhere", 1), 0);
	dir = far_of(&cfg, "s3://b/some/store.zarr");
	assert_non_null(strstr(dir, "/nowhere/.local/state/nczarrfs/store.zarr-"));
	assert_string_equal(far_of(&cfg, "s3://b/some/store.zarr/"), dir);
	assert_string_equal(far_of(&cfg, "s3://b/some/store.zarr#mode=zarr,s3"), dir);
	assert_string_not_equal(far_of(&cfg, "s3://c/some/store.zarr"), dir);
	assert_string_not_equal(far_of(&cfg, "s3://b/other/store.zarr"), dir);
	other.remote.endpoint = (char[]){"http://127.0.0.1:9"};
	assert_string_not_equal(far_of(&other, "s3://b/some/store.zarr"), dir);
	other.remote.endpoint = (char[]){"http://127.0.0.1:9/"};
	dir = far_of(&other, "s3://b/some/store.zarr");
	assert_int_equal(setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9", 1), 0);
	assert_string_equal(far_of(&cfg, "s3://b/some/store.zarr"), dir);
	assert_int_equal(unsetenv("AWS_ENDPOINT_URL"), 0);
	/* no name leads out of the directory */
	assert_non_null(strstr(far_of(&cfg, "s3://b/.x%20y"), "/nczarrfs/_x_y-"));
	assert_int_equal(setenv("HOME", "", 1), 0);
	assert_null(far_of(&cfg, "s3://b/k"));
	assert_int_equal(setenv("XDG_STATE_HOME", "relative", 1), 0);
	assert_null(far_of(&cfg, "s3://b/k"));
	assert_int_equal(setenv("XDG_STATE_HOME", in_top("x/y"), 1), 0);
	assert_int_equal(rw_state_open(&cfg, "s3://b/k", false, &s, &e), -ENOENT);
	assert_int_equal(rw_state_open(&cfg, "s3://b/k", true, &s, &e), 0);
	assert_true(s.remote && s.is_dir);
	assert_int_equal(stat(s.dir, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_int_equal(rw_state_open(&cfg, "s3://b/k/", true, &t, &e), -EBUSY);
	assert_true(rw_state_bare(&s));
	assert_int_equal(close(openat(s.dir_fd, "log.1", O_CREAT | O_WRONLY, 0600)), 0);
	assert_false(rw_state_bare(&s));
	assert_int_equal(unlinkat(s.dir_fd, "log.1", 0), 0);
	rw_state_close(&s);
	cfg.write.state_dir = (char *)(uintptr_t)in_top("s");
	assert_non_null(strstr(far_of(&cfg, "s3://b/k"), "/s/k-"));
	assert_int_equal(rmdir(in_top("x/y/nczarrfs")), 0);
	assert_int_equal(rmdir(in_top("x/y")), 0);
	assert_int_equal(rmdir(in_top("x")), 0);
}

/* A process that ends while it holds the lock. */
static pid_t lock_and_end(const char *path, pid_t who, int ms)
{
	int ready[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		int fd = open(path, O_RDWR | O_CREAT, 0600);

		if (fd < 0 || flock(fd, LOCK_EX) < 0 ||
		    dprintf(fd, "process %ld, mounted on /m\n", (long)who) < 0 ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		(void)nanosleep(&(struct timespec){.tv_sec = ms / 1000,
						   .tv_nsec = ms % 1000 * 1000000L},
				NULL);
		_exit(0);
	}
	assert_int_equal(close(ready[1]), 0);
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(close(ready[0]), 0);
	return pid;
}

/* Processes of a killed mount may hold the lock for some time, which is awaited; the lock of
 * another mount is not. */
static void test_left_behind(void **state)
{
	struct cfg cfg = {0};
	struct rw_state s = RW_STATE_INIT;
	struct err e = ERR_INIT;
	pid_t gone = fork(), pid;
	int status;

	(void)state;
	if (gone == 0)
		_exit(0);
	assert_int_equal(waitpid(gone, &status, 0), gone);
	assert_int_equal(mkdir(in_top(".a.nc.nczarrfs"), 0700), 0);
	pid = lock_and_end(in_top(".a.nc.nczarrfs/lock"), gone, 200);
	assert_int_equal(rw_state_open(&cfg, in_top("a.nc"), true, &s, &e), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	rw_state_close(&s);

	assert_int_equal(mkdir(in_top(".a.nc.nczarrfs"), 0700), 0);
	pid = lock_and_end(in_top(".a.nc.nczarrfs/lock"), getpid(), 60000);
	assert_int_equal(rw_state_open(&cfg, in_top("a.nc"), true, &s, &e), -EBUSY);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(rw_state_open(&cfg, in_top("a.nc"), true, &s, &e), 0);
	rw_state_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_far),         cmocka_unit_test(test_place),
		cmocka_unit_test(test_locked),      cmocka_unit_test(test_kept),
		cmocka_unit_test(test_elsewhere),   cmocka_unit_test(test_not_ours),
		cmocka_unit_test(test_left),        cmocka_unit_test(test_base),
		cmocka_unit_test(test_left_behind),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
