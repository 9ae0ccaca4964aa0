/* SPDX-License-Identifier: BSD-3-Clause */
/* Loss of power in a transaction: of writes that were not synced, any sectors may be on the disk.
 * A transaction is recorded, call by call; then files are made as a crash after each of its calls
 * may have left them, and are recovered. */
#include "tests/unit/hdf5view/journal/journal_place.h"

#define CALLS_MAX 1000
#define FILE_MAX ((size_t)1 << 20)

enum which { DATA, LOG, DIR_, N_WHICH };

static struct call {
	char what; /* as fault.seen has it */
	enum which which;
	uint8_t *data;
	size_t n;
	uint64_t off;
} calls[CALLS_MAX];
static unsigned n_calls;
static ino_t data_ino;

static void record(char what, int fd, const void *data, size_t n, uint64_t off)
{
	struct call *c = &calls[n_calls++];
	struct stat st;

	assert_true(n_calls < CALLS_MAX && off + n <= FILE_MAX);
	assert_int_equal(fstat(fd, &st), 0);
	*c = (struct call){.what = what, .n = n, .off = off};
	c->which = S_ISDIR(st.st_mode) ? DIR_ : st.st_ino == data_ino ? DATA : LOG;
	if (n == 0)
		return;
	c->data = malloc(n);
	assert_non_null(c->data);
	memcpy(c->data, data, n);
}

static uint64_t rnd_state = 1;

static uint32_t rnd(void)
{
	rnd_state = rnd_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(rnd_state >> 33);
}

struct image {
	uint8_t p[FILE_MAX];
	size_t size;
	bool there;
};

/* Sectors of a write; each with a chance of `percent`. */
static void put_sectors(struct image *im, const struct call *c, unsigned percent)
{
	for (size_t at = 0; at < c->n;) {
		size_t n = JOURNAL_SECTOR - (size_t)((c->off + at) % JOURNAL_SECTOR);

		n = n < c->n - at ? n : c->n - at;
		if (rnd() % 100 < percent)
			memcpy(im->p + c->off + at, c->data + at, n);
		at += n;
	}
}

static void resize(struct image *im, size_t size)
{
	if (size < im->size)
		memset(im->p + size, 0, im->size - size);
	im->size = size;
}

/* One file after the first n calls: the writes before its last sync are there, any part of the
 * others; its size is one that it had since. */
static void image_of(struct image *im, enum which which, unsigned n, unsigned percent)
{
	unsigned synced = 0, sizes = 0, keep;

	for (unsigned i = 0; i < n; i++)
		if (calls[i].which == which && calls[i].what == 's')
			synced = i + 1;
	for (unsigned i = synced; i < n; i++)
		sizes += calls[i].which == which && strchr("tw", calls[i].what);
	keep = percent == 100 ? sizes : percent == 0 || sizes == 0 ? 0 : rnd() % (sizes + 1);
	for (unsigned i = 0; i < n; i++) {
		const struct call *c = &calls[i];
		size_t end = c->off + c->n;

		if (c->which != which || !strchr("tw", c->what))
			continue;
		if (c->what == 'w')
			put_sectors(im, c, i < synced ? 100 : percent);
		if (i >= synced && keep == 0)
			continue;
		keep -= i >= synced;
		if (c->what == 't' || end > im->size)
			resize(im, end);
	}
	memset(im->p + im->size, 0, FILE_MAX - im->size);
}

/* Whether the log has a name after n calls. */
static bool log_is_there(unsigned n, unsigned percent)
{
	bool there = false, sure = true;

	for (unsigned i = 0; i < n; i++) {
		if (calls[i].what == 'c' || calls[i].what == 'u') {
			bool is = calls[i].what == 'c';

			if (rnd() % 100 < percent || percent == 100) {
				there = is;
				sure = true;
			} else {
				sure = false;
			}
		} else if (calls[i].which == DIR_ && calls[i].what == 's' && !sure) {
			there = !there;
			sure = true;
		}
	}
	return there;
}

static void put_file(int dir, const char *path, const struct image *im)
{
	int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, im->p, im->size), (ssize_t)im->size);
	assert_int_equal(close(fd), 0);
}

static void crash(struct place *p, const struct image *base, unsigned n, unsigned percent)
{
	static struct image im;

	im = *base;
	image_of(&im, DATA, n, percent);
	put_file(AT_FDCWD, p->path, &im);
	(void)syscall(SYS_unlinkat, p->dir_fd, JOURNAL_NAME, 0); /* of the round before */
	if (!log_is_there(n, percent))
		return;
	memset(&im, 0, sizeof(im));
	image_of(&im, LOG, n, percent);
	put_file(p->dir_fd, JOURNAL_NAME, &im);
}

static void record_one(struct place *p)
{
	struct stat st;
	bool committed;

	fresh(p);
	assert_int_equal(stat(p->path, &st), 0);
	data_ino = st.st_ino;
	fault = (struct fault){.on = true, .seen = record};
	assert_int_equal(load_run(p->path, p->dir_fd, &committed, NULL), 0);
	fault.on = false;
}

/* SEMANTICS W3, W9 */
static void any_sector_may_be_lost(void **state)
{
	static const unsigned chances[] = {0, 100, 50, 90, 10};
	static struct image base;
	struct place p;
	unsigned states[2] = {0, 0};
	int fd;

	(void)state;
	place_make(&p, &load_kinds[0]);
	fd = open(p.base, O_RDONLY);
	base.size = (size_t)read(fd, base.p, FILE_MAX);
	assert_true(base.size > 0 && base.size < FILE_MAX);
	assert_int_equal(close(fd), 0);
	record_one(&p);
	for (unsigned n = 0; n <= n_calls; n += n + 50 < n_calls ? 5 : 1)
		for (size_t k = 0; k < ARRAY_LEN(chances); k++) {
			char is;

			crash(&p, &base, n, chances[k]);
			is = judge(&p, "loss of power", n);
			states[is == 'n']++;
			if (n == n_calls)
				assert_int_equal(is, 'n'); /* commit has returned */
		}
	print_message("%u calls: old after %u, new after %u\n", n_calls, states[0], states[1]);
	assert_true(states[0] > 20 && states[1] > 20);
	for (unsigned i = 0; i < n_calls; i++)
		free(calls[i].data);
	place_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(any_sector_may_be_lost)};

	(void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
