/* SPDX-License-Identifier: BSD-3-Clause */
/* test_open_beneath.c - paths that lead outside are refused, with openat2 and without it. */
#include "base/os/open_beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

static int g_top, g_root; /* a directory, and "root" in it */

/* expectation - code: -errno; 0: it opens; 2: it opens, and is a link itself. */
struct expectation {
	const char *path;
	int flags, code, without; /* without: with a kernel that has no openat2 */
};

static const struct expectation g_expected[] = {
	{"", O_RDONLY | O_DIRECTORY, 0, 0},
	{"", O_PATH, 0, 0},
	{"a", O_RDONLY | O_DIRECTORY, 0, 0},
	{"a/b/file", O_RDONLY, 0, 0},
	{"a/b/file", O_PATH, 0, 0},
	{"a/b/file", O_RDONLY | O_DIRECTORY, -ENOTDIR, -ENOTDIR},
	{"a/b/file/x", O_RDONLY, -ENOTDIR, -ENOTDIR},
	{"a/none", O_RDONLY, -ENOENT, -ENOENT},
	{"none/none", O_RDONLY, -ENOENT, -ENOENT},
	{"pipe", O_RDONLY, 0, 0},
	{"a/..", O_RDONLY, 0, -EXDEV},
	{"..", O_RDONLY, -EXDEV, -EXDEV},
	{"a/../../secret", O_RDONLY, -EXDEV, -EXDEV},
	{"/", O_RDONLY, -EXDEV, -EXDEV},
	{"/etc/passwd", O_PATH, -EXDEV, -EXDEV},
	{"link", O_RDONLY, 0, -ELOOP},
	{"link", O_PATH, 0, -ELOOP},
	{"link", O_PATH | O_NOFOLLOW, 2, 2},
	{"link", O_RDONLY | O_NOFOLLOW, -ELOOP, -ELOOP},
	{"folder", O_RDONLY | O_DIRECTORY, 0, -ELOOP},
	{"folder/file", O_RDONLY, 0, -ELOOP},
	{"out", O_RDONLY, -EXDEV, -ELOOP},
	{"out", O_PATH | O_NOFOLLOW, 2, 2},
	{"away/secret", O_RDONLY, -EXDEV, -ELOOP},
	{"loop", O_RDONLY, -ELOOP, -ELOOP},
	{"dangling", O_RDONLY, -ENOENT, -ELOOP},
};

static unsigned differences(bool has_openat2)
{
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_LEN(g_expected); i++) {
		const struct expectation *x = &g_expected[i];
		int want = has_openat2 ? x->code : x->without;
		int fd = open_beneath(g_root, x->path, x->flags), got = fd < 0 ? fd : 0;
		struct stat st;

		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode))
			got = 2;
		if (fd >= 0 && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
			got = 3;
		if (fd >= 0)
			close(fd);
		if (got == want)
			continue;
		fprintf(stderr, "'%s' with flags %o: %d instead of %d\n", x->path,
			(unsigned int)x->flags, got, want);
		n++;
	}
	return n;
}

static void test_with(void **state)
{
	(void)state;
	assert_int_equal(differences(true), 0);
}

static void test_without(void **state)
{
	static const uint32_t codes[] = {ENOSYS, EPERM};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		struct sock_filter ops[] = {
			BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
			BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | codes[i]),
			BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		};
		const struct sock_fprog program = {.len = ARRAY_LEN(ops), .filter = ops};
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
			    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
				_exit(77); /* cannot be tried here */
			_exit(differences(false) != 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			skip();
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

static int touch(const char *path)
{
	int fd = openat(g_top, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	return fd < 0 ? -1 : close(fd);
}

/* Removing a directory removes its content, never the targets of links in it. */
static void test_remove(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(g_top, "kept", 0755), 0);
	assert_int_equal(mkdirat(g_top, "gone", 0755), 0);
	assert_int_equal(mkdirat(g_top, "gone/deep", 0755), 0);
	assert_int_equal(touch("kept/file") | touch("gone/deep/file") | touch("gone/file"), 0);
	assert_int_equal(symlinkat("../../kept", g_top, "gone/deep/dir"), 0);
	assert_int_equal(symlinkat("../kept/file", g_top, "gone/link"), 0);
	assert_int_equal(symlinkat("kept", g_top, "top"), 0);
	remove_beneath(g_top, "gone");
	remove_beneath(g_top, "top");
	remove_beneath(g_top, "none");
	assert_int_equal(faccessat(g_top, "gone", F_OK, 0), -1);
	assert_int_equal(faccessat(g_top, "top", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(faccessat(g_top, "kept/file", F_OK, 0), 0);
}

static char g_tmp[4096];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	(void)snprintf(g_tmp, sizeof(g_tmp), "%s/beneath-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(g_tmp))
		return -1;
	g_top = open(g_tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mkdirat(g_top, "root", 0755) || mkdirat(g_top, "root/a", 0755) ||
	    mkdirat(g_top, "root/a/b", 0755) || touch("root/a/b/file") || touch("secret") ||
	    mkfifoat(g_top, "root/pipe", 0644) || symlinkat("a/b/file", g_top, "root/link") ||
	    symlinkat("a/b", g_top, "root/folder") ||
	    symlinkat("../secret", g_top, "root/out") || symlinkat("..", g_top, "root/away") ||
	    symlinkat("loop", g_top, "root/loop") || symlinkat("none", g_top, "root/dangling"))
		return -1;
	g_root = openat(g_top, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return g_root < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	close(g_root);
	close(g_top);
	return nftw(g_tmp, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_with),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_remove),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
