/* SPDX-License-Identifier: BSD-3-Clause */
/* Manifests of a directory and of a remote store have the format of version 1: the same steps give
 * the same bytes, and a manifest that an earlier version left behind is carried out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/nczarr/sink_store.h"

#include "base/core/endian.h"
#include "nczarr/store/store.h"
#include "tests/unit/nczarr/store_mem.h"

#define CRC 4 /* bytes at the end */
#define MARK (ZS_FIRST - 8)

/* a step: its kind, a number, the length of its key, the key */
#define STEP(op, n, len, key) op n "\0\0\0\0\0\0\0" len "\0" key
#define NONE "\0\0\0\0\0\0\0\0"

/* the inode of the store's directory, and the checksum, are set by place_marks() */
static const char local[] = "nczarrfs commit 1\n" NONE
	STEP("A", "\0", "\1", "a")
	STEP("A", "\1", "\4", "gone")
	STEP("I", "\0", "\1", "b")
	STEP("P", "\0", "\3", "t/0")
	STEP("D", "\1", "\11", "t/.zarray")
	STEP("R", "\2", "\12", ".zmetadata")
	STEP("X", "\0", "\3", "t/1")
	STEP("E", "\7", "\0", "")
	"....";
static const char remote[] = "nczarrfs remote 1\n" NONE
	STEP("X", "\0", "\11", "a/.zarray")
	STEP("X", "\0", "\3", "a/0")
	STEP("X", "\0", "\14", "gone/.zarray")
	STEP("P", "\0", "\3", "t/0")
	STEP("V", "\4", "\11", "t/.zarray")
	STEP("D", "\1", "\11", "t/.zarray")
	STEP("V", "\0", "\12", ".zmetadata")
	STEP("R", "\2", "\12", ".zmetadata")
	STEP("X", "\0", "\3", "t/1")
	STEP("V", "\0", "\11", "b/.zarray")
	STEP("D", "\3", "\11", "b/.zarray")
	STEP("P", "\4", "\3", "b/0")
	STEP("E", "\14", "\0", "")
	"\x7c\x95\x66\xec";

static const char *const before[] = {"a/.zarray", "A",   "a/0", "A0", "gone/.zarray", "G",
				     "t/.zarray", "old", "t/1", "T1", NULL};
/* the files of the transaction; the last one is the copy of a remote object */
static const char *const files[] = {"T0", "new", "all", "A", "A0"};

struct place {
	struct zs_box box;
	struct store *store;
};

