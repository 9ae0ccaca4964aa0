/* SPDX-License-Identifier: BSD-3-Clause */
/* loops.c - every scene of scene_table.c with a fault at its 1st, 2nd, 3rd ... call, for every kind
 * of fault, in one process after the other.
 *
 *	loops [-k SCENE]... [-w WAY]... [-n PER] [-s SEED] [-a AT] [-v] INPUTS WORK [URL [S3]]
 *
 * -n  at most so many faults for each scene and way: calls whose callers are others come first;
 *     0: all calls. -a: only this call. -v: what the program logs, and each round
 *
 * A round: the scene with the fault; then, without one, once more with what is open, or from the
 * beginning where nothing could be opened. Every answer is that of a round without faults, or,
 * while there was a fault, an error that blames no file. Then nothing is left: memory,
 * descriptors, threads, processes.
 *
 * Lines for tests/faults/run.py: "WRONG scene way n: text", " at ADDRESS..." the call that failed,
 * "DONE scene way calls faults right errors wrong". Ends with 1 when something was wrong. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/observe/log.h"
#include "codecs/plugin/plugin.h"
#include "tests/faults/inject.h"
#include "tests/faults/loops_left.h"
#include "tests/faults/scene.h"

#define HANG_S 40 /* without progress */
#define KNOWN ((size_t)1 << 17)
#define PER_MAX 200000u
#define WRONG_SHOWN 6 /* of one scene and way */

struct delivery {
	const char *name;
	unsigned mask;
	int code;
	uint32_t more;
	enum inject_how how;
	enum inject_who who;
	bool right; /* the answer has to be right */
};

