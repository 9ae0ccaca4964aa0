/* SPDX-License-Identifier: BSD-3-Clause */
/* mutated.c - datasets of one format, damaged one after the other in this process, opened and read
 * through both kinds of view: thousands a minute, because no program is started for each.
 *
 *   mutated [-w] [-n N] [-s SEED] [-f FIRST] [-k KEEP] FORMAT FOLDER
 *
 * FOLDER has what is damaged: files (hdf5, netcdf4, cdf, hdf4), or trees as damage.h packs them
 * (zarr2, nczarr, zarr3; zip: archives are made of them; refs: what is opened is the first
 * component of the first key). The first of each are whole. Round i of a SEED is always the same.
 *
 * The rounds run in a child. When it dies, or takes a minute of processor time or five minutes for
 * one round, the input is kept in KEEP as FORMAT-SEED-ROUND, and another child goes on behind it;
 * -w runs such inputs as they are, in all forms of views. Reports of sanitizers in the folder that
 * FUZZ_LOGS names (log_path=FOLDER/log) get the round's number in front. Prints one line; exit
 * status 1 when a child died. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "base/process/child.h"
#include "base/observe/log.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/look.h"

#define SEEDS_MAX 1000
#define FILE_MAX ((size_t)400000)
#define CPU_SECONDS 60
#define REAL_SECONDS 300
#define DEATHS_MAX 50

enum what { PLAIN_HDF5, PLAIN_CDF, PLAIN_HDF4, TREE, ZIP };

static const struct format {
	const char *name;
	enum what what;
	bool library;
} formats[] = {
	{"hdf5", PLAIN_HDF5, true}, {"netcdf4", PLAIN_HDF5, true}, {"cdf", PLAIN_CDF, false},
	{"hdf4", PLAIN_HDF4, true}, {"zarr2", TREE, false},        {"nczarr", TREE, false},
	{"zarr3", TREE, false},     {"refs", TREE, false},         {"zip", ZIP, false},
};

struct seed {
	uint8_t *p;
	size_t n;
	struct sums sums;
	bool known; /* sums */
};

/* shared - what the child says. */
struct shared {
	uint64_t round; /* that it is in */
	bool began;
	uint64_t opened; /* rounds in which a view was there */
	uint64_t rounds, whole_refused;
	struct look sum;
};

static const struct format *format;
static struct seed seeds[SEEDS_MAX];
static size_t n_seeds;
static uint64_t dice_seed = 1;
static bool whole; /* nothing is damaged */
static struct shared *shared;
static char room[] = "/dev/shm/nczarrfs-mutated-XXXXXX";

/* ---- seeds ---- */

