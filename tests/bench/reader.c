/* SPDX-License-Identifier: BSD-3-Clause */
/* reader.c - reads chunk files as any C program would, and tells how long it took.
 *
 * open, read to the end, close for each of N files of one directory, shared out over threads in
 * one atomic counter. Prints one line of JSON. Whether the page cache is warm is the caller's
 * business (a fresh mount is cold, a second pass is warm) except for --drop, which empties it
 * first (root only); what was done is printed. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 64

struct job {
	int dir;
	char **names;          /* n names, or NULL: the numbers from 0 after prefix */
	uint64_t n;
	const char *prefix;
	size_t cap;            /* bytes of each thread's buffer, one more than the largest file */
	bool by_size;          /* stop at the buffer's end, without asking for the end of file */
	atomic_uint_fast64_t next;
	atomic_uint_fast64_t bytes;
	atomic_uint_fast64_t sum;
	atomic_int error;      /* the first errno */
};

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int read_one(struct job *j, const char *name, uint8_t *buf, uint64_t *bytes)
{
	int fd = openat(j->dir, name, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = 1;
	int rc;

	if (fd < 0)
		return -errno;
	while (n > 0 && used < j->cap) {
		n = read(fd, buf + used, j->cap - used);
		if (n > 0)
			used += (size_t)n;
		if (j->by_size && used + 1 >= j->cap)
			break;
	}
	rc = n < 0 ? -errno : 0;
	(void)close(fd);
	if (!rc && used >= j->cap && !j->by_size)
		return -EFBIG;
	*bytes += used;
	return rc;
}

static void *worker(void *arg)
{
	struct job *j = arg;
	uint8_t *buf = malloc(j->cap);
	uint64_t bytes = 0;
	uint64_t sum = 0;
	char name[320];
	int rc = buf ? 0 : -ENOMEM;

	while (!rc) {
		uint64_t i = atomic_fetch_add(&j->next, 1);

		if (i >= j->n)
			break;
		if (!j->names)
			snprintf(name, sizeof(name), "%s%" PRIu64, j->prefix, i);
		rc = read_one(j, j->names ? j->names[i] : name, buf, &bytes);
		if (!rc)
			sum += buf[0] * (i + 1);
	}
	if (rc)
		atomic_store(&j->error, -rc);
	atomic_fetch_add(&j->bytes, bytes);
	atomic_fetch_add(&j->sum, sum);
	free(buf);
	return NULL;
}

static int read_names(struct job *j, const char *path)
{
	FILE *f = fopen(path, "re");
	uint64_t cap = 0;
	char line[300];

	if (!f)
		return -1;
	j->n = 0;
	while (fscanf(f, "%299s", line) == 1) {
		if (j->n == cap) {
			char **p;

			cap = cap ? cap * 2 : 1024;
			p = realloc(j->names, cap * sizeof(*p));
			if (!p)
				break;
			j->names = p;
		}
		j->names[j->n] = strdup(line);
		if (!j->names[j->n])
			break;
		j->n++;
	}
	(void)fclose(f);
	return j->n ? 0 : -1;
}

static const char *drop_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
	bool ok;

	sync();
	ok = fd >= 0 && write(fd, "3", 1) == 1;
	if (fd >= 0)
		(void)close(fd);
	return ok ? "all caches dropped" : "as found (may not drop caches)";
}

/* A virtual machine may give its free memory back to the host, and then every page that is used
 * anew costs microseconds. Taking and freeing some just before a measurement makes runs equal. */
static void touch(size_t mb)
{
	size_t n = mb << 20;
	uint8_t *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	(void)madvise(p, n, MADV_HUGEPAGE);
	for (size_t i = 0; i < n; i += 4096)
		*(volatile uint8_t *)(p + i) = 1;
	(void)munmap(p, n);
}

static int run(struct job *j, unsigned threads, const char *state)
{
	pthread_t t[MAX_THREADS];
	unsigned started = 0;
	double start = now();
	double secs;

	while (started < threads && !pthread_create(&t[started], NULL, worker, j))
		started++;
	for (unsigned i = 0; i < started; i++)
		(void)pthread_join(t[i], NULL);
	secs = now() - start;
	if (j->error || started < threads) {
		fprintf(stderr, "reader: %s\n", j->error ? strerror(j->error) : "threads");
		return 1;
	}
	printf("{\"seconds\": %.6f, \"files\": %" PRIu64 ", \"bytes\": %" PRIuFAST64
	       ", \"mb_s\": %.1f, \"us_file\": %.3f, \"sum\": %" PRIuFAST64
	       ", \"threads\": %u, \"cache\": \"%s\"}\n",
	       secs, j->n, j->bytes, (double)j->bytes / secs / 1e6, secs * 1e6 / (double)j->n,
	       j->sum, threads, state);
	return 0;
}

static const char usage[] =
	"usage: reader [-n COUNT | -l NAMES] [-p PREFIX] [-b MAX_BYTES] [-t THREADS]\n"
	"              [--repeat N] [--by-size] [--drop] [--touch MB] DIRECTORY\n"
	"  reads PREFIX0, PREFIX1 ... or the names in the file NAMES; one line of JSON a pass\n";

int main(int argc, char **argv)
{
	static const struct option longopts[] = {
		{"drop", no_argument, NULL, 'D'},
		{"by-size", no_argument, NULL, 'S'},
		{"repeat", required_argument, NULL, 'r'},
		{"touch", required_argument, NULL, 'T'},
		{NULL, 0, NULL, 0},
	};
	struct job j = {.prefix = "", .cap = (1 << 20) + 1};
	const char *state = "as found";
	unsigned threads = 1;
	unsigned repeat = 1;
	int rc = 0;
	int c;

	while ((c = getopt_long(argc, argv, "n:l:p:b:t:", longopts, NULL)) != -1) {
		if (c == 'n')
			j.n = strtoull(optarg, NULL, 10);
		else if (c == 'l' && read_names(&j, optarg))
			fprintf(stderr, "reader: no names in '%s'\n", optarg);
		else if (c == 'p')
			j.prefix = optarg;
		else if (c == 'b')
			j.cap = strtoull(optarg, NULL, 10) + 1;
		else if (c == 't')
			threads = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'r')
			repeat = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'S')
			j.by_size = true;
		else if (c == 'T')
			touch(strtoul(optarg, NULL, 10));
		else if (c == 'D')
			state = drop_caches();
	}
	j.dir = argc - optind == 1 ? open(argv[optind], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (j.dir < 0 || !j.n || !threads || threads > MAX_THREADS || j.cap < 2) {
		fputs(usage, stderr);
		return 2;
	}
	for (unsigned i = 0; i < repeat && !rc; i++) {
		j.next = j.bytes = j.sum = 0;
		rc = run(&j, threads, i ? "warm: read once before" : state);
	}
	for (uint64_t i = 0; j.names && i < j.n; i++)
		free(j.names[i]);
	free(j.names);
	(void)close(j.dir);
	return rc;
}
