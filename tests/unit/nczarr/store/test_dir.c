/* SPDX-License-Identifier: BSD-3-Clause */
/* test_dir.c - directories: what is there is never called absent, and nothing outside
 * is ever read. */
#include "tests/unit/store_util.h"

#include "nczarr/store/store.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char g_tmp[PATH_MAX];
static int g_top;         /* the temporary directory */
static struct store *g_s; /* top/base */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void put(const char *path, const char *text)
{
	int fd = openat(g_top, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void folder(const char *path)
{
	assert_int_equal(mkdirat(g_top, path, 0755), 0);
}

static void lead(const char *to, const char *path)
{
	assert_int_equal(symlinkat(to, g_top, path), 0);
}

static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");
	struct err e;
	int fd;

	(void)state;
	(void)snprintf(g_tmp, sizeof(g_tmp), "%s/store-dir-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(g_tmp))
		return -1;
	g_top = open(g_tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	folder("base");
	fd = openat(g_top, "base", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return store_dir_open(fd, &g_s, &e);
}

static int teardown(void **state)
{
	(void)state;
	store_close(g_s);
	close(g_top);
	return nftw(g_tmp, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *minus(int code)
{
	static char text[4][12];
	static int next;
	char *p = text[next++ % 4];

	(void)snprintf(p, sizeof(text[0]), "%d", -code);
	return p;
}

static void test_tree(void **state)
{
	struct store_stat st;
	struct err e;

	(void)state;
	folder("base/a");
	folder("base/a/b");
	folder("base/empty");
	put("base/.zgroup", "{}");
	put("base/a/b/0.0", "twelve bytes");
	put("base/a/none", "");
	for (int want = 0; want < 2; want++) {
		assert_string_equal(listing_of(g_s, "", want), ".zgroup a/ empty/");
		assert_string_equal(listing_of(g_s, "a", want), "b/ none");
		assert_string_equal(listing_of(g_s, "empty", want), "");
		assert_string_equal(listing_of(g_s, "a/none", want), minus(ENOENT));
		assert_string_equal(listing_of(g_s, "a/x", want), minus(ENOENT));
	}
	assert_string_equal(text_of(g_s, "a/b/0.0"), "twelve bytes");
	assert_string_equal(text_of(g_s, "a/none"), "");
	assert_string_equal(text_of(g_s, "a/b/0.1"), minus(ENOENT));
	assert_string_equal(text_of(g_s, "a/none/x"), minus(ENOENT));
	assert_string_equal(text_of(g_s, "a/none/x/y"), minus(ENOENT));
	assert_string_equal(text_of(g_s, "x/y/z"), minus(ENOENT));
	assert_string_equal(text_of(g_s, "a/b"), minus(EISDIR));
	assert_int_equal(store_stat(g_s, "", &st, &e), 0);
	assert_true(st.is_dir && st.version);
	assert_int_equal(store_stat(g_s, "a/none/x", &st, &e), -ENOENT);
	assert_int_equal(store_check(g_s, &e), 0);
}

/* links inside are followed; the others are there, and unreadable */
static void test_links(void **state)
{
	struct store_stat st;
	struct err e;
	char path[PATH_MAX + 16];

	(void)state;
	folder("base/data");
	folder("outside");
	put("outside/secret", "secret");
	put("base/data/x", "inside");
	lead("data/x", "base/file");
	lead("../data/x", "base/data/back");
	lead("data", "base/folder");
	lead("nothing", "base/dangling");
	lead("data/x/y", "base/through");
	lead("loop", "base/loop");
	lead("../outside/secret", "base/out");
	lead("../outside", "base/out-folder");
	(void)snprintf(path, sizeof(path), "%s/base/data/x", g_tmp);
	lead(path, "base/absolute");
	lead("/proc/self/exe", "base/magic");

	for (int want = 0; want < 2; want++)
		assert_string_equal(listing_of(g_s, "", want),
				    "absolute? dangling? data/ file folder/ loop? magic? "
				    "out-folder? out? through?");
	assert_string_equal(listing_of(g_s, "folder", true), "back x");
	assert_string_equal(listing_of(g_s, "out-folder", true), minus(EXDEV));
	assert_string_equal(listing_of(g_s, "dangling", true), minus(EIO));
	assert_string_equal(text_of(g_s, "file"), "inside");
	assert_string_equal(text_of(g_s, "folder/x"), "inside");
	assert_string_equal(text_of(g_s, "folder/back"), "inside");
	assert_string_equal(text_of(g_s, "folder/none"), minus(ENOENT));
	assert_string_equal(text_of(g_s, "file/none"), minus(ENOENT));
	assert_string_equal(text_of(g_s, "dangling"), minus(EIO));
	assert_string_equal(text_of(g_s, "dangling/x"), minus(EIO));
	assert_string_equal(text_of(g_s, "dangling/x/y"), minus(EIO));
	assert_string_equal(text_of(g_s, "through"), minus(EIO));
	assert_string_equal(text_of(g_s, "loop"), minus(ELOOP));
	assert_string_equal(text_of(g_s, "out"), minus(EXDEV));
	assert_string_equal(text_of(g_s, "out-folder/secret"), minus(EXDEV));
	assert_string_equal(text_of(g_s, "out-folder/none"), minus(EXDEV));
	assert_string_equal(text_of(g_s, "absolute"), minus(EXDEV));
	assert_string_equal(text_of(g_s, "magic"), minus(EXDEV));
	assert_int_equal(store_stat(g_s, "out-folder/none", &st, &e), -EXDEV);
	assert_int_equal(store_stat(g_s, "dangling/none", &st, &e), -EIO);
	assert_int_equal(store_stat(g_s, "file", &st, &e), 0);
	assert_true(st.size == 6 && !st.odd);
}

/* pipes without a writer, and sockets: no hang, no data */
static void test_special(void **state)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(mkfifoat(g_top, "base/pipe", 0644), 0);
	(void)snprintf(name.sun_path, sizeof(name.sun_path), "/proc/self/fd/%d/base/socket",
		       g_top);
	assert_int_equal(bind(fd, (const struct sockaddr *)(const void *)&name, sizeof(name)),
			 0);
	lead("pipe", "base/to-pipe");
	for (int want = 0; want < 2; want++)
		assert_string_equal(listing_of(g_s, "", want), "pipe? socket? to-pipe?");
	assert_string_equal(text_of(g_s, "pipe"), minus(EIO));
	assert_string_equal(text_of(g_s, "to-pipe"), minus(EIO));
	assert_string_equal(text_of(g_s, "socket"), minus(EIO));
	assert_string_equal(listing_of(g_s, "pipe", true), minus(ENOENT));
	close(fd);
}

/* in_child - run a test's body where it cannot disturb others; it fails by its exit status. */
static void in_child(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void require(bool ok, int line)
{
	if (ok)
		return;
	fprintf(stderr, "%s:%d: not so\n", __FILE__, line);
	_exit(1);
}
#define REQUIRE(x) require(x, __LINE__)

static bool take_odd(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	(void)is_dir;
	*(bool *)arg = strcmp(name, "x") == 0 && st && st->odd && st->size == 0;
	return true;
}

static void without_permission(void)
{
	struct store_stat st;
	uint8_t out[4];
	struct err e;
	bool odd = false;
	struct store *s;
	int fd;

	/* root may read everything */
	if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
		_exit(0);
	fd = openat(g_top, "base", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	REQUIRE(fd >= 0 && store_dir_open(fd, &s, &e) == 0);
	REQUIRE(store_stat(s, "hidden", &st, &e) == 0 && st.odd && st.size == 0 && st.version);
	REQUIRE(store_read(s, "hidden", 0, out, 1, NULL, &e) == -EACCES);
	REQUIRE(store_stat(s, "closed", &st, &e) == 0 && st.is_dir);
	REQUIRE(store_stat(s, "closed/x", &st, &e) == -EACCES);
	REQUIRE(store_stat(s, "closed/none", &st, &e) == -EACCES);
	REQUIRE(store_list(s, "closed", true, take_odd, &odd, &e) == -EACCES);
	/* listed, not searched: x is there, that is all that is known */
	REQUIRE(store_list(s, "listed", true, take_odd, &odd, &e) == 0 && odd);
	REQUIRE(store_stat(s, "listed/x", &st, &e) == -EACCES);
	/* a link into it */
	REQUIRE(store_stat(s, "into", &st, &e) == 0 && st.odd);
	REQUIRE(store_stat(s, "open", &st, &e) == 0 && !st.odd && st.size == 4);
	store_close(s);
}

static void test_permission(void **state)
{
	(void)state;
	put("base/hidden", "1234");
	put("base/open", "1234");
	folder("base/closed");
	folder("base/listed");
	put("base/closed/x", "1");
	put("base/listed/x", "1");
	lead("closed/x", "base/into");
	assert_int_equal(fchmod(g_top, 0755), 0);
	assert_int_equal(fchmodat(g_top, "base/hidden", 0, 0), 0);
	assert_int_equal(fchmodat(g_top, "base/closed", 0, 0), 0);
	assert_int_equal(fchmodat(g_top, "base/listed", 0444, 0), 0);
	in_child(without_permission);
	assert_int_equal(fchmodat(g_top, "base/closed", 0755, 0), 0);
	assert_int_equal(fchmodat(g_top, "base/listed", 0755, 0), 0);
}

/* no_openat2 - this process, as on a kernel or in a sandbox that does not know openat2. */
static void no_openat2(uint32_t code)
{
	struct sock_filter ops[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = ARRAY_LEN(ops), .filter = ops};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(0); /* cannot be tried here */
}

static bool count_odd(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	(void)name;
	*(unsigned *)arg += is_dir ? 100 : st && st->odd ? 1 : 10;
	return true;
}

static void look_without(uint32_t code)
{
	struct store_stat st;
	uint8_t out[6];
	unsigned sum = 0;
	struct err e;

	no_openat2(code);
	REQUIRE(store_read(g_s, "data/x", 0, out, 6, NULL, &e) == 0 &&
		memcmp(out, "inside", 6) == 0);
	REQUIRE(store_stat(g_s, "data", &st, &e) == 0 && st.is_dir);
	REQUIRE(store_stat(g_s, "", &st, &e) == 0 && st.is_dir);
	REQUIRE(store_stat(g_s, "none", &st, &e) == -ENOENT);
	REQUIRE(store_stat(g_s, "data/none", &st, &e) == -ENOENT);
	REQUIRE(store_stat(g_s, "none/none", &st, &e) == -ENOENT);
	REQUIRE(store_stat(g_s, "data/x/none", &st, &e) == -ENOENT);
	REQUIRE(store_stat(g_s, "file", &st, &e) == 0 && st.odd);
	REQUIRE(store_stat(g_s, "folder", &st, &e) == 0 && st.odd);
	REQUIRE(store_stat(g_s, "folder/x", &st, &e) == -ELOOP);
	REQUIRE(store_stat(g_s, "folder/none", &st, &e) == -ELOOP);
	REQUIRE(store_read(g_s, "file", 0, out, 6, NULL, &e) == -ELOOP);
	REQUIRE(store_read(g_s, "out", 0, out, 6, NULL, &e) == -ELOOP);
	REQUIRE(store_list(g_s, "folder", true, count_odd, &sum, &e) == -ELOOP);
	REQUIRE(store_list(g_s, "data", true, count_odd, &sum, &e) == 0 && sum == 10);
	sum = 0;
	/* data/, and three links */
	REQUIRE(store_list(g_s, "", true, count_odd, &sum, &e) == 0 && sum == 103);
}

static void look_enosys(void)
{
	look_without(ENOSYS);
}

static void look_eperm(void)
{
	look_without(EPERM);
}

static void test_old_kernel(void **state)
{
	(void)state;
	folder("base/data");
	put("base/data/x", "inside");
	put("secret", "secret");
	lead("data/x", "base/file");
	lead("data", "base/folder");
	lead("../secret", "base/out");
	in_child(look_enosys);
	in_child(look_eperm);
}

/* no_lstat - this process, for which each look at a name fails. */
static void no_lstat(uint32_t code)
{
	const uint32_t low = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0;
	struct sock_filter ops[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_newfstatat, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[3]) + low),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AT_SYMLINK_NOFOLLOW, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = ARRAY_LEN(ops), .filter = ops};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(0); /* cannot be tried here */
}

static void list_short_of(int code)
{
	unsigned sum = 0;
	struct err e;

	no_lstat((uint32_t)code);
	REQUIRE(store_list(g_s, "data", true, count_odd, &sum, &e) == -code && sum == 0);
}

static void list_enomem(void)
{
	list_short_of(ENOMEM);
}

static void list_eio(void)
{
	list_short_of(EIO);
}

/* one descriptor for the directory, none for where its link leads */
static void list_emfile(void)
{
	struct rlimit most;
	unsigned sum = 0;
	struct err e;
	int fd = dup(g_top);

	REQUIRE(fd >= 0 && getrlimit(RLIMIT_NOFILE, &most) == 0);
	close(fd);
	most.rlim_cur = (rlim_t)fd + 1;
	REQUIRE(setrlimit(RLIMIT_NOFILE, &most) == 0);
	REQUIRE(store_list(g_s, "links", true, count_odd, &sum, &e) == -EMFILE && sum == 0);
}

/* a machine that is short of something fails the listing; no entry of it is called odd */
static void test_accidents(void **state)
{
	(void)state;
	folder("base/data");
	folder("base/links");
	put("base/data/x", "inside");
	lead("../data/x", "base/links/x");
	in_child(list_enomem);
	in_child(list_eio);
	in_child(list_emfile);
}

static void test_versions(void **state)
{
	struct store_stat st[4];
	struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000, .tv_nsec = 1}};
	uint64_t version;
	uint8_t out[1];
	struct err e;

	(void)state;
	put("base/a", "1");
	put("base/b", "1");
	assert_int_equal(store_stat(g_s, "a", &st[0], &e), 0);
	assert_int_equal(store_stat(g_s, "b", &st[1], &e), 0);
	assert_int_equal(utimensat(g_top, "base/a", times, 0), 0);
	assert_int_equal(store_stat(g_s, "a", &st[2], &e), 0);
	times[1].tv_nsec = 2;
	assert_int_equal(utimensat(g_top, "base/a", times, 0), 0);
	assert_int_equal(store_stat(g_s, "a", &st[3], &e), 0);
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < i; j++)
			assert_true(st[i].version != st[j].version);
	assert_int_equal(store_read(g_s, "a", 0, out, 1, &version, &e), 0);
	assert_true(version == st[3].version);
}

/* a file that became shorter is an error, and a buffer that is too small is told so */
static void test_limits(void **state)
{
	uint8_t out[16];
	struct err e;
	struct buf b;
	char name[300];

	(void)state;
	put("base/a", "12345678");
	assert_int_equal(store_read(g_s, "a", 4, out, 5, NULL, &e), -EIO);
	assert_int_equal(store_read(g_s, "a", UINT64_MAX, out, 5, NULL, &e), -EIO);
	buf_init(&b, 10);
	buf_puts(&b, "abc");
	assert_int_equal(store_get(g_s, "a", &b, NULL, &e), -ERANGE);
	assert_true(buf_ok(&b) && b.len == 3);
	buf_clear(&b);
	assert_int_equal(store_get(g_s, "a", &b, NULL, &e), 0);
	assert_int_equal(b.len, 8);
	buf_release(&b);
	memset(name, 'n', sizeof(name));
	name[299] = '\0';
	assert_int_equal(store_get(g_s, name, &b, NULL, &e), -ENAMETOOLONG);
}

/* a root that was removed says nothing about what was in it */
static void test_removed(void **state)
{
	struct store_stat st;
	struct err e;

	(void)state;
	assert_int_equal(store_stat(g_s, "a", &st, &e), -ENOENT);
	assert_int_equal(unlinkat(g_top, "base", AT_REMOVEDIR), 0);
	assert_int_equal(store_stat(g_s, "a", &st, &e), -ESTALE);
	assert_string_equal(listing_of(g_s, "", true), minus(ESTALE));
	assert_string_equal(text_of(g_s, "a"), minus(ESTALE));
}

static bool stop_at_two(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	(void)name;
	(void)is_dir;
	(void)st;
	return ++*(unsigned *)arg < 2;
}

static void test_stop(void **state)
{
	unsigned n = 0;
	struct err e;

	(void)state;
	put("base/a", "");
	put("base/b", "");
	put("base/c", "");
	assert_int_equal(store_list(g_s, "", true, stop_at_two, &n, &e), 0);
	assert_int_equal(n, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tree, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links, setup, teardown),
		cmocka_unit_test_setup_teardown(test_special, setup, teardown),
		cmocka_unit_test_setup_teardown(test_permission, setup, teardown),
		cmocka_unit_test_setup_teardown(test_old_kernel, setup, teardown),
		cmocka_unit_test_setup_teardown(test_accidents, setup, teardown),
		cmocka_unit_test_setup_teardown(test_versions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stop, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
