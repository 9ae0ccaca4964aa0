/* SPDX-License-Identifier: BSD-3-Clause */
/* isolated_source.c - sources whose library runs in another process: opening, closing, passing
 * questions on.
 *
 * A child builds the model in memory that it shares with us. The memory is mapped at the same
 * address in both, so that the model's pointers hold. When the child has said that it is done, we
 * copy the memory to a place that no process can write to, at the same address, and only then is
 * the model checked (verify.c) and used. Later children, which read elements, map the copy. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "hdf5view/isolate/isolated_source.h"

#define ISOLATED_BASE                                                                          \
	((uint64_t)2 << 30) /* address space: the library's own, and strings of a GiB */
#define PLACE_TRIES 3 /* addresses to try: one may be in use in the other process */

static uint8_t *arena_of(struct isolated_model *m)
{
	return (uint8_t *)m + (sizeof(*m) + 63) / 64 * 64;
}

/* ---- the other process ---- */

/* largest - bytes of the largest readable chunk. */
static uint64_t largest(const struct dataset *ds)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < ds->n_arrays; i++)
		n = u64_max(n, ds->arrays[i].chunk_bytes);
	return n;
}

/* isolated_limits - memory: a few times the options' limits of a model or a chunk, and the
 * library's own needs. CPU time: the longest time that a caller waits. */
static void isolated_limits(const struct isolated *g, enum isolated_job_kind kind,
			    struct isolated_job *ret)
{
	const struct source_options *o = &g->opts;
	uint64_t ms = kind == ISOLATED_OPEN ? o->open_timeout_ms : g->worker.timeout_ms;

	ret->memory = ISOLATED_BASE + g->region_size +
		      u64_min(o->max_index_bytes, ISOLATED_BASE) +
		      2 * u64_min(o->max_meta_bytes, SIZE_MAX / 8);
	if (kind == ISOLATED_READ)
		ret->memory += 4 * u64_min(largest(&g->base.ds), o->max_chunk_bytes);
	ret->cpu_ms = ms;
	ret->again = g->again;
	ret->plugins =
		g->plugins || (kind == ISOLATED_READ && g->kind->needs && g->kind->needs(g));
}

int isolated_job_of(const struct isolated *g, enum isolated_job_kind kind,
		    struct isolated_job *ret, struct err *e)
{
	const char *root = g->external_root;

	if (strlen(g->path) >= sizeof(ret->path) ||
	    (root && strlen(root) >= sizeof(ret->external_root)))
		return err_set(e, -ENAMETOOLONG, "its path is too long");
	ret->kind = kind;
	ret->at = g->region;
	ret->size = g->region_size;
	ret->st = g->base.ds.st;
	ret->max_meta_bytes = g->opts.max_meta_bytes;
	ret->cut_bytes = g->opts.cut_bytes;
	ret->max_chunk_bytes = g->opts.max_chunk_bytes;
	ret->max_index_bytes = g->opts.max_index_bytes;
	isolated_limits(g, kind, ret);
	ret->keep_going = g->opts.keep_going;
	ret->remote = isolated_remote(g);
	ret->more = kind == ISOLATED_OPEN && isolated_shares(g);
	memcpy(ret->path, g->path, strlen(g->path) + 1);
	if (root)
		memcpy(ret->external_root, root, strlen(root) + 1);
	return 0;
}

/* use_model - take over a finished model for its source. */
static int use_model(struct isolated *g, struct err *e)
{
	const struct isolated_model *m = g->region;
	const struct stat st = g->base.ds.st;

	g->base.ds = m->ds;
	g->base.ds.notes_room = 0; /* a child has no say in it */
	g->base.ds.arena = (struct arena){.fixed = true, .used = m->used};
	g->base.ds.st = st;
	return g->kind->use(g, m->own, e);
}

/* find_paths - make the paths canonical. named: path is only a name for messages. */
static int find_paths(struct isolated *g, const char *path, bool named, struct err *e)
{
	const char *root = named ? NULL : g->opts.external_root;

	g->path = named ? strdup(path) : realpath(path, NULL);
	if (!g->path)
		return err_sys(e, errno, "cannot find its canonical path");
	g->opts.external_root = NULL;
	if (root && root[0]) {
		g->external_root = realpath(root, NULL);
		if (!g->external_root)
			return err_sys(e, errno, "external_root '%.200s'", root);
	} else if (!named && !root && g->kind->links && g->opts.links_beside &&
		   strrchr(g->path, '/') > g->path) {
		g->external_root = strndup(g->path, (size_t)(strrchr(g->path, '/') - g->path));
		if (!g->external_root)
			return err_nomem(e);
	}
	return 0;
}

