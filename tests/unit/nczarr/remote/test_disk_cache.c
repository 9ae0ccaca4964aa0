/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache on disk: what is kept, for whom, and what becomes of it when its files are damaged. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/nczarr/remote/remote_fake.h"

#define KIB ((size_t)1024)
#define MIB ((size_t)1 << 20)

static char dir[64];

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st, (void)flag, (void)f;
	return remove(path);
}

static int fresh_dir(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/nczarrfs-disk-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static struct disk_cache *open_cache(uint64_t bytes)
{
	struct disk_cache *d = NULL;
	struct err e = ERR_INIT;

	if (disk_cache_open(dir, bytes, &d, &e) < 0)
		fail_msg("%s", e.msg);
	return d;
}

static const struct object_info v1 = {.size = 1000000, .etag = "\"1\""};
static const struct object_info v2 = {.size = 1000000, .etag = "\"2\""};
static uint8_t in[64 * 1024], out[64 * 1024];

static void fill(uint64_t seed)
{
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = fake_byte(seed, i);
}

static bool has(struct disk_cache *d, const char *key, const struct object_info *v,
		uint64_t block, size_t len)
{
	size_t n = 0;

	memset(out, 0xee, sizeof(out));
	if (!disk_cache_get(d, "s3://b/a", key, v, block, out, len, &n))
		return false;
	assert_int_equal(n, len);
	assert_memory_equal(in, out, len);
	return true;
}

static void test_keeps(void **state)
{
	struct disk_cache *d = open_cache(64 * MIB);
	struct stat st;
	char path[100];

	(void)state;
	fill(1);
	assert_false(has(d, "k", &v1, 0, 65536));
	disk_cache_put(d, "s3://b/a", "k", &v1, 0, in, 65536);
	disk_cache_put(d, "s3://b/a", "k", &v1, 7, in, 100);
	assert_true(has(d, "k", &v1, 0, 65536));
	assert_true(has(d, "k", &v1, 7, 100));
	assert_false(has(d, "k", &v2, 0, 65536));
	assert_false(has(d, "l", &v1, 0, 65536));
	assert_false(has(d, "k", &v1, 1, 65536));
	disk_cache_close(d);
	d = open_cache(64 * MIB); /* another process */
	assert_true(has(d, "k", &v1, 0, 65536));
	assert_true(has(d, "k", &v1, 7, 100));
	disk_cache_close(d);
	d = open_cache(32 * MIB); /* another size: begun anew */
	assert_false(has(d, "k", &v1, 0, 65536));
	disk_cache_close(d);
	(void)snprintf(path, sizeof(path), "%s/data-1", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* Two use it at a time, if they agree on the size. */
static void test_shared(void **state)
{
	struct disk_cache *d = open_cache(8 * MIB), *d2 = open_cache(8 * MIB), *other = NULL;
	struct err e = ERR_INIT;

	(void)state;
	fill(1);
	disk_cache_put(d, "s3://b/a", "k", &v1, 0, in, 65536);
	assert_true(has(d2, "k", &v1, 0, 65536));
	assert_int_equal(disk_cache_open(dir, 16 * MIB, &other, &e), -EBUSY);
	assert_non_null(strstr(e.msg, "cache_size"));
	disk_cache_close(d);
	assert_int_equal(disk_cache_open(dir, 16 * MIB, &other, &e), -EBUSY);
	assert_true(has(d2, "k", &v1, 0, 65536));
	disk_cache_close(d2);
	d = open_cache(16 * MIB);
	assert_false(has(d, "k", &v1, 0, 65536));
	disk_cache_close(d);
}

/* One that has it for itself, as earlier versions did, is not waited for. */
static void test_locked(void **state)
{
	struct disk_cache *d = open_cache(8 * MIB);
	struct err e = ERR_INIT;
	char path[100];
	int fd;

	(void)state;
	disk_cache_close(d);
	(void)snprintf(path, sizeof(path), "%s/lock", dir);
	fd = open(path, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(disk_cache_open(dir, 8 * MIB, &d, &e), -EBUSY);
	assert_int_equal(close(fd), 0);
	d = open_cache(8 * MIB);
	disk_cache_close(d);
}

/* use_it - a process: many blocks through few places. Returns its exit status: 0: it found blocks,
 * and what it found was right. */
static int use_it(uint64_t seed)
{
	struct disk_cache *d = NULL;
	size_t found = 0, n;

	if (disk_cache_open(dir, MIB, &d, NULL) < 0)
		return 1;
	for (uint64_t i = 0; i < 3000; i++) {
		uint64_t block = (i * 7 + seed) % 40;

		fill(block);
		if (!disk_cache_get(d, "s3://b/a", "k", &v1, block, out, sizeof(out), &n))
			disk_cache_put(d, "s3://b/a", "k", &v1, block, in, sizeof(in));
		else if (n == sizeof(in) && memcmp(in, out, n) == 0)
			found++;
		else
			return 2;
	}
	disk_cache_close(d);
	return found ? 0 : 3;
}

/* Processes that write to the same places find what they asked for, or nothing. */
static void test_at_the_same_time(void **state)
{
	enum { USERS = 4 };
	pid_t pids[USERS];
	int status;

	(void)state;
	for (uint64_t u = 0; u < USERS; u++) {
		pids[u] = fork();
		if (pids[u] == 0)
			_exit(use_it(u * 11));
	}
	for (size_t u = 0; u < USERS; u++) {
		assert_int_equal(waitpid(pids[u], &status, 0), pids[u]);
		assert_int_equal(status, 0);
	}
}

static void test_is_bounded(void **state)
{
	struct disk_cache *d = open_cache(4 * MIB);
	uint64_t bytes = 0;
	size_t last = 0;

	(void)state;
	fill(1);
	for (uint64_t i = 0; i < 2000; i++) {
		disk_cache_put(d, "s3://b/a", "k", &v1, i, in, 65536);
		disk_cache_put(d, "s3://b/a", "s", &v1, i, in, 4000);
	}
	for (uint64_t i = 1990; i < 2000; i++)
		last += has(d, "k", &v1, i, 65536);
	assert_true(last >= 5);
	for (int i = 0; i < 4; i++) {
		const char *const names[] = {"tags-0", "tags-1", "data-0", "data-1"};
		char path[100];
		struct stat st;

		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		assert_int_equal(stat(path, &st), 0);
		bytes += (uint64_t)st.st_size;
	}
	assert_true(bytes <= 4 * MIB);
	disk_cache_close(d);
}

/* What is used stays, what is not goes: as far as a set of 16 and the clock's seconds show it. */
static void test_damage(void **state)
{
	static const char *const names[] = {"data-1", "tags-1"};

	(void)state;
	fill(1);
	for (size_t f = 0; f < 2; f++) {
		for (int kind = 0; kind < 4; kind++) {
			struct disk_cache *d = open_cache(4 * MIB);
			char path[100];
			struct stat st;
			uint8_t b;
			int fd;

			(void)snprintf(path, sizeof(path), "%s/%s", dir, names[f]);
			for (uint64_t i = 0; i < 20; i++)
				disk_cache_put(d, "s3://b/a", "k", &v1, i, in, 65536);
			assert_true(has(d, "k", &v1, 3, 65536));
			fd = open(path, O_RDWR);
			assert_int_equal(fstat(fd, &st), 0);
			if (kind == 0)
				assert_int_equal(ftruncate(fd, st.st_size / 2), 0);
			for (off_t o = 0; kind == 1 && o < st.st_size; o += 997) {
				assert_int_equal(pread(fd, &b, 1, o), 1);
				b ^= 0x10;
				assert_int_equal(pwrite(fd, &b, 1, o), 1);
			}
			if (kind == 2)
				assert_int_equal(unlink(path), 0);
			if (kind == 3)
				assert_int_equal(ftruncate(fd, 0), 0);
			(void)close(fd);
			/* right, or not there (has compares) */
			for (uint64_t i = 0; i < 20; i++)
				(void)has(d, "k", &v1, i, 65536);
			/* and good again */
			disk_cache_put(d, "s3://b/a", "k", &v1, 3, in, 65536);
			assert_true(has(d, "k", &v1, 3, 65536));
			disk_cache_close(d);
			d = open_cache(4 * MIB);
			for (uint64_t i = 0; i < 20; i++)
				(void)has(d, "k", &v1, i, 65536);
			disk_cache_close(d);
		}
	}
}

/* A slot whose bytes are another block's, tag and checksum right: the digest is not. */
static void test_exchanged(void **state)
{
	struct disk_cache *d = open_cache(64 * KIB); /* one set of each */
	static uint8_t a[65600], b[65600];
	char path[100];
	int fd;

	(void)state;
	fill(1);
	disk_cache_put(d, "s3://b/a", "k", &v1, 0, in, 65536);
	fill(2);
	disk_cache_put(d, "s3://b/a", "k", &v1, 1, in, 65536);
	assert_true(has(d, "k", &v1, 1, 65536));
	(void)snprintf(path, sizeof(path), "%s/data-1", dir);
	fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, a, sizeof(a), 0), sizeof(a));
	assert_int_equal(pread(fd, b, sizeof(b), 65600), sizeof(b));
	assert_int_equal(pwrite(fd, b, sizeof(b), 0), sizeof(b));
	assert_int_equal(pwrite(fd, a, sizeof(a), 65600), sizeof(a));
	(void)close(fd);
	assert_false(has(d, "k", &v1, 1, 65536));
	fill(1);
	assert_false(has(d, "k", &v1, 0, 65536));
	disk_cache_close(d);
}

static void test_links_are_not_followed(void **state)
{
	struct disk_cache *d = NULL;
	struct err e = ERR_INIT;
	char path[100], target[100];
	struct stat st;

	(void)state;
	(void)snprintf(target, sizeof(target), "%s/mine", dir);
	(void)snprintf(path, sizeof(path), "%s/data-1", dir);
	assert_int_equal(symlink(target, path), 0);
	assert_true(disk_cache_open(dir, 8 * MIB, &d, &e) < 0);
	assert_int_equal(stat(target, &st), -1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(chmod(dir, 0777), 0);
	assert_int_equal(disk_cache_open(dir, 8 * MIB, &d, &e), -EPERM);
	assert_int_equal(chmod(dir, 0700), 0);
}

/* What is missing above the directory is made, the user's alone; what cannot be is an error. */
static void test_made_with_parents(void **state)
{
	struct disk_cache *d = NULL;
	struct err e = ERR_INIT;
	char above[100], path[120];
	struct stat st;
	int fd;

	(void)state;
	(void)snprintf(above, sizeof(above), "%s/a/b", dir);
	(void)snprintf(path, sizeof(path), "%s/c/", above);
	assert_int_equal(disk_cache_open(path, 8 * MIB, &d, &e), 0);
	disk_cache_close(d);
	assert_int_equal(stat(above, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	(void)snprintf(path, sizeof(path), "%s/file", above);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	(void)snprintf(path, sizeof(path), "%s/file/c", above);
	assert_int_equal(disk_cache_open(path, 8 * MIB, &d, &e), -ENOTDIR);
}

/* A process that is killed while it writes leaves nothing that is believed. */
static void test_killed(void **state)
{
	(void)state;
	for (int round = 0; round < 5; round++) {
		struct disk_cache *d;
		pid_t pid = fork();
		struct timespec ts = {.tv_nsec = 3000000 * (round + 1)};

		if (pid == 0) {
			d = open_cache(4 * MIB);
			for (uint64_t i = 0;; i++) {
				fill(i);
				disk_cache_put(d, "s3://b/a", "k", &v1, i, in, 65536);
			}
		}
		(void)nanosleep(&ts, NULL);
		(void)kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		d = open_cache(4 * MIB);
		for (uint64_t i = 0; i < 300; i++) {
			fill(i);
			(void)has(d, "k", &v1, i, 65536);
		}
		disk_cache_close(d);
	}
}

/* ---- below a store ---- */

struct mount {
	struct object_cache *c;
	struct store *s;
};

static void mount_open(struct mount *m, struct fake *f)
{
	struct remote_options o = {.cache_bytes = 64 * MIB,
				   .prefetch_bytes = 16 * MIB,
				   .connections = 8,
				   .cache_dir = dir,
				   .disk_bytes = 256 * MIB};
	struct err e = ERR_INIT;

	assert_int_equal(object_cache_new(&o, &m->c, &e), 0);
	assert_int_equal(store_remote_open(m->c, &f->base, "fake://a", &m->s, &e), 0);
}

static void mount_close(struct mount *m)
{
	store_close(m->s);
	object_cache_free(m->c);
}

static void read_all(struct mount *m, struct fake *f, const char *key)
{
	const struct fake_object *o = fake_find(f, key);
	uint8_t *p = malloc(o->len);
	struct err e = ERR_INIT;

	if (store_read(m->s, key, 0, p, o->len, NULL, &e) < 0)
		fail_msg("%s", e.msg);
	assert_memory_equal(p, o->data, o->len);
	free(p);
}

static void test_warm_mount(void **state)
{
	struct fake *f = fake_new(false);
	struct mount m;
	uint64_t bytes;

	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		f->weak = kind == 1;
		f->no_etags = kind == 2;
		fake_set(f, "chunk", NULL, 3 * MIB + 5);
		fake_set(f, ".zmetadata", NULL, 5000);
		fake_set(f, "file", NULL, 20 * MIB + 100);
		mount_open(&m, f);
		for (int i = 0; i < 3; i++)
			read_all(&m, f,
				 ((const char *const[]){"chunk", ".zmetadata", "file"})[i]);
		mount_close(&m);
		fake_forget(f);
		bytes = f->bytes;
		mount_open(&m, f);
		for (int i = 0; i < 3; i++)
			read_all(&m, f,
				 ((const char *const[]){"chunk", ".zmetadata", "file"})[i]);
		assert_int_equal(fake_count(f), 3);
		assert_int_equal(f->bytes, bytes);
		mount_close(&m);
		/* another version is fetched */
		fake_set(f, "chunk", NULL, 3 * MIB + 5);
		mount_open(&m, f);
		read_all(&m, f, "chunk");
		assert_true(f->bytes > bytes);
		mount_close(&m);
	}
	fake_free(f);
}

/* Two mounts: the second one asks whether what the first one has fetched is still that. */
static void test_second_mount(void **state)
{
	struct fake *f = fake_new(false);
	struct mount a, b, c;
	uint64_t bytes;

	(void)state;
	fake_set(f, "chunk", NULL, MIB);
	mount_open(&a, f);
	mount_open(&b, f);
	mount_open(&c, f);
	read_all(&a, f, "chunk");
	mount_close(&a); /* what it has is on the disk then */
	bytes = f->bytes;
	read_all(&b, f, "chunk");
	assert_int_equal(fake_count(f), 2);
	assert_int_equal(f->bytes, bytes);
	fake_set(f, "chunk", NULL, MIB + 1);
	read_all(&c, f, "chunk");
	assert_true(f->bytes > bytes);
	mount_close(&b);
	mount_close(&c);
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_keeps, fresh_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_shared, fresh_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_locked, fresh_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_at_the_same_time, fresh_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_is_bounded, fresh_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_damage, fresh_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_exchanged, fresh_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_links_are_not_followed, fresh_dir,
						remove_dir),
		cmocka_unit_test_setup_teardown(test_made_with_parents, fresh_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_killed, fresh_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_warm_mount, fresh_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_second_mount, fresh_dir, remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
