/* SPDX-License-Identifier: BSD-3-Clause */
/* The errnos for the kernel, and the frequency of log lines. */
#include "fusefs/app/fusefs.h"
#include "fusefs/daemon/mountinfo.h"
#include "fusefs/ops/request_int.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/observe/log.h"
#include "base/observe/log_limit_int.h"

static void test_errno(void **state)
{
	static const int all[] = {EBADMSG, EOPNOTSUPP, ERANGE, EINVAL, EIO,   EISDIR,
				  EPERM,   EACCES,     ENOSYS, EAGAIN, ENXIO, 12345};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		assert_int_equal(reply_errno(-all[i], true), EIO);
		assert_int_equal(reply_errno(-all[i], false), EIO);
	}
	/* Absence is only reported if a name was looked up. */
	assert_int_equal(reply_errno(-ENOENT, true), ENOENT);
	assert_int_equal(reply_errno(-ENOENT, false), EIO);
	assert_int_equal(reply_errno(-ENOTDIR, true), ENOTDIR);
	assert_int_equal(reply_errno(-ENOTDIR, false), EIO);
	assert_int_equal(reply_errno(-ESTALE, false), ESTALE);
	assert_int_equal(reply_errno(-EINTR, false), EINTR);
	assert_int_equal(reply_errno_write(-EINTR, false), EINTR);
	assert_int_equal(reply_errno(-ENOMEM, false), ENOMEM);
}

/* Only a signal that ends the program cancels a request. */
static void test_dying(void **state)
{
	static const struct {
		const char *own, *shared, *blocked;
		int dying;
	} cases[] = {
		{"0000000000000000", "0000000000000000", "0000000000000000", 0},
		{"0000000000000100", "0000000000000000", "0000000000000000", 1}, /* KILL */
		{"0000000000000000", "0000000000000002", "0000000000000000", 1}, /* INT */
		{"0000000000000000", "0000000000000002", "0000000000000002", 0},
		{"0000000000000000", "0000000000004000", "0000000000000000", 1}, /* TERM */
		{"0000000000000000", "0000000000010000", "0000000000000000", 0}, /* CHLD */
		{"0000000000400000", "0000000008000000", "0000000000000000", 0}, /* URG, PROF */
	};
	char text[300];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		(void)snprintf(text, sizeof(text),
			       "Name:\tcat\nSigQ:\t0/1\nSigPnd:\t%s\nShdPnd:\t%s\n"
			       "SigBlk:\t%s\nSigIgn:\t0000000000000100\n",
			       cases[i].own, cases[i].shared, cases[i].blocked);
		assert_int_equal(ops_dying(text), cases[i].dying);
	}
	assert_int_equal(ops_dying(""), -1);
	assert_int_equal(ops_dying("Name:\tSigPnd:\nShdPnd:\t0\n"), -1);
}

static void explained(const char *text, const char *part)
{
	char dir[] = "/mnt/x";
	struct cfg cfg = {.mountpoint = dir};
	struct err e = ERR_INIT;

	assert_int_equal(fs_explain_mount(&cfg, text, &e), -EIO);
	if (!strstr(e.msg, part))
		fail_msg("'%s' does not say '%s'", e.msg, part);
	assert_null(strstr(e.msg, "nczarrfs: "));
}

static void test_explain(void **state)
{
	(void)state;
	explained(
		"fusermount3: option allow_other only allowed if 'user_allow_other' is set in "
		"/etc/fuse.conf\n",
		"/etc/fuse.conf");
	explained("fusermount3: user has no write access to mountpoint /mnt/x\n", "not yours");
	explained("/usr/bin/fusermount3: mount failed: Operation not permitted\n", "container");
	explained("fusermount3: too many FUSE filesystems mounted; mount_max=N can be set\n",
		  "mount_max");
	explained("nczarrfs: fuse: some complaint\nand another\n", "'/mnt/x': some complaint");
	explained("", "try again with -d");
}

