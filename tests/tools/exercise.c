/* SPDX-License-Identifier: BSD-3-Clause */
/* exercise.c - random reads, writes, maps, truncations, syncs and reopenings of one file, against a
 * model of it in memory.
 *
 *	exercise [-n OPS] [-s SEED] [-m BYTES] [-c OPS] FILE
 *
 * -n  operations (10000); -s  seed (1); -m  most bytes that the file gets (262144)
 * -c  FILE exists and is a dataset: after so many operations it is brought back to what it was,
 *     closed and opened again, and must be what it was; never synced or closed in between
 *
 * Ends with 0, or with 1 after the first difference and what led to it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HISTORY 24
#define CHECK_EACH 997 /* operations, after which everything is compared */

static struct {
	const char *path;
	int fd;
	uint8_t *model, *mem;
	size_t size, max;
	uint8_t *first; /* -c: what it was */
	size_t first_size;
	uint64_t rnd, n;
	char history[HISTORY][100];
} x;

static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(x.history[x.n % HISTORY], sizeof(x.history[0]), fmt, ap);
	va_end(ap);
}

static _Noreturn void lose(const char *what, size_t at)
{
	uint64_t from = x.n >= HISTORY ? x.n - HISTORY + 1 : 0;

	printf("%s: operation %" PRIu64 ": %s at %zu (size %zu)", x.path, x.n, what, at,
	       x.size);
	if (errno)
		printf(": %s", strerror(errno));
	printf("\n");
	for (uint64_t i = from; i <= x.n; i++)
		printf("  %" PRIu64 ": %s\n", i, x.history[i % HISTORY]);
	exit(1);
}

static uint32_t rnd(void)
{
	x.rnd = x.rnd * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(x.rnd >> 33);
}

/* Places and lengths of all orders of magnitude, many of them at pages. */
static size_t below(size_t n)
{
	size_t v;

	if (n == 0)
		return 0;
	v = rnd() % 3 ? rnd() % n : rnd() % (n < 64 ? n : 64);
	if (rnd() % 5 == 0)
		v &= ~(size_t)4095;
	return v;
}

static void compare(const uint8_t *got, size_t off, size_t n, const char *what)
{
	errno = 0;
	for (size_t i = 0; i < n; i++)
		if (got[i] != x.model[off + i])
			lose(what, off + i);
}

static void check_size(void)
{
	struct stat st;

	errno = 0;
	if (fstat(x.fd, &st) < 0)
		lose("stat", 0);
	if ((size_t)st.st_size != x.size)
		lose("stat has another size", (size_t)st.st_size);
}

static void read_some(size_t off, size_t n)
{
	size_t want = off >= x.size ? 0 : n < x.size - off ? n : x.size - off, got = 0;

	while (got < n) {
		ssize_t rc = pread(x.fd, x.mem + got, n - got, (off_t)(off + got));

		if (rc < 0)
			lose("read", off);
		if (rc == 0)
			break;
		got += (size_t)rc;
	}
	errno = 0;
	if (got != want)
		lose("read has another length", off + got);
	compare(x.mem, off, got, "read");
}

static void check_all(void)
{
	check_size();
	read_some(0, x.max);
}

/* What lies between the end and off is zero from now on. */
static void grow_to(size_t end)
{
	if (end <= x.size)
		return;
	memset(x.model + x.size, 0, end - x.size);
	x.size = end;
}

static void random_bytes(uint8_t *p, size_t n)
{
	uint8_t is = (uint8_t)rnd();

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(is + i * 7);
}

static void write_all(const uint8_t *p, size_t n, size_t off)
{
	while (n > 0) {
		ssize_t rc = pwrite(x.fd, p, n, (off_t)off);

		if (rc <= 0)
			lose("write", off);
		p += rc;
		off += (size_t)rc;
		n -= (size_t)rc;
	}
}

static void op_write(void)
{
	size_t off = below(x.max), n = 1 + below(x.max - off);

	n = n > x.max - off ? x.max - off : n;
	note("write %zu at %zu", n, off);
	grow_to(off);
	random_bytes(x.mem, n);
	write_all(x.mem, n, off);
	grow_to(off + n);
	memcpy(x.model + off, x.mem, n);
}

static void op_read(void)
{
	size_t off = below(x.max), n = 1 + below(x.max);

	n = n > x.max - off ? x.max - off : n;
	note("read %zu at %zu", n, off);
	read_some(off, n);
}

static void op_truncate(void)
{
	size_t n = below(x.max);

	note("truncate to %zu", n);
	if (ftruncate(x.fd, (off_t)n) < 0)
		lose("truncate", n);
	grow_to(n);
	x.size = n;
	check_size();
}