static int set_up_kind(struct isolated *g, struct err *e)
{
	return g->kind->set_up ? g->kind->set_up(g, e) : 0;
}

int isolated_of_job(const struct isolated_kind *kind, const struct isolated_job *job, int fd,
		    int region_fd, struct isolated **ret, struct err *e)
{
	struct isolated *g = kind->make();
	int prot = job->kind == ISOLATED_OPEN ? PROT_READ | PROT_WRITE : PROT_READ, rc;

	if (!g)
		return err_nomem(e);
	g->kind = kind;
	g->base.ds.st = job->st;
	g->fd = job->remote ? -1 : fd;
	g->local = blob_of_fd(fd, (uint64_t)job->st.st_size);
	g->blob = job->remote ? blob_proxy_client_new(fd, g->local.size) : &g->local;
	if (!g->blob)
		return err_nomem(e);
	g->region_fd = region_fd;
	g->plugins = job->plugins;
	g->again = job->again;
	g->opts = (struct source_options){.max_meta_bytes = job->max_meta_bytes,
					  .cut_bytes = job->cut_bytes,
					  .max_chunk_bytes = job->max_chunk_bytes,
					  .max_index_bytes = job->max_index_bytes,
					  .keep_going = job->keep_going};
	/* the file may have been moved since the server found its canonical path */
	g->path = strdup(job->path);
	g->external_root = job->external_root[0] ? strdup(job->external_root) : NULL;
	if (!g->path || (job->external_root[0] && !g->external_root))
		return err_nomem(e);
	g->region_size = job->size;
	g->region =
		mmap(job->at, job->size, prot, MAP_SHARED | MAP_FIXED_NOREPLACE, region_fd, 0);
	if (g->region != job->at)
		return err_set(e, -EADDRINUSE, "cannot map memory for %s's process",
			       kind->child.who);
	rc = set_up_kind(g, e);
	if (rc == 0 && job->kind == ISOLATED_READ)
		rc = use_model(g, e);
	*ret = g;
	return rc;
}

void isolated_open_job(struct isolated *g, int sock)
{
	struct isolated_model *m = g->region;
	uint8_t *at = arena_of(m);
	const void *own = NULL;
	struct err e = ERR_INIT;
	int rc;

	arena_init_in(&g->base.ds.arena, at, g->region_size - (size_t)(at - (uint8_t *)m));
	/* the rest of the region is for its own structures */
	g->base.ds.arena.max = (size_t)u64_min(g->base.ds.arena.max, g->opts.max_meta_bytes);
	resource_errors_reset();
	rc = isolated_was_short(g->kind->library->build(g, &own, &e), g->again, &e);
	/* a model of a file whose bytes could not be read is not valid */
	if (blob_proxy_client_failed(g->blob, NULL) < 0)
		rc = blob_proxy_client_failed(g->blob, &e);
	if (rc || (!g->plugins && g->kind->library->short_of && g->kind->library->short_of())) {
		worker_reply(sock, rc ? rc : RETRY_WITH_PLUGINS, 0, &e);
		_exit(0);
	}
	m->ds = g->base.ds;
	m->own = own;
	m->used = (size_t)(at - (uint8_t *)m) + g->base.ds.arena.used + 4096;
	worker_reply(sock, 0, 0, &e);
}

/* ---- the server ---- */

/* make_region - memory that takes no pages before it is written. */
static int make_region(struct isolated *g, struct err *e)
{
	uint64_t size;

	if (ckd_add(&size, g->opts.max_meta_bytes, (uint64_t)1 << 20) || size > SIZE_MAX / 4)
		return err_set(e, -ERANGE, "half of -o memory, %" PRIu64 " bytes, is too large",
			       g->opts.max_meta_bytes);
	g->region_fd = memfd_create("nczarrfs-model", MFD_CLOEXEC);
	if (g->region_fd < 0 || ftruncate(g->region_fd, (off_t)size) < 0)
		return err_sys(e, errno, "cannot allocate memory for the dataset's metadata");
	g->region_size = (size_t)size;
	g->region = mmap(NULL, g->region_size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_NORESERVE, g->region_fd, 0);
	if (g->region != MAP_FAILED)
		return 0;
	g->region = NULL;
	return err_sys(e, errno, "cannot allocate memory for the dataset's metadata");
}

