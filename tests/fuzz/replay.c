/* SPDX-License-Identifier: BSD-3-Clause */
/* replay.c - runs a fuzz target over inputs, for compilers without libFuzzer and for regression:
 *
 *   replay [-n N] [-s SEED] [-t SECONDS] [-l SECONDS] FILE|FOLDER ...
 *
 * Each input as it is, then N damaged copies of each, always the same ones for a SEED; -t: for so
 * long instead. An input that ends badly, or takes longer than -l seconds (20), is written to
 * crash-<number> in the working directory, to be run again. What is lost of memory is said at the
 * end. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define INPUT_MAX ((size_t)1 << 20)
#define INPUTS_MAX 4096
#define SECONDS_EACH 20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
						     unsigned seed);
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

struct input {
	uint8_t *data; /* owned */
	size_t n;
};

static struct input inputs[INPUTS_MAX], now;
static size_t n_inputs;
static uint64_t state, count;
static unsigned seconds_each = SECONDS_EACH;

/* ---- what went wrong ---- */

/* keep - only what a signal handler may call. */
static void keep(void)
{
	static const char head[] = "crash-";
	char name[40];
	size_t at = sizeof(head) - 1;
	uint64_t v = count;
	int fd;

	if (!now.data) /* at the end: a leak is of all of them */
		return;
	memcpy(name, head, sizeof(head));
	for (int i = 0; i < 10; i++, v /= 10)
		name[at + 9 - (size_t)i] = (char)('0' + v % 10);
	name[at + 10] = '\0';
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, now.data, now.n) != (ssize_t)now.n ||
	    write(STDERR_FILENO, name, strlen(name)) < 0 ||
	    write(STDERR_FILENO, " written\n", 9) < 0)
		_exit(3);
	(void)close(fd); /* about to die */
}

static void on_signal(int sig)
{
	keep();
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

static void run(const uint8_t *data, size_t n)
{
	/* exactly as long as it is, so that a sanitizer sees every byte too far */
	uint8_t *copy = malloc(n ? n : 1);

	if (!copy)
		abort();
	memcpy(copy, data, n);
	now = (struct input){copy, n};
	count++;
	(void)alarm(seconds_each);
	(void)LLVMFuzzerTestOneInput(copy, n);
	(void)alarm(0);
	now.data = NULL;
	free(copy);
}

/* ---- damage ---- */

static uint64_t below(uint64_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return n ? (state >> 11) % n : 0;
}

static void put_number(uint8_t *p, size_t room)
{
	static const uint64_t edges[] = {0,          1,          0x7f,       0x80,
					 0xff,       0xffff,     0x7fffffff, 0x80000000,
					 0xffffffff, UINT64_MAX, INT64_MAX,  0x100000000};
	uint64_t v = edges[below(sizeof(edges) / sizeof(edges[0]))];
	size_t width = (size_t)1 << below(4);
	bool big = below(2) == 1;

	if (below(3) == 0)
		v = below(3000);
	for (size_t i = 0; i < width && i < room; i++)
		p[i] = (uint8_t)(v >> 8 * (big ? width - 1 - i : i));
}

/* damage - one change of n bytes with room for INPUT_MAX; the new length is returned. */
static size_t damage(uint8_t *p, size_t n)
{
	size_t at = (size_t)below(below(2) ? n : n < 40 ? n : 40), more;
	const struct input *other;

	switch (n ? below(9) : 6) {
	case 0:
		p[at] ^= (uint8_t)(1u << below(8));
		return n;
	case 1:
		p[at] = (uint8_t)below(256);
		return n;
	case 2:
	case 3:
		put_number(p + at, n - at);
		return n;
	case 4:
		p[at] = (uint8_t)(p[at] + (below(2) ? 1 : 255));
		return n;
	case 5:
		return at; /* cut */
	case 6:
		more = (size_t)below(64);
		if (more > INPUT_MAX - n)
			return n;
		for (size_t i = 0; i < more; i++)
			p[n + i] = (uint8_t)(below(2) ? below(256) : 0);
		return n + more;
	case 7: /* a piece of itself, elsewhere */
		more = (size_t)below(n - at + 1);
		memmove(p + below(n - more + 1), p + at, more);
		return n;
	default: /* a piece of another */
		other = &inputs[below(n_inputs)];
		more = (size_t)below(other->n + 1);
		if (more > n - at)
			more = n - at;
		memcpy(p + at, other->data, more);
		return n;
	}
}

static void run_damaged(const struct input *x, uint64_t seed)
{
	static uint8_t room[INPUT_MAX];
	size_t n = x->n;
	uint64_t times;

	state = seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;
	times = 1 + below(below(3) ? 3 : 12);
	memcpy(room, x->data, n);
	while (times-- > 0)
		n = LLVMFuzzerCustomMutator && below(4)
			    ? LLVMFuzzerCustomMutator(room, n, INPUT_MAX,
						      (unsigned)below(UINT32_MAX))
			    : damage(room, n);
	run(room, n);
}

/* ---- inputs ---- */

static int add_file(const char *path)
{
	FILE *f = n_inputs < INPUTS_MAX ? fopen(path, "rb") : NULL;
	struct input *x;

	if (!f) {
		perror(path);
		return -1;
	}
	x = &inputs[n_inputs];
	x->data = malloc(INPUT_MAX);
	if (!x->data) {
		(void)fclose(f); /* nothing was written */
		return -1;
	}
	x->n = fread(x->data, 1, INPUT_MAX, f);
	n_inputs++;
	(void)fclose(f); /* nothing was written */
	return 0;
}

static int visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* add - a file, or the files of a folder in the order of their names. */
static int add(const char *path)
{
	struct dirent **names;
	int failed = 0, n = scandir(path, &names, visible, alphasort);

	if (n < 0)
		return add_file(path);
	for (int i = 0; i < n; i++) {
		char full[4096];

		if (snprintf(full, sizeof(full), "%s/%s", path, names[i]->d_name) <
		    (int)sizeof(full))
			failed |= add_file(full);
		free(names[i]);
	}
	free(names);
	return failed;
}

static uint64_t number(const char *s)
{
	uint64_t v = 0;

	for (; s && *s >= '0' && *s <= '9'; s++)
		v = v * 10 + (uint64_t)(*s - '0');
	return v;
}

int main(int argc, char **argv)
{
	uint64_t copies = 0, seed = 1, seconds = 0;
	int opt, failed = 0;
	time_t end;

	while ((opt = getopt(argc, argv, "n:s:t:l:")) != -1) {
		if (opt == 'n')
			copies = number(optarg);
		else if (opt == 's')
			seed = number(optarg);
		else if (opt == 't')
			seconds = number(optarg);
		else if (opt == 'l')
			seconds_each = (unsigned)number(optarg);
		else
			return 2;
	}
	for (int i = optind; i < argc; i++)
		failed |= add(argv[i]);
	if (signal(SIGABRT, on_signal) == SIG_ERR || signal(SIGALRM, on_signal) == SIG_ERR)
		return 2;
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(keep);

	for (size_t i = 0; i < n_inputs; i++)
		run(inputs[i].data, inputs[i].n);
	end = time(NULL) + (time_t)seconds;
	for (uint64_t k = 0; n_inputs && (seconds ? time(NULL) < end : k < copies); k++)
		for (size_t i = 0; i < n_inputs; i++)
			run_damaged(&inputs[i], (seed << 40) + (k << 12) + i);
	(void)printf("%zu inputs, %llu runs\n", n_inputs, (unsigned long long)count);
	for (size_t i = 0; i < n_inputs; i++)
		free(inputs[i].data);
	return failed ? 1 : 0;
}
