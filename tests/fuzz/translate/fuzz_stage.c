/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_stage.c - the logs of what was written and is not in the dataset yet, which may hold
 * anything after a crash, or come from somebody else.
 *
 * Input: a byte of flags. RAW: the rest is a log. Else records (type, flags, key, data), which are
 * written as a log has them, whatever they say; DAMAGE: the last piece is written over the log.
 *
 * Properties: a log is refused with a message, or opened; what it has can be listed, looked up and
 * read, and is the same when it is opened again, read-only, or once more after another record;
 * records that end early take nothing with them that came before.
 *
 *   make fuzz TIME=60 FUZZ=stage */
#include <dirent.h>

#include "codecs/core/codec.h"
#include "tests/fuzz/fuzz.h"
#include "translate/stage/stage_int.h"

#define RECORDS 60
#define READ_MAX ((uint64_t)1 << 16)

enum { RAW = 1, DAMAGE = 2, SECOND = 4 };

/* sum - of everything that a stage says. */
struct sum {
	struct stage *s;
	uint64_t n, v;
	char last[STORE_KEY_MAX + 1];
};

static void add(struct sum *x, const void *p, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		x->v = (x->v ^ b[i]) * UINT64_C(0x100000001b3);
}

static bool entry(void *arg, const char *key, const struct stage_entry *e)
{
	static uint8_t room[READ_MAX];
	struct sum *x = arg;
	struct stage_entry found;
	char name[STORE_KEY_MAX + 1];
	struct err why = ERR_INIT;

	require(store_key_ok(key) && (x->n == 0 || strcmp(x->last, key) < 0));
	(void)snprintf(x->last, sizeof(x->last), "%s", key);
	x->n++;
	require(e->kind > STAGE_NOTHING && e->kind <= STAGE_ALIAS);
	stage_find(x->s, key, &found, name);
	require(found.kind == e->kind || e->kind == STAGE_GONE);
	add(x, key, strlen(key));
	add(x, &e->kind, sizeof(e->kind));
	if (found.kind == STAGE_ALIAS) {
		require(found.base_key == name && store_key_ok(name));
		add(x, name, strlen(name));
	}
	if (found.kind == STAGE_DATA && found.len <= READ_MAX) {
		int rc = stage_read(x->s, key, &found, 0, room, (size_t)found.len, &why);

		if (rc)
			failed_well(rc, &why);
		else
			add(x, room, (size_t)found.len);
	}
	return true;
}

static uint64_t sum_of(struct stage *s, uint64_t *ret_n)
{
	struct sum x = {.s = s};

	require(stage_each(s, UINT64_MAX, entry, &x) == 0);
	require(stage_empty(s) || stage_bytes(s) > 0);
	*ret_n = x.n;
	return x.v;
}

static void empty(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fdopendir(fd);
	const struct dirent *x;

	require(d != NULL);
	while ((x = readdir(d)))
		if (x->d_name[0] != '.')
			require(unlinkat(dir, x->d_name, 0) == 0);
	(void)closedir(d);
}

/* records - what the input says, with right checksums. */
static void records(int dir, uint64_t generation, struct slice *s, size_t most)
{
	struct stage_log *l = NULL;
	struct err e = ERR_INIT;

	require(log_create(dir, generation, &l, &e) == 0);
	for (size_t i = 0; i < most && more_of(s); i++) {
		struct rec r = {.type = (enum rec_type)(rd_u8(s) % (REC_TYPES + 1))};
		struct slice key, data;
		struct log_source from;

		r.flags = rd_u8(s) & 3;
		key = piece_of(s);
		data = piece_of(s);
		r.key = (const char *)(key.p ? key.p : (const uint8_t *)"");
		r.key_len = key.len;
		r.mtime_ns = (int64_t)i;
		r.crc = codec_crc32c_sum(0, data.p, data.len);
		from = (struct log_source){.mem = data.p ? data.p : (const uint8_t *)"",
					   .fd = -1,
					   .len = data.len};
		require(log_append(l, &r, &from, &e) == 0 || e.code == -EFBIG);
	}
	log_drop(l);
}

static void damage(int dir, struct slice *s)
{
	uint64_t off = rd_le16(s);
	struct slice piece = rest_of(s);
	int fd = openat(dir, "log.1", O_WRONLY | O_CLOEXEC);

	require(fd >= 0);
	if (piece.len == 0)
		require(ftruncate(fd, (off_t)off) == 0);
	else
		require(io_pwrite(fd, piece.p, piece.len, off, NULL) == 0);
	(void)close(fd); /* in memory */
}

static void look(int dir)
{
	struct stage *s = NULL;
	struct err e = ERR_INIT;
	uint64_t n, m, v;
	int rc = stage_open(dir, true, &s, &e);

	if (rc) {
		failed_well(rc, &e);
		return;
	}
	v = sum_of(s, &n);
	stage_close(s);
	require(stage_open(dir, false, &s, &e) == 0);
	require(sum_of(s, &m) == v && m == n);
	rc = stage_put(s, "zz/new", (const uint8_t *)"x", 1, &e);
	require(rc == 0);
	v = sum_of(s, &n);
	stage_close(s);
	require(stage_open(dir, true, &s, &e) == 0);
	require(sum_of(s, &m) == v && m == n);
	stage_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice s = slice_of(data, size);
	uint8_t flags = rd_u8(&s);
	int dir = open(fuzz_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	require(dir >= 0);
	empty(dir);
	if (flags & RAW) {
		put_file(dir, "log.1", s.p, s.len);
	} else {
		records(dir, 1, &s, flags & DAMAGE ? 6 : RECORDS);
		if (flags & SECOND)
			records(dir, 2, &s, flags & DAMAGE ? 6 : RECORDS);
		if (flags & DAMAGE)
			damage(dir, &s);
	}
	look(dir);
	empty(dir);
	(void)close(dir);
	return 0;
}