static void isolated_source_shm_release(struct isolated *g)
{
	if (g->region)
		(void)munmap(g->region, g->region_size);
	close_fd(&g->region_fd);
	g->region = NULL;
}

static int isolated_source_nonsense(const struct isolated *g, struct err *e)
{
	return err_set(e, -EBADMSG, "%s's process sent an invalid answer: the file is damaged",
		       g->kind->child.who);
}

/* A late reply and an invalid one have messages of their own. */
static const struct worker_words words = {
	.killed = "'s process was killed (signal 9) while opening it: possibly out of memory",
	.crashed = " while opening it: the file is damaged, or memory ran out",
	.ended = "'s process ended",
	.ended_of = " while opening it: the file is damaged, or memory ran out",
	.blameless =
		{{"'s process ended and its answer was lost", 0},
		 {" crashed while opening it, after memory ran out, descriptors ran out or a "
		  "read failed",
		  EXIT_NOMEM_CRASH}},
};

/* ask_shared - build one model in a child that opens other files, too. Returns 0; RETRY_ALONE
 * after any other answer, because earlier files may have caused it. It waits for a small part of
 * open_timeout only, as the child that is then started has all of it. */
static int ask_shared(struct isolated *g)
{
	struct worker *w = worker_take(g->opts.processes, isolated_shared_fits, g);
	const uint64_t limit = g->opts.open_timeout_ms ? g->opts.open_timeout_ms : UINT64_MAX;
	struct worker_call c = {.ms = u64_min(limit / 4 + 1, SHARED_MS)};
	struct err why = ERR_INIT; /* the other process finds its own */
	bool built = isolated_shared_start(g, w, &why) == 0 &&
		     worker_call(w, &c, &why) == CHILD_TAKEN && c.rc == 0;

	if (!built)
		(void)worker_end(w);
	worker_give(g->opts.processes, w);
	return built ? 0 : RETRY_ALONE;
}

/* isolated_source_ask - build one model in one child. Returns 0; RETRY_WITH_PLUGINS,
 * RETRY_NOMEM or RETRY_ALONE, each only if g does not have that flag yet; -errno. */
static int isolated_source_ask(struct isolated *g, struct err *e)
{
	struct worker_call c = {.ms = g->opts.open_timeout_ms, .known = RETRY_NOMEM};
	const uint64_t seconds = c.ms / 1000 + (c.ms % 1000 != 0);
	struct isolated_proc child;
	enum child_taken got;
	bool slow;
	int rc;

	if (isolated_shares(g))
		return ask_shared(g);
	rc = isolated_child_start(g, ISOLATED_OPEN, &child, e);
	if (rc < 0)
		return rc;
	got = isolated_call(&child, &c, &slow, e);
	rc = c.rc;
	if (got == CHILD_TAKEN &&
	    ((rc == RETRY_WITH_PLUGINS && g->plugins) || (rc == RETRY_NOMEM && g->again)))
		got = CHILD_WRONG;
	if (got == CHILD_WRONG)
		rc = isolated_source_nonsense(g, e);
	else if (got == CHILD_GONE)
		rc = worker_lost(&child.w, &words, g->kind->child.who, got, c.ms, NULL, e);
	else if (got == CHILD_LATE && slow)
		rc = err_set(e, -ETIMEDOUT,
			     "not open after %" PRIu64 " seconds, most of them spent on the "
			     "network: use a longer -o open_timeout",
			     seconds);
	else if (got == CHILD_LATE)
		rc = err_set(e, -EIO,
			     "not open after %" PRIu64 " seconds: the file is damaged, or so "
			     "large that it needs a longer -o open_timeout",
			     seconds);
	isolated_child_end(&child);
	return rc;
}

/* region_read - read the child's result. A failed read is an error of this process, an early end
 * one of the child. */
static int region_read(const struct isolated *g, void *out, size_t len, size_t off,
		       struct err *e)
{
	uint8_t *to = out;