static void test_mountpoint(void **state)
{
	char none[] = "/tmp/nczarrfs-no-such-dir/mnt", file[] = "/etc/passwd", root[] = "/";
	char source[] = "/etc/passwd";
	struct cfg cfg = {.mountpoint = none, .source = source};
	struct err e = ERR_INIT;
	bool made;

	(void)state;
	assert_int_equal(fs_check_mountpoint(&cfg, &made, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "mkdir -p"));
	assert_false(made);
	cfg.mountpoint = file;
	assert_int_equal(fs_check_mountpoint(&cfg, &made, &e), -ENOTDIR);
	cfg.mountpoint = root;
	assert_int_equal(fs_check_mountpoint(&cfg, &made, &e), -EBUSY);
	assert_non_null(strstr(e.msg, "would hide '/etc/passwd'"));
	assert_int_equal(fs_mount_id("/"), 0);
}

static void test_once(void **state)
{
	struct reply_log log = {.lock = PTHREAD_MUTEX_INITIALIZER};
	char text[32];

	(void)state;
	assert_false(reply_log_done(&log, "filter 7"));
	reply_log_once(&log, "filter 7");
	assert_true(reply_log_done(&log, "filter 7"));
	for (unsigned i = 0; i < 300; i++) {
		(void)snprintf(text, sizeof(text), "text %u", i);
		reply_log_once(&log, text);
	}
	assert_true(reply_log_done(&log, "text 100"));
	assert_false(reply_log_done(&log, "text 299")); /* the table was full */
	assert_true(reply_log_done(&log, "filter 7"));
}

/* One limiter counts the lines: LOG_SAME of one kind in a minute. A suppressed line does not count
 * as logged. */
static void test_crowd(void **state)
{
	struct fs fs = {.log = {.lock = PTHREAD_MUTEX_INITIALIZER}};
	struct err e = ERR_INIT;
	uint32_t told = 0;

	(void)state;
	log_limited();
	for (unsigned i = 0; i < 30; i++) {
		(void)err_set(&e, -EOPNOTSUPP, "filter %u", i);
		reply_log(&fs, &e);
	}
	for (unsigned i = 0; i < 30; i++) {
		(void)err_set(&e, -EOPNOTSUPP, "filter %u", i);
		told += reply_log_done(&fs.log, e.msg);
	}
	assert_int_equal(told, LOG_SAME);
}

/* The modes of a file, for its owner, its group, others and root. SEMANTICS P31 */
static void test_access(void **state)
{
	static const struct {
		mode_t mode;
		uid_t uid;
		bool in_group;
		int mask;
		bool may;
	} cases[] = {
		{S_IFREG | 0644, 7, false, R_OK | W_OK, true},
		{S_IFREG | 0644, 7, false, X_OK, false},
		{S_IFREG | 0044, 7, true, R_OK, false}, /* the owner's class decides alone */
		{S_IFREG | 0640, 8, true, R_OK, true},
		{S_IFREG | 0640, 8, true, W_OK, false},
		{S_IFREG | 0604, 8, true, R_OK, false},
		{S_IFREG | 0640, 8, false, R_OK, false},
		{S_IFREG | 0601, 8, false, X_OK, true},
		{S_IFREG | 0000, 0, false, R_OK | W_OK, true},
		{S_IFREG | 0666, 0, false, X_OK, false},
		{S_IFREG | 0001, 0, false, X_OK, true},
		{S_IFDIR | 0000, 0, false, R_OK | W_OK | X_OK, true},
		{S_IFDIR | 0600, 7, false, X_OK, false},
		{S_IFREG | 0000, 8, false, F_OK, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct stat st = {.st_mode = cases[i].mode, .st_uid = 7, .st_gid = 70};

		if (access_allowed(&st, cases[i].uid, cases[i].in_group, cases[i].mask) !=
		    cases[i].may)
			fail_msg("case %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errno),      cmocka_unit_test(test_dying),
		cmocka_unit_test(test_once),       cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_explain),    cmocka_unit_test(test_mountpoint),
		cmocka_unit_test(test_access),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