static int visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static void load(const char *folder)
{
	struct dirent **names;
	int n = scandir(folder, &names, visible, alphasort);

	for (int i = 0; i < n; i++) {
		char path[4096];
		struct stat st;
		FILE *f;

		if (snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name) <
			    (int)sizeof(path) &&
		    stat(path, &st) == 0 && (size_t)st.st_size <= FILE_MAX &&
		    n_seeds < SEEDS_MAX && (f = fopen(path, "rb"))) {
			struct seed *s = &seeds[n_seeds++];

			s->p = malloc((size_t)st.st_size + 1);
			look_require(s->p != NULL);
			s->n = fread(s->p, 1, (size_t)st.st_size, f);
			(void)fclose(f); /* it was only read from */
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

/* ---- one round ---- */

static void damage_file(struct dice *d, struct seed *s, uint64_t times, struct hurt *h)
{
	if (format->what == PLAIN_HDF5 && !s->known) {
		sums_find(s->p, s->n, &s->sums);
		s->known = true;
	}
	while (times-- > 0) {
		if (format->what == PLAIN_HDF5)
			damage_hdf5(d, h, &s->sums);
		else if (format->what == PLAIN_CDF)
			damage_cdf(d, h);
		else
			damage_hdf4(d, h);
	}
}

/* made - the input of a round: a file, or a packed tree. New bytes in *ret. */
static void made(uint64_t round, struct hurt *ret)
{
	struct seed *s = &seeds[round % n_seeds];
	struct dice d = dice_of(dice_seed, round);
	uint64_t times =
		whole || round < n_seeds ? 0 : 1 + dice_below(&d, dice_below(&d, 3) ? 2 : 8);
	bool archive_only = format->what == ZIP && dice_below(&d, 2);
	struct tree t;

	ret->cap = s->n + ((size_t)1 << 20);
	ret->n = s->n;
	ret->p = malloc(ret->cap);
	look_require(ret->p != NULL);
	memcpy(ret->p, s->p, s->n);
	if (whole)
		return;
	if (format->what < TREE) {
		damage_file(&d, s, times, ret);
		return;
	}
	tree_unpack(s->p, s->n, &t);
	for (uint64_t i = 0; i < times && !archive_only; i++)
		damage_tree(&d, &t);
	if (format->what == TREE) {
		ret->n = tree_pack(&t, ret->p, ret->cap);
	} else {
		free(ret->p);
		tree_zip(&t, dice_below(&d, 3) == 0, ret);
		for (uint64_t i = 0; i < times && archive_only; i++)
			damage_zip(&d, ret);
	}
	tree_release(&t);
}

static void put_file(const char *path, const void *p, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

	if (fd >= 0) /* not so where an object is in the place of a folder */
		look_require(write(fd, p, n) == (ssize_t)n && futimens(fd, old) == 0 &&
			     close(fd) == 0);
}

static void put_tree(const char *dir, const struct hurt *h)
{
	struct tree t;
	char path[400];

	look_require(mkdir(dir, 0700) == 0);
	tree_unpack(h->p, h->n, &t);
	for (size_t i = 0; i < t.n; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, t.o[i].key);
		for (char *s = path + strlen(dir) + 1; (s = strchr(s, '/')); s++) {
			*s = '\0';
			(void)mkdir(path, 0700); /* may be there */
			*s = '/';
		}
		put_file(path, t.o[i].body.p, t.o[i].body.n);
	}
	tree_release(&t);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	return where->level > 0 ? remove(path) : 0;
}

static void empty_room(void)
{
	look_require(nftw(room, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

/* put - the input as it lies on a disk; the path to open. */
static void put(const struct hurt *h, char *path, size_t cap)
{
	if (format->what != TREE) {
		(void)snprintf(path, cap, "%s/x%s", room, format->what == ZIP ? ".zip" : "");
		put_file(path, h->p, h->n);
	} else if (strcmp(format->name, "refs") != 0) {
		(void)snprintf(path, cap, "%s/x.zarr", room);
		put_tree(path, h);
	} else {
		size_t n = h->n > 6 ? (size_t)h->p[0] : 0, first;

		(void)snprintf(path, cap, "%s/x", room);
		put_tree(path, h);
		for (first = 0; first < n && first + 6 < h->n && h->p[6 + first] != '/';)
			first++;
		(void)snprintf(path, cap, "%s/x/%.*s", room, (int)first,
			       (const char *)h->p + 6);
	}
}

static void run(uint64_t round)
{
	uint64_t views = shared->sum.mounted;
	struct hurt h;
	char path[400];

	made(round, &h);
	put(&h, path, sizeof(path));
	free(h.p);
	look_path(path, (unsigned)(round / n_seeds), &shared->sum);
	empty_room();
	shared->opened += shared->sum.mounted > views;
	if (round < n_seeds && shared->sum.mounted == views) {
		shared->whole_refused++;
		(void)fprintf(stderr, "%s: seed %zu: %s\n", format->name, (size_t)round,
			      shared->sum.why);
	}
	shared->rounds++;
}

/* name_logs - reports that this round left. */
static void name_logs(const char *logs, uint64_t round)
{
	DIR *d = logs ? opendir(logs) : NULL;
	struct dirent *x;

	while (d && (x = readdir(d))) {
		char old[600], new[700];

		if (strncmp(x->d_name, "log.", 4) != 0)
			continue;
		(void)snprintf(old, sizeof(old), "%s/%s", logs, x->d_name);
		(void)snprintf(new, sizeof(new), "%s/%s-%llu-%llu-%s", logs, format->name,
			       (unsigned long long)dice_seed, (unsigned long long)round,
			       x->d_name + 4);
		(void)rename(old, new); /* only names are lost */
	}
	if (d)
		(void)closedir(d);
}

/* ---- the child ---- */

static void rounds(uint64_t from, uint64_t to)
{
	const struct itimerval cpu = {.it_value.tv_sec = CPU_SECONDS}, none = {0};
	struct err e = ERR_INIT;

	log_init(LOG_ERROR, false);
	look_require(hdf5_prepare(&e) == 0); /* virtual files are made by libhdf5, too */
	for (uint64_t i = from; i < to; i++) {
		shared->round = i;
		shared->began = true;
		look_require(setitimer(ITIMER_PROF, &cpu, NULL) == 0);
		(void)alarm(REAL_SECONDS);
		run(i);
		name_logs(getenv("FUZZ_LOGS"), i);
	}
	(void)alarm(0);
	look_require(setitimer(ITIMER_PROF, &none, NULL) == 0);
	for (size_t i = 0; i < n_seeds; i++)
		free(seeds[i].p);
	exit(0); /* with the sanitizer's look for leaks */
}

static void keep(const char *folder, uint64_t round, int status)
{
	char path[4096];
	struct hurt h;

	(void)snprintf(path, sizeof(path), "%s/%s-%llu-%llu", folder, format->name,
		       (unsigned long long)dice_seed, (unsigned long long)round);
	(void)printf("%s: round %llu of seed %llu %s %d: %s\n", format->name,
		     (unsigned long long)round, (unsigned long long)dice_seed,
		     WIFSIGNALED(status) ? "died of signal" : "ended with",
		     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), path);
	(void)fflush(stdout);
	made(round, &h);
	put_file(path, h.p, h.n);
	free(h.p);
}

/* all - rounds [from, to). Returns how many children died. */
static unsigned all(uint64_t from, uint64_t to, const char *folder)
{
	unsigned deaths = 0;
	int status;

	while (from < to && deaths < DEATHS_MAX) {
		pid_t pid;

		shared->began = false;
		pid = fork();
		look_require(pid >= 0);
		if (pid == 0)
			rounds(from, to);
		look_require(waitpid(pid, &status, 0) == pid);
		empty_room();
		if (status == 0)
			break;
		deaths++;
		name_logs(getenv("FUZZ_LOGS"), shared->round);
		keep(folder, shared->round, status);
		from = shared->began ? shared->round + 1 : to;
	}
	return deaths;
}

static void say(unsigned deaths, time_t start)
{
	const struct look *l = &shared->sum;
	struct rusage mine, theirs;
	double cpu;

	look_require(getrusage(RUSAGE_SELF, &mine) == 0 &&
		     getrusage(RUSAGE_CHILDREN, &theirs) == 0);
	cpu = (double)(theirs.ru_utime.tv_sec + theirs.ru_stime.tv_sec + mine.ru_utime.tv_sec);
	(void)printf("%-8s %llu of %zu: %llu mounted, %llu refused; %llu names, %.1f MB read, "
		     "%llu files that are errors; %u findings; %.0f s, %.0f s of processor\n",
		     format->name, (unsigned long long)shared->rounds, n_seeds,
		     (unsigned long long)shared->opened,
		     (unsigned long long)(shared->rounds - shared->opened),
		     (unsigned long long)l->names, (double)l->bytes / 1e6,
		     (unsigned long long)l->failed, deaths, difftime(time(NULL), start), cpu);
}

int main(int argc, char **argv)
{
	uint64_t n = 100, first = 0;
	const char *folder = ".";
	unsigned deaths;
	time_t start;
	int opt;

	while ((opt = getopt(argc, argv, "wn:s:f:k:")) != -1) {
		if (opt == 'k')
			folder = optarg;
		else if (opt == 'w')
			whole = true;
		else if (opt == 'n')
			n = strtoull(optarg, NULL, 10);
		else if (opt == 's')
			dice_seed = strtoull(optarg, NULL, 10);
		else if (opt == 'f')
			first = strtoull(optarg, NULL, 10);
		else
			return 2;
	}
	for (size_t i = 0; optind + 2 == argc && i < ARRAY_LEN(formats); i++)
		if (strcmp(argv[optind], formats[i].name) == 0)
			format = &formats[i];
	if (!format)
		return 2;
	load(argv[optind + 1]);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	look_require(n_seeds > 0 && shared != MAP_FAILED && mkdtemp(room) != NULL);
	start = time(NULL);
	deaths = all(first, first + n, folder);
	look_require(rmdir(room) == 0);
	say(deaths, start);
	return deaths > 0 || shared->whole_refused > n_seeds / 4;
}