#define ALL UINT32_MAX
static const struct delivery ways[] = {
	{"alloc", ON_ALLOC, ENOMEM, 0, BY_FAILING, IN_SERVER, false},
	{"alloc-from", ON_ALLOC, ENOMEM, ALL, BY_FAILING, IN_SERVER, false},
	{"alloc-child", ON_ALLOC, ENOMEM, 0, BY_FAILING, IN_CHILDREN, false},
	{"alloc-child-from", ON_ALLOC, ENOMEM, ALL, BY_FAILING, IN_CHILDREN, false},
	{"open-emfile", ON_OPEN, EMFILE, 0, BY_FAILING, IN_ANY, false},
	{"open-emfile-from", ON_OPEN, EMFILE, ALL, BY_FAILING, IN_ANY, false},
	{"open-eio", ON_OPEN, EIO, 0, BY_FAILING, IN_ANY, false},
	{"read-eio", ON_READ, EIO, 0, BY_FAILING, IN_ANY, false},
	{"read-enomem-from", ON_READ, ENOMEM, ALL, BY_FAILING, IN_SERVER, false},
	{"read-eintr", ON_READ, EINTR, 0, BY_FAILING, IN_ANY, true},
	{"read-short", ON_READ, 0, 0, BY_HALF, IN_ANY, true},
	{"read-short-from", ON_READ, 0, ALL, BY_HALF, IN_ANY, true},
	{"stat-eio", ON_STAT, EIO, 0, BY_FAILING, IN_ANY, false},
	{"stat-enomem-from", ON_STAT, ENOMEM, ALL, BY_FAILING, IN_ANY, false},
	{"dir-enomem", ON_DIR, ENOMEM, 0, BY_FAILING, IN_ANY, false},
	{"map-enomem", ON_MAP, ENOMEM, 0, BY_FAILING, IN_ANY, false},
	{"make-emfile", ON_MAKE, EMFILE, 0, BY_FAILING, IN_ANY, false},
	{"make-enfile-from", ON_MAKE, ENFILE, ALL, BY_FAILING, IN_ANY, false},
	{"fork-eagain", ON_FORK, EAGAIN, 0, BY_FAILING, IN_ANY, false},
	{"fork-eagain-from", ON_FORK, EAGAIN, ALL, BY_FAILING, IN_ANY, false},
	{"wait-eintr", ON_WAIT, EINTR, 0, BY_FAILING, IN_SERVER, true},
	{"wait-enomem", ON_WAIT, ENOMEM, 0, BY_FAILING, IN_SERVER, false},
	{"wire-eintr", ON_WIRE, EINTR, 0, BY_FAILING, IN_SERVER, true},
	{"wire-short", ON_WIRE, 0, 0, BY_HALF, IN_SERVER, true},
	{"wire-eio", ON_WIRE, ECONNRESET, 0, BY_FAILING, IN_SERVER, false},
	{"write-enospc", ON_WRITE, ENOSPC, 0, BY_FAILING, IN_ANY, false},
	{"write-eio-from", ON_WRITE, EIO, ALL, BY_FAILING, IN_ANY, false},
	{"write-eintr", ON_WRITE & ~ON_OPEN, EINTR, 0, BY_FAILING, IN_ANY, false},
	{"write-short", ON_WRITE, 0, 0, BY_HALF, IN_ANY, false},
	{"sync-eio", ON_SYNC, EIO, 0, BY_FAILING, IN_ANY, false},
	{"names-eio", ON_NAMES, EIO, 0, BY_FAILING, IN_ANY, false},
	{"names-enospc-from", ON_NAMES, ENOSPC, ALL, BY_FAILING, IN_ANY, false},
	{"curl", ON_CURL, 0, 0, BY_FAILING, IN_SERVER, false},
	{"curl-from", ON_CURL, 0, ALL, BY_FAILING, IN_SERVER, false},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

/* tally - of one scene and way. */
struct tally {
	uint32_t calls, faults, right, errors, wrong;
};

/* shared - between who watches and who works. */
static struct shared {
	_Atomic uint64_t progress;
	_Atomic uint32_t way, pos, in_round; /* where it is, to go on behind it */
	uint32_t n_list;
	struct tally tally[WAYS];
	uint32_t list[PER_MAX];
} * shared;

enum pass { BASE, FAULT, CLEAN };

struct known {
	uint64_t key, hash;
	int rc;
};

static struct {
	enum pass pass;
	bool fault; /* answers may be errors */
	bool quiet; /* answers that differ are only counted */
	uint32_t differ;
	uint32_t errors, wrong, answers, base_answers;
	struct known known[KNOWN];
	const struct scene *scene;
	const struct delivery *way;
	uint32_t at;
	uint32_t per, seed, only_at;
	bool verbose;
} x;

uint64_t mix(uint64_t h, const void *p, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 1099511628211u;
	return h;
}

/* ---- answers ---- */

static void say_where(void)
{
	printf(" at");
	for (uint32_t i = 0; i < inject->depth; i++) {
		Dl_info info;

		if (inject->stack[i] < 0x10000000 || !dladdr((void *)inject->stack[i], &info))
			printf(" %" PRIxPTR, inject->stack[i]);
		else
			printf(" %s", strrchr(info.dli_fname, '/')
					      ? strrchr(info.dli_fname, '/') + 1
					      : info.dli_fname);
	}
	printf("\n");
	(void)fflush(stdout);
}

static NZ_PRINTF(1, 0) void say_wrong(const char *fmt, va_list ap)
{
	struct tally *t = x.way ? &shared->tally[x.way - ways] : NULL;

	x.wrong++;
	if (x.wrong > 3 || (t && t->wrong >= WRONG_SHOWN && !x.verbose))
		return;
	printf("WRONG %s %s %u: ", x.scene->name, x.way ? x.way->name : "none", x.at);
	(void)vprintf(fmt, ap);
	printf("\n");
	if (x.way)
		say_where();
}

void wrong(const char *fmt, ...)
{
	uint32_t armed = inject->armed;
	va_list ap;

	inject->armed = 0;
	va_start(ap, fmt);
	say_wrong(fmt, ap);
	va_end(ap);
	inject->armed = armed;
}

/* blameless - an error that says that something failed here, and nothing about a file. */
static bool blameless(int rc)
{
	static const int codes[] = {ENOMEM, EIO,    EMFILE, ENFILE,   EAGAIN,
				    EINTR,  ENOSPC, EBUSY,  ETIMEDOUT};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (rc == -codes[i])
			return true;
	return rc == -(int)inject->code;
}

static struct known *find(uint64_t key)
{
	size_t i = key % KNOWN;

	while (x.known[i].key && x.known[i].key != key)
		i = (i + 1) % KNOWN;
	return &x.known[i];
}

bool faults_now(void)
{
	return x.fault;
}

bool no_faults(void)
{
	inject->armed = 0;
	return inject->fired != 0;
}

void answer(int rc, uint64_t hash, const struct err *e, const char *fmt, ...)
{
	char question[1200];
	struct known *k;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(question, sizeof(question), fmt, ap);
	va_end(ap);
	k = find(mix(MIX_START, question, strlen(question)) | 1);
	hash = rc == 0 ? hash : 0;
	x.answers++;
	if (x.pass == BASE) {
		if (k->key)
			wrong("%s: asked twice", question);
		*k = (struct known){mix(MIX_START, question, strlen(question)) | 1, hash, rc};
		if (rc < 0 && rc != -ENOENT && rc != -ENODATA)
			wrong("%s: %s without a fault", question, e ? e->msg : strerror(-rc));
		return;
	}
	if (x.quiet) {
		x.differ += !k->key || k->rc != rc || k->hash != hash;
		return;
	}
	if (!k->key) {
		wrong("%s: %d, and is not there without a fault", question, rc);
		return;
	}
	if (k->rc == rc && k->hash == hash)
		return;
	if (x.fault && rc < 0 && rc != -ENOENT && blameless(rc)) {
		x.errors++;
		return;
	}
	wrong("%s: %s%s (%d)%s, expected %s", question,
	      x.pass == CLEAN ? "afterwards, without a fault: " : "",
	      rc < 0 ? strerror(-rc) : "another value", rc, rc < 0 && e ? e->msg : "",
	      k->rc < 0 ? strerror(-k->rc) : "a value");
}

bool answer_of(const char *question, int *ret_rc)
{
	const struct known *k = find(mix(MIX_START, question, strlen(question)) | 1);

	if (k->key)
		*ret_rc = k->rc;
	return k->key != 0;
}

/* ---- a round ---- */

static void arm(const struct delivery *w, uint32_t at, bool record)
{
	inject->armed = 0;
	inject->mask = w->mask;
	inject->at = at;
	inject->more = w->more;
	inject->code = (uint32_t)w->code;
	inject->how = w->how;
	inject->who = w->who;
	inject->self = (uint32_t)getpid();
	inject->count = inject->fired = 0;
	inject->depth = 0;
	inject->record = record;
	inject->armed = 1;
}

static bool begins(const struct scene *s)
{
	return !s->begin || s->begin(s) == 0;
}

static void once(const struct scene *s)
{
	x.answers = 0;
	if (begins(s)) {
		if (s->use)
			s->use(s);
		if (s->end)
			s->end(s);
	}
}

/* after - what has come of it, for those who write. */
static void after(const struct scene *s)
{
	inject->armed = 0;
	x.pass = x.pass == BASE ? BASE : CLEAN;
	x.fault = false;
	if (s->after)
		s->after(s);
}

static void prepare(const struct scene *s)
{
	inject->armed = 0;
	if (s->prepare)
		s->prepare(s);
}

static void clean_round(const struct scene *s, enum pass pass)
{
	prepare(s);
	x.pass = pass;
	x.fault = false;
	x.answers = 0;
	once(s);
	after(s);
	if (pass == BASE)
		x.base_answers = x.answers;
	else if (x.answers != x.base_answers)
		wrong("%u answers without a fault, not %u", x.answers, x.base_answers);
}

/* quiet - how many answers are not yet what they are without a fault: a virtual file that could not
 * be made is not tried again for a second, a dataset of a mirrored directory for five. */
static uint32_t quietly(const struct scene *s)
{
	x.quiet = true;
	x.differ = 0;
	s->use(s);
	x.quiet = false;
	return x.differ;
}

/* again - after a fault: with what is open, or from the beginning. */
static void again(const struct scene *s, bool open)
{
	inject->armed = 0;
	x.pass = CLEAN;
	x.fault = false;
	if (!open)
		once(s);
	else if (s->use && !s->writes) {
		for (int i = 0; i < 60 && quietly(s); i++) {
			const struct timespec pause = {.tv_nsec = 100000000};

			(void)nanosleep(&pause, NULL);
			shared->progress++;
		}
		s->use(s);
	}
}

/* fault_round - false: the fault was never reached. */
static bool fault_round(const struct scene *s, const struct delivery *w, uint32_t at)
{
	bool open;

	x.errors = x.wrong = 0;
	prepare(s);
	x.pass = FAULT;
	x.fault = true;
	arm(w, at, false);
	open = begins(s);
	if (!open)
		x.errors++;
	if (open && s->use)
		s->use(s);
	if (open && s->writes && s->end)
		s->end(s);
	if (w->who == IN_CHILDREN && open && !s->writes) {
		inject->armed = 0; /* a chunk that killed a worker is not tried again */
		if (s->end)
			s->end(s);
		open = false;
	}
	if (inject->fired)
		again(s, open);
	inject->armed = 0;
	if (open && !s->writes && s->end)
		s->end(s);
	after(s);
	if (w->right && x.errors && inject->fired)
		wrong("%u errors, and it had to be right", x.errors);
	return inject->fired != 0;
}

/* leak_round - whether a round leaves something behind; said with callers. */
static void leak_round(const struct scene *s, const struct delivery *w, uint32_t at,
		       const struct left *base, const struct left *first)
{
	struct left now;

	for (int i = 0; i < 3; i++) {
		struct left start;

		inject_track(true, i == 2);
		start = look();
		if (!fault_round(s, w, at))
			return;
		now = look_until(&start);
		if (now.memory <= base->memory && now.fds <= start.fds &&
		    now.threads <= start.threads && now.children <= start.children)
			return; /* something that is made once */
	}
	inject_track(false, false);
	wrong("left behind: %zu allocations (%zu), %u descriptors (%u), %u threads (%u), "
	      "%u processes (%u)",
	      now.memory, base->memory, first->fds, base->fds, first->threads, base->threads,
	      first->children, base->children);
	say_leaks();
}

static void one(const struct scene *s, const struct delivery *w, uint32_t at, struct left *base)
{
	struct tally *t = &shared->tally[w - ways];
	struct left now;
	bool fired;
	uint32_t errors, bad;

	x.at = at;
	inject_track(true, false);
	fired = fault_round(s, w, at);
	errors = x.errors;
	now = look_until(base);
	bad = x.wrong;
	if (fired && more_left(&now, base)) {
		leak_round(s, w, at, base, &now);
		bad += x.wrong;
		base->fds = count_fds();
		base->children = count_children();
		base->threads = count_threads();
	}
	inject_track(false, false);
	if (x.verbose)
		printf("%s %s %u: %s, %u errors, %u wrong\n", s->name, w->name, at,
		       fired ? "fault" : "none", errors, bad);
	if (bad)
		t->wrong++;
	if (!fired)
		return;
	t->faults++;
	if (!bad && errors)
		t->errors++;
	else if (!bad)
		t->right++;
}

/* ---- which calls ---- */

static uint64_t rnd(void)
{
	static uint64_t state = 88172645463325252u;

	if (x.seed) {
		state ^= x.seed * 0x9e3779b97f4a7c15u;
		x.seed = 0;
	}
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static int by_number(const void *a, const void *b)
{
	uint32_t p = *(const uint32_t *)a, q = *(const uint32_t *)b;

	return (p > q) - (p < q);
}

/* firsts - of calls with the same callers the first, and the last of all, into shared->list. */
static uint32_t firsts(uint32_t n)
{
	static uint64_t seen[1 << 18];
	uint32_t found = 0;

	memset(seen, 0, sizeof(seen));
	for (uint32_t i = 0; i < n && i < INJECT_CALLS; i++) {
		size_t p = inject->hashes[i] % (1 << 18), tries = 0;

		while (seen[p] && seen[p] != inject->hashes[i] && tries++ < 1000)
			p = (p + 1) % (1 << 18);
		if (seen[p] == inject->hashes[i] || found == PER_MAX)
			continue;
		seen[p] = inject->hashes[i];
		shared->list[found++] = i + 1;
	}
	return found;
}

/* choose - at most `per` of n calls. */
static void choose(uint32_t n)
{
	uint32_t found, per = x.per ? x.per : PER_MAX, k = 0;

	shared->n_list = 0;
	if (n <= per) {
		for (uint32_t i = 0; i < n; i++)
			shared->list[i] = i + 1;
		shared->n_list = n;
		return;
	}
	found = firsts(n);
	if (found > per) { /* of those so many, anywhere */
		for (uint32_t i = 0; i < per; i++) {
			uint32_t j = i + (uint32_t)(rnd() % (found - i));
			uint32_t t = shared->list[i];

			shared->list[i] = shared->list[j];
			shared->list[j] = t;
		}
		found = per;
	}
	while (found < per) /* and others between */
		shared->list[found++] = 1 + (uint32_t)(rnd() % n);
	qsort(shared->list, found, sizeof(shared->list[0]), by_number);
	for (uint32_t i = 0; i < found; i++)
		if (i == 0 || shared->list[i] != shared->list[i - 1])
			shared->list[k++] = shared->list[i];
	shared->n_list = k;
}

/* count - how many calls there are, and who makes them. */
static uint32_t count(const struct scene *s, const struct delivery *w)
{
	uint32_t n;

	prepare(s);
	x.pass = CLEAN;
	x.fault = false;
	arm(w, 0, true);
	once(s);
	n = inject->count;
	after(s);
	return n;
}

/* ---- a process for each scene ---- */

static void on_crash(int sig)
{
	uintptr_t frames[20];
	uint32_t n = inject_callers(frames, 20);
	char text[640];
	size_t used = (size_t)snprintf(text, sizeof(text), " signal %d at", sig);

	inject->armed = 0;
	for (uint32_t i = 0; i < n && used + 24 < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, " %" PRIxPTR,
					 frames[i]);
	text[used++] = '\n';
	(void)syscall(SYS_write, 1, text, used);
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

static bool wanted(const char *name, char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return n == 0;
}

static struct {
	char *scenes[64], *ways[64];
	size_t n_scenes, n_ways;
} only;

static void work(const struct scene *s, uint32_t way, uint32_t pos)
{
	struct left base;
	bool resumed = pos > 0;

	x.scene = s;
	x.way = NULL;
	clean_round(s, BASE);
	for (int i = 0; i < 2; i++)
		clean_round(s, CLEAN);
	inject_track(true, true);
	clean_round(s, CLEAN);
	base = look_until(&(struct left){0, 3, 1, 0});
	if (base.memory) {
		wrong("left behind: %zu allocations, without a fault", base.memory);
		say_leaks();
	}
	if (x.wrong) {
		shared->tally[0].wrong++;
		return;
	}
	for (uint32_t i = way; i < WAYS; i++, pos = 0) {
		const struct delivery *w = &ways[i];

		if ((s->skip & w->mask) || !wanted(w->name, only.ways, only.n_ways))
			continue;
		shared->way = i;
		x.way = NULL;
		if (!resumed) {
			shared->tally[i].calls = count(s, w);
			choose(shared->tally[i].calls);
		}
		if (x.only_at) {
			shared->list[0] = x.only_at;
			shared->n_list = 1;
		}
		resumed = false;
		x.way = w;
		for (uint32_t k = pos; k < shared->n_list; k++) {
			shared->pos = k;
			shared->in_round = 1;
			shared->progress++;
			one(s, w, shared->list[k], &base);
			shared->in_round = 0;
		}
		x.way = NULL;
	}
}

static void worker(const struct scene *s, uint32_t way, uint32_t pos)
{
	static const int deaths[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!x.verbose)
		(void)dup2(null, 2);
	(void)dup2(null, 0);
	(void)close(null);
	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++)
		(void)signal(deaths[i], on_crash);
	(void)H5open(); /* as in the process that forks a mount's */
	work(s, way, pos);
	(void)fflush(stdout);
	_exit(0);
}

static void dump(pid_t pid)
{
	char text[200];

	(void)snprintf(
		text, sizeof(text),
		"gdb -p %d -batch -ex 'thread apply all bt 14' 2>/dev/null | grep '^[#T]'",
		(int)pid);
	(void)fflush(stdout);
	if (system(text) != 0)
		printf("(no gdb)\n");
}

/* watch - until the worker ends. Returns whether it died or hung, in the middle of a round. */
static bool watch(pid_t pid, const struct scene *s)
{
	uint64_t last = shared->progress;
	time_t since = time(NULL);
	bool hung = false;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		const struct timespec pause = {.tv_nsec = 20000000};

		(void)nanosleep(&pause, NULL);
		if (shared->progress != last) {
			last = shared->progress;
			since = time(NULL);
		}
		if (!hung && time(NULL) - since > HANG_S) {
			hung = true;
			inject->armed = 0;
			dump(pid);
			(void)kill(-pid, SIGKILL);
		}
	}
	(void)kill(-pid, SIGKILL);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return false;
	printf("WRONG %s %s %u: %s (status %d)\n", s->name, ways[shared->way].name,
	       shared->in_round ? shared->list[shared->pos] : 0, hung ? "hangs" : "died",
	       status);
	say_where();
	shared->tally[shared->way].wrong++;
	shared->tally[shared->way].faults += shared->in_round;
	return true;
}

static bool scene_loop(const struct scene *s)
{
	struct timespec from, to;
	struct tally sum = {0};
	uint32_t way = 0, pos = 0, deaths = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &from);
	memset(shared->tally, 0, sizeof(shared->tally));
	for (;;) {
		pid_t pid;

		shared->in_round = 0;
		(void)fflush(stdout);
		pid = fork();
		if (pid == 0)
			worker(s, way, pos);
		if (pid < 0 || !watch(pid, s) || ++deaths > 40)
			break;
		if (!shared->in_round)
			break;
		way = shared->way;
		pos = shared->pos + 1;
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &to);
	for (size_t i = 0; i < WAYS; i++) {
		const struct tally *t = &shared->tally[i];

		if (t->calls || t->faults || t->wrong)
			printf("DONE %s %s %u %u %u %u %u\n", s->name, ways[i].name, t->calls,
			       t->faults, t->right, t->errors, t->wrong);
		sum.faults += t->faults;
		sum.wrong += t->wrong;
		sum.right += t->right;
		sum.errors += t->errors;
	}
	printf("SCENE %s %u %u %u %u %.1f\n", s->name, sum.faults, sum.right, sum.errors,
	       sum.wrong,
	       (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9);
	return sum.wrong == 0;
}

static void *share(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	return p;
}

int main(int argc, char **argv)
{
	bool ok = true;
	int c;

	while ((c = getopt(argc, argv, "k:w:n:s:a:v")) != -1) {
		if (c == 'k' && only.n_scenes < 64)
			only.scenes[only.n_scenes++] = optarg;
		else if (c == 'w' && only.n_ways < 64)
			only.ways[only.n_ways++] = optarg;
		else if (c == 'n')
			x.per = (uint32_t)strtoul(optarg, NULL, 10);
		else if (c == 's')
			x.seed = (uint32_t)strtoul(optarg, NULL, 10);
		else if (c == 'a')
			x.only_at = (uint32_t)strtoul(optarg, NULL, 10);
		else if (c == 'v')
			x.verbose = true;
		else
			return 2;
	}
	if (argc - optind < 2)
		return 2;
	in_dir = argv[optind];
	work_dir = argv[optind + 1];
	web_url = argc - optind > 2 ? argv[optind + 2] : NULL;
	s3_url = argc - optind > 3 ? argv[optind + 3] : NULL;
	shared = share(sizeof(*shared));
	inject = share(sizeof(*inject) + INJECT_CALLS * sizeof(uint64_t));
	(void)mallopt(M_PERTURB, 0xa5); /* what is read after it was freed is no pointer */
	log_init(x.verbose ? LOG_DEBUG : LOG_ERROR, false);
	codec_plugins_begin();
	for (size_t i = 0; i < n_scenes; i++) {
		const struct scene *s = &scenes[i];

		if (!wanted(s->name, only.scenes, only.n_scenes) ||
		    (strncmp(s->input, "url:", 4) == 0 && !web_url) ||
		    (strncmp(s->input, "s3:", 3) == 0 && !s3_url))
			continue;
		ok = scene_loop(s) && ok;
	}
	return ok ? 0 : 1;
}