	for (size_t at = 0; at < len;) {
		ssize_t n = pread(g->region_fd, to + at, len - at, (off_t)(off + at));

		if (n > 0)
			at += (size_t)n;
		else if (n == 0)
			return isolated_source_nonsense(g, e);
		else if (errno != EINTR)
			return err_sys(e, errno, "cannot read the dataset's metadata");
	}
	return 0;
}

/* isolated_source_copy_of - copy `used` bytes of a region into memory that no other process can
 * write. The region is read with pread, not through the mapping: a child under an attacker's
 * control may have left a process that still has the region and truncates it. Returns a
 * descriptor, or -errno. */
static int isolated_source_copy_of(const struct isolated *g, size_t used, struct err *e)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	int fd = memfd_create("nczarrfs-model", MFD_CLOEXEC | MFD_ALLOW_SEALING), rc = 0;
	uint8_t *to = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, (off_t)used) == 0)
		to = mmap(NULL, used, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (to == MAP_FAILED)
		rc = err_sys(e, errno, "cannot map memory for the dataset's metadata");
	rc = rc ? rc : region_read(g, to, used, 0, e);
	if (to != MAP_FAILED)
		(void)munmap(to, used);
	if (rc == 0 && fcntl(fd, F_ADD_SEALS, seals) < 0)
		rc = err_sys(e, errno, "cannot protect the dataset's metadata");
	if (rc == 0)
		return fd;
	close_fd(&fd);
	return rc;
}

/* isolated_source_settle - replace the region by its copy, at the same address and only as long as
 * the used part. Later children get the copy. */