/* A map of n bytes at off, which are *ret_in behind its beginning; it has *ret_n bytes. */
static uint8_t *map(size_t off, size_t n, int prot, int flags, size_t *ret_in, size_t *ret_n)
{
	size_t page = off & ~(size_t)4095;
	uint8_t *p = mmap(NULL, n + off - page, prot, flags, x.fd, (off_t)page);

	if (p == MAP_FAILED)
		lose("mmap", off);
	*ret_in = off - page;
	*ret_n = n + off - page;
	return p;
}

static void op_map(bool shared, bool writes)
{
	size_t off = below(x.size), n, in, all;
	uint8_t *p;

	if (x.size == 0)
		return;
	n = 1 + below(x.size - off);
	n = n > x.size - off ? x.size - off : n;
	note("map %s %s %zu at %zu", shared ? "shared" : "private", writes ? "write" : "read",
	     n, off);
	p = map(off, n, writes ? PROT_READ | PROT_WRITE : PROT_READ,
		shared ? MAP_SHARED : MAP_PRIVATE, &in, &all);
	compare(p + in, off, n, "map");
	if (writes) {
		random_bytes(p + in, n);
		if (shared)
			memcpy(x.model + off, p + in, n);
		if (shared && !x.first && rnd() % 4 == 0 && msync(p, all, MS_SYNC) < 0)
			lose("msync", off);
	}
	if (munmap(p, all) < 0)
		lose("munmap", off);
	read_some(off, n);
}

static void op_reopen(bool sync)
{
	note(sync ? "sync" : "reopen");
	if (sync && fsync(x.fd) < 0)
		lose("fsync", 0);
	if (sync)
		return;
	if (close(x.fd) < 0)
		lose("close", 0);
	x.fd = open(x.path, O_RDWR);
	if (x.fd < 0)
		lose("open", 0);
	check_size();
}

static void put_back(void)
{
	note("put back");
	check_all();
	write_all(x.first, x.first_size, 0);
	if (ftruncate(x.fd, (off_t)x.first_size) < 0)
		lose("truncate", x.first_size);
	memcpy(x.model, x.first, x.first_size);
	x.size = x.first_size;
	check_all();
	op_reopen(rnd() % 2 == 0);
	check_all();
}

static void one(void)
{
	uint32_t k = rnd() % 100;

	if (k < 35)
		op_write();
	else if (k < 65)
		op_read();
	else if (k < 72)
		op_truncate();
	else if (k < 80)
		op_map(true, false);
	else if (k < 88)
		op_map(true, true);
	else if (k < 92)
		op_map(false, false);
	else if (k < 96)
		op_map(false, true);
	else if (!x.first)
		op_reopen(k < 98);
}

static void load_first(void)
{
	struct stat st;

	if (fstat(x.fd, &st) < 0 || st.st_size <= 0) {
		printf("%s: nothing is in it\n", x.path);
		exit(2);
	}
	x.first_size = (size_t)st.st_size;
	x.max = x.first_size + x.max;
	x.first = malloc(x.first_size);
	if (!x.first || pread(x.fd, x.first, x.first_size, 0) != st.st_size) {
		printf("%s: cannot be read\n", x.path);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	uint64_t n = 10000, cycle = 0;
	int opt;

	x.rnd = 1;
	x.max = 262144;
	while ((opt = getopt(argc, argv, "n:s:m:c:")) != -1) {
		uint64_t v = optarg ? strtoull(optarg, NULL, 10) : 0;

		if (opt == 'n')
			n = v;
		else if (opt == 's')
			x.rnd = v * 2 + 1;
		else if (opt == 'm' && v >= 8192 && v <= 1 << 30)
			x.max = v;
		else if (opt == 'c')
			cycle = v;
		else
			return 2;
	}
	if (optind != argc - 1)
		return 2;
	x.path = argv[optind];
	x.fd = open(x.path, cycle ? O_RDWR : O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (x.fd < 0) {
		perror(x.path);
		return 2;
	}
	if (cycle)
		load_first();
	x.model = calloc(x.max, 1);
	x.mem = calloc(x.max, 1);
	if (!x.model || !x.mem)
		return 2;
	if (cycle) {
		memcpy(x.model, x.first, x.first_size);
		x.size = x.first_size;
	}
	for (x.n = 0; x.n < n; x.n++) {
		one();
		if (x.n % CHECK_EACH == 0)
			check_all();
		if (cycle && (x.n % cycle == cycle - 1 || x.n == n - 1))
			put_back();
	}
	check_all();
	if (close(x.fd) < 0)
		lose("close", 0);
	printf("%" PRIu64 " operations, %zu bytes\n", n, x.size);
	free(x.model);
	free(x.mem);
	free(x.first);
	return 0;
}