static void place_init(struct place *p, bool far)
{
	zs_box_init(&p->box, before);
	if (far) {
		p->store = store_mem_new();
		assert_non_null(p->store);
		for (size_t i = 0; before[i]; i += 2)
			assert_int_equal(store_mem_put(p->store, before[i], before[i + 1],
						       strlen(before[i + 1])),
					 0);
	} else {
		int fd = open(p->box.store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		assert_true(fd >= 0);
		assert_int_equal(store_dir_open(fd, &p->store, NULL), 0);
	}
}

static void place_release(struct place *p)
{
	store_close(p->store);
	zs_box_release(&p->box);
}

/* place_marks - the manifest of this place in `out`. */
static size_t place_marks(const struct place *p, bool far, uint8_t out[1024])
{
	size_t n = (far ? sizeof(remote) : sizeof(local)) - 1;
	struct stat st;

	memcpy(out, far ? remote : local, n);
	assert_int_equal(stat(p->box.store, &st), 0);
	if (!far) {
		put_le(out + MARK, st.st_ino, 8);
		put_le(out + n - CRC, codec_crc32c_sum(0, out, n - CRC), CRC);
	}
	return n;
}

static void is_new(const struct place *p)
{
	static const char *const after[] = {"b/.zarray", "A",   "b/0",        "A0", "t/.zarray",
					    "new",       "t/0", "T0",         ".zmetadata",
					    "all",       NULL};
	static const char *const none[] = {"a/.zarray", "a/0", "gone/.zarray", "t/1"};
	struct store_stat st;

	for (size_t i = 0; after[i]; i += 2) {
		auto_buf b = buf_of(100);

		assert_int_equal(store_get(p->store, after[i], &b, NULL, NULL), 0);
		assert_int_equal(b.len, strlen(after[i + 1]));
		assert_memory_equal(b.data, after[i + 1], b.len);
	}
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		assert_int_equal(store_stat(p->store, none[i], &st, NULL), -ENOENT);
}

/* ---- written ---- */

struct written {
	const struct place *p;
	bool far;
};

static int gate(void *arg, struct err *e)
{
	const struct written *w = arg;
	uint8_t want[1024], got[1024];
	size_t n = place_marks(w->p, w->far, want);
	auto_fd int fd = openat(w->p->box.state_fd, "manifest.new", O_RDONLY | O_CLOEXEC);

	(void)e;
	assert_int_equal(read(fd, got, sizeof(got)), n);
	assert_memory_equal(got, want, n);
	return 0;
}

static void writes(bool far)
{
	struct err e = ERR_INIT;
	struct place p;
	struct written w = {.p = &p, .far = far};
	struct zs_txn t;
	int rc;

	place_init(&p, far);
	rc = zs_txn_open(&t, p.store, p.box.state_fd, &e);
	rc = rc ? rc : zs_txn_step(&t, ZS_AWAY, 0, "a", &e);
	rc = rc ? rc : zs_txn_step(&t, ZS_AWAY, 1, "gone", &e);
	rc = rc ? rc : zs_txn_step(&t, ZS_INTO, 0, "b", &e);
	rc = rc ? rc : zs_txn_put(&t, ZS_PUT, "t/0", (const uint8_t *)"T0", 2, &e);
	rc = rc ? rc : zs_txn_put(&t, ZS_DOC, "t/.zarray", (const uint8_t *)"new", 3, &e);
	rc = rc ? rc : zs_txn_put(&t, ZS_ROOT, ".zmetadata", (const uint8_t *)"all", 3, &e);
	rc = rc ? rc : zs_txn_step(&t, ZS_DROP, 0, "t/1", &e);
	if (far) {
		struct store_stat st;

		assert_int_equal(store_fresh(p.store, "t/.zarray", &st, &e), 0);
		rc = rc ? rc : zs_remote_expect(&t, "t/.zarray", st.version, &e);
	}
	rc = rc ? rc : zs_txn_commit(&t, gate, &w, &e);
	if (rc)
		zs_die("commit", &e);
	zs_txn_close(&t);
	is_new(&p);
	place_release(&p);
}

static void test_written(void **state)
{
	(void)state;
	writes(false);
	writes(true);
}

/* ---- replayed ---- */

/* leave - what an earlier version left in the state directory. */
static void leave(const struct place *p, bool far, const uint8_t *manifest, size_t n)
{
	const size_t n_files = far ? ARRAY_LEN(files) : 3;

	zs_write(p->box.state, "manifest", manifest, n);
	for (size_t i = 0; i < n_files; i++) {
		char path[64];

		zs_txn_path(path, i);
		zs_write(p->box.state, path, files[i], strlen(files[i]));
	}
	if (far)
		zs_write(p->box.state, ZS_CONDITIONS, "", 0);
}

static void replays(bool far)
{
	struct err e = ERR_INIT;
	uint8_t bytes[1024];
	struct place p;
	size_t n;

	place_init(&p, far);
	n = place_marks(&p, far, bytes);
	leave(&p, far, bytes, n);
	if (zs_txn_recover(p.store, p.box.state_fd, &e))
		zs_die("recover", &e);
	is_new(&p);
	assert_int_equal(zs_txn_pending(p.box.state_fd, NULL), 0);
	assert_int_equal(faccessat(p.box.state_fd, "txn", F_OK, 0), -1);
	place_release(&p);
}

static void test_replayed(void **state)
{
	(void)state;
	replays(false);
	replays(true);
}

/* ---- refused ---- */

/* refuses - a manifest with one byte changed, and a valid checksum, is not applied. */
static void refuses(bool far, size_t at, uint8_t with, int code)
{
	struct err e = ERR_INIT;
	uint8_t bytes[1024];
	struct store_stat st;
	struct place p;
	size_t n;

	place_init(&p, far);
	n = place_marks(&p, far, bytes);
	bytes[at] = with ? with : bytes[at] ^ 1;
	put_le(bytes + n - CRC, codec_crc32c_sum(0, bytes, n - CRC), CRC);
	leave(&p, far, bytes, n);
	assert_int_equal(zs_txn_recover(p.store, p.box.state_fd, &e), code);
	assert_non_null(strstr(e.msg, "not applied"));
	assert_int_equal(zs_txn_pending(p.box.state_fd, NULL), 1);
	assert_int_equal(store_stat(p.store, "gone/.zarray", &st, &e), 0);
	assert_int_equal(store_stat(p.store, "t/0", &st, NULL), -ENOENT);
	place_release(&p);
}

static void test_refused(void **state)
{
	(void)state;
	for (int far = 0; far < 2; far++)
		refuses(far, MARK, 0, -ESTALE); /* of another store */
	/* steps of the other kind */
	refuses(false, ZS_FIRST, ZS_REMOVE_FIRST, -EBADMSG);
	refuses(true, ZS_FIRST, ZS_AWAY, -EBADMSG);
	refuses(true, ZS_FIRST, ZS_INTO, -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written),
		cmocka_unit_test(test_replayed),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