static int isolated_source_settle(struct isolated *g, struct err *e)
{
	size_t said = 0;
	size_t used;
	int fd, rc;

	rc = region_read(g, &said, sizeof(said), offsetof(struct isolated_model, used), e);
	if (rc < 0)
		return rc;
	if (said < sizeof(struct isolated_model) || said > g->region_size)
		return isolated_source_nonsense(g, e);
	used = (said + 4095) & ~(size_t)4095;
	if (used > g->region_size)
		used = g->region_size;
	fd = isolated_source_copy_of(g, used, e);
	if (fd < 0)
		return fd;
	(void)munmap((uint8_t *)g->region + used, g->region_size - used);
	g->region_size = used;
	(void)close(g->region_fd);
	g->region_fd = fd;
	if (mmap(g->region, used, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		return err_sys(e, errno, "cannot protect the dataset's metadata");
	return isolated_verify(g->kind, g->region, used, g->opts.max_chunk_bytes, e);
}

/* open_model - let a child build the model, verify it, take it over. */
static int open_model(struct isolated *g, struct err *e)
{
	void *taken[PLACE_TRIES] = {NULL};
	size_t sizes[PLACE_TRIES] = {0};
	int rc = -EADDRINUSE;

	for (size_t i = 0; rc == -EADDRINUSE && i < PLACE_TRIES; i++) {
		do { /* at most four times: each kind of retry is requested once */
			g->plugins |= rc == RETRY_WITH_PLUGINS;
			g->again |= rc == RETRY_NOMEM;
			g->alone |= rc == RETRY_ALONE;
			isolated_source_shm_release(g);
			rc = make_region(g, e);
			rc = rc ? rc : isolated_source_ask(g, e);
		} while (rc > 0);
		if (rc == -EADDRINUSE) { /* keep this region, so that the next one gets another
					  * address */
			taken[i] = g->region;
			sizes[i] = g->region_size;
			g->region = NULL;
			isolated_source_shm_release(g);
		}
	}
	for (size_t i = 0; i < PLACE_TRIES; i++)
		if (taken[i])
			(void)munmap(taken[i], sizes[i]);
	rc = rc ? rc : isolated_source_settle(g, e);
	rc = rc ? rc : use_model(g, e);
	return rc;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* share_model - map the model that another process has of the file. Returns false, with nothing
 * changed, if the file changed since, or if the memory's address is in use. */
static bool share_model(struct isolated *g, const struct source_model *from)
{
	const size_t n = (size_t)from->size;
	void *want = (void *)(uintptr_t)from->at; /* the address that its pointers are for */
	struct isolated_model *m;

	if (n < sizeof(*m))
		return false;
	m = mmap(want, n, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, from->fd, 0);
	if (m == MAP_FAILED)
		return false;
	if (m == want && same_file(&m->ds.st, &g->base.ds.st))
		g->region_fd = fcntl(from->fd, F_DUPFD_CLOEXEC, 0);
	if (g->region_fd < 0) {
		(void)munmap(m, n);
		return false;
	}
	g->region = m;
	g->region_size = n;
	g->plugins = from->plugins;
	return true;
}

/* ---- the operations ---- */

/* isolated_source_release - release everything but the descriptor. */
static void isolated_source_release(struct isolated *g)
{
	isolated_worker_release(&g->worker);
	free(g->external_root);
	free(g->path);
	isolated_source_shm_release(g);
	g->kind->release(g);
}

int isolated_open(const struct isolated_kind *kind, const struct source_at *at,
		  const struct source_options *opts, struct source **ret, struct err *e)
{
	struct isolated *g = kind->make();
	struct err why = ERR_INIT;
	int rc;

	if (!g)
		return err_nomem(e);
	g->kind = kind;
	g->base.ds.st = at->st;
	g->fd = at->fd;
	g->local = blob_of_fd(at->fd, (uint64_t)at->st.st_size);
	g->blob = at->fd < 0 ? at->file : &g->local;
	g->base.remote = isolated_remote(g);
	g->origin = at->fd >= 0 && at->file && at->file->fd < 0 ? at->file : NULL;
	g->region_fd = -1;
	g->opts = *opts;
	isolated_worker_init(&g->worker, opts->read_timeout_ms);
	rc = find_paths(g, at->path, isolated_remote(g) || g->origin, &why);
	rc = rc ? rc : set_up_kind(g, &why);
	if (rc == 0)
		rc = opts->model && share_model(g, opts->model) ? use_model(g, &why)
								: open_model(g, &why);
	if (rc < 0) {
		isolated_source_release(g);
		return err_set(e, rc, "%s", why.msg);
	}
	*ret = &g->base;
	return 0;
}

void isolated_close(struct source *s)
{
	struct isolated *g = isolated_of(s);
	struct blob *remote = isolated_remote(g) ? g->blob : g->origin;
	int fd = g->fd;

	isolated_source_release(g);
	blob_close(remote);
	close_fd(&fd); /* it was only read */
}

int isolated_fd(struct source *s, uint32_t blob)
{
	return blob == 0 ? isolated_of(s)->fd : -1;
}

/* isolated_ask_file - whether the file was changed; remote: ask a remote server. */
static int isolated_ask_file(struct isolated *g, bool remote, struct err *e)
{
	const struct stat *was = &g->base.ds.st;
	struct stat now;

	if (!remote && atomic_load_explicit(&g->held, memory_order_acquire))
		return 0;
	if (isolated_remote(g) || g->origin)
		return blob_check(g->origin ? g->origin : g->blob, remote, e);
	if (fstat(g->fd, &now) < 0)
		return err_sys(e, errno, "the source file");
	if (now.st_size != was->st_size || now.st_mtim.tv_sec != was->st_mtim.tv_sec ||
	    now.st_mtim.tv_nsec != was->st_mtim.tv_nsec)
		return err_set(e, -ESTALE, "the source file was changed after it was opened");
	return 0;
}

int isolated_check(struct source *s, struct err *e)
{
	return isolated_ask_file(isolated_of(s), false, e);
}

int isolated_poll(struct source *s, struct err *e)
{
	struct isolated *g = isolated_of(s);

	return isolated_ask_file(g, isolated_remote(g) || g->origin, e);
}

int isolated_read_stored(struct source *s, uint32_t array NZ_UNUSED, uint64_t linear NZ_UNUSED,
			 const struct chunk_ref *ref, uint64_t off, uint8_t *out, size_t len,
			 struct err *e)
{
	return blob_read(isolated_of(s)->blob, ref->off + off, out, len, e);
}

void isolated_forget(struct source *s, uint32_t array NZ_UNUSED, uint64_t linear NZ_UNUSED)
{
	blob_forget(isolated_of(s)->blob);
}

void isolated_model_of(const struct source *s, struct source_model *ret)
{
	const struct isolated *g = (const struct isolated *)s; /* embedded first */

	*ret = (struct source_model){.fd = g->region_fd,
				     .plugins = g->plugins,
				     .at = (uint64_t)(uintptr_t)g->region,
				     .size = g->region_size};
}

void isolated_hold(struct source *s, bool on)
{
	atomic_store_explicit(&isolated_of(s)->held, on, memory_order_release);
}
