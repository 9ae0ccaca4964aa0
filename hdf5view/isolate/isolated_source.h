/* SPDX-License-Identifier: BSD-3-Clause */
/* isolated_source.h - sources whose library meets files of others only in processes of its own;
 * private to hdf5view.
 *
 * libhdf5 and libhdf4 crash and hang on damaged files. So a child (base/process/child.h) builds the
 * model in memory that it shares with the server, which looks at it once before it is believed
 * (isolated_source.c, verify.c), and a second one reads elements when somebody wants them
 * (read_worker.c): what it dies of costs the reader an error and the source a new child. Every
 * source has its own.
 *
 * A kind says what its library does; everything else is the same for all. */
#ifndef HDF5VIEW_ISOLATE_ISOLATED_SOURCE_H
#define HDF5VIEW_ISOLATE_ISOLATED_SOURCE_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/process/worker.h"
#include "hdf5view/isolate/blob_proxy.h"
#include "translate/contract/source.h"

#define ISOLATED_REST_MS 60000 /* how long what killed a worker is left alone */
#define ISOLATED_MS 60000      /* how long a read may take by default */
#define ISOLATED_PATHS_MAX 300 /* files and directories that a child may read */
#define RETRY_WITH_PLUGINS 1   /* a child's answer: retry the request with job.plugins */
#define RETRY_NOMEM 2          /* ... with `again`: memory was short for something */
#define EXIT_NOMEM_CRASH 88    /* its status: it crashed after something was short */

struct isolated;
struct isolated_kind;

enum isolated_job_kind { ISOLATED_OPEN, ISOLATED_READ };

/* isolated_job - plain data, sent to the process that forks. */
struct isolated_job {
	enum isolated_job_kind kind;
	void *at;                  /* where the region of the model is mapped, in every process */
	size_t size;               /* bytes of it */
	struct stat st;            /* of the source */
	uint64_t max_meta_bytes, cut_bytes, max_chunk_bytes, max_index_bytes;
	uint64_t memory, cpu_ms;   /* what it may have: struct sandbox_limits */
	bool plugins;              /* it needs to know what filters others wrote */
	bool again;                /* memory was short before, for something large */
	bool has_root, keep_going;
	bool named;                /* path is no path, but what messages say */
	bool remote; /* ISOLATED_FD_SOURCE is a socket for blob_proxy_client_new */
	char path[PATH_MAX], external_root[PATH_MAX];
};

/* The descriptors of a job, for isolated_kind.child.n_fds. */
enum { ISOLATED_FD_SOURCE, ISOLATED_FD_REGION, ISOLATED_FDS };

/* isolated_model - the head of a region; the arena follows it. */
struct isolated_model {
	struct dataset ds;
	const void *own;           /* what the kind keeps besides; in the arena */
	size_t used;               /* bytes of the region that mean something */
};

/* ---- verify.c: what another process wrote is checked before it is used ---- */

struct isolated_verify {
	const uint8_t *base;
	size_t size;
	const struct dataset *ds;
	uint64_t *left;            /* how much may still be looked at, VERIFY_BUDGET at first */
	uint64_t max_chunk_bytes;  /* of a chunk that can be read */
};

/* VERIFY_BUDGET - bytes of texts and parts of a model that are looked at, however often something
 * is pointed to: types can share fields in a way that there are 2^60 to follow. */
#define VERIFY_BUDGET ((uint64_t)1 << 30)
/* verify_charge - false when more than that was looked at. */
bool verify_charge(const struct isolated_verify *v, uint64_t n);
/* isolated_in - n elements of `size` bytes at p are in the region, aligned. */
bool isolated_in(const struct isolated_verify *v, const void *p, uint64_t n, size_t size,
		 size_t align);
/* ISOLATED_HAS - n elements behind a typed pointer; none need no memory. */
#define ISOLATED_HAS(v, p, n)                                                                  \
	((n) == 0 || isolated_in(v, p, n, sizeof(*(p)), _Alignof(__typeof__(*(p)))))
/* isolated_text - a text that ends inside the region. */
bool isolated_text(const struct isolated_verify *v, const char *s);
/* isolated_flag - whether it is true or false: a byte that another process wrote may be anything,
 * and code that is compiled for two values does anything with it. */
bool isolated_flag(const bool *b);

/* isolated_verify - whether a region holds a model that can be used without looking at it again:
 * every pointer leads into it, every count and product is right, every text ends, and no chunk that
 * can be read has more than max_chunk_bytes. The process that wrote it may have been taken over.
 * Returns 0 or -EBADMSG. */
int isolated_verify(const struct isolated_kind *kind, const struct isolated_model *m,
		    size_t size, uint64_t max_chunk_bytes, struct err *e) NZ_MUST_USE;

/* ---- a kind ---- */

/* isolated_library - the calls that only a child makes: the server has no path to what they call
 * (scripts/check-server). */
struct isolated_library {
	/* begin - in every child, before it knows the source. NULL: nothing. */
	void (*begin)(void);
	/* confine - the same: call sandbox_enter. paths: what the source needs, with room for
	 * ISOLATED_PATHS_MAX. NULL: sandbox_enter as it is. */
	int (*confine)(struct sandbox_path *paths, size_t n, const struct sandbox_limits *limits,
		       struct err *e);
	/* short_of - in a child that builds, when it has: whether it would make another model with
	 * job.plugins. NULL: no. */
	bool (*short_of)(void);
	/* build - the library reads the file into g->base.ds, all in its arena. *ret_own, there as
	 * well: what else the source needs. */
	int (*build)(struct isolated *g, const void **ret_own, struct err *e);
	/* chunk, vlen - as source_read_chunk and source_read_vlen, whose callers have checked what
	 * they pass. vlen: NULL where no type has a variable length. */
	int (*chunk)(struct isolated *g, uint32_t array, uint64_t linear, uint8_t *out,
		     size_t len, struct err *e);
	int (*vlen)(struct isolated *g, uint32_t array, uint64_t linear, struct buf *out,
		    struct err *e);
};

struct isolated_kind {
	bool links; /* its files can lead to others */
	/* of static lifetime. n_fds is ISOLATED_FDS, run calls isolated_run. who: "the HDF5
	 * library" */
	struct child_kind child;
	const struct isolated_library *library;

	/* make - a new zeroed source of this kind with base.ops; NULL when memory is short. */
	struct isolated *(*make)(void);
	/* release - in the server: all that is the kind's, and the memory that make gave. */
	void (*release)(struct isolated *g);
	/* set_up - in the server before anything else, and in every child: path, blob, opts and
	 * base.ds.st are there. NULL: nothing to do. */
	int (*set_up)(struct isolated *g, struct err *e);
	/* needs - in the server: whether a child that reads needs job.plugins. NULL: no. */
	bool (*needs)(const struct isolated *g);
	/* sound - whether a model's own part can be followed; ds was checked before. */
	bool (*sound)(const struct isolated_verify *v, const void *own);
	/* use - take over from a checked model, in the server and in children that read. */
	int (*use)(struct isolated *g, const void *own, struct err *e);
};

/* ---- read_worker.c: the process that reads elements ---- */

/* isolated_proc - a child, and what answers it when the file is remote. */
struct isolated_proc {
	struct worker w;                  /* without shared memory */
	struct blob_proxy_server *remote; /* NULL: the file is local */
};

/* isolated_worker - the server's end. */
struct isolated_worker {
	pthread_mutex_t lock;      /* one request at a time, and all below; before child.enter */
	struct isolated_proc child;
	uint64_t timeout_ms;
	struct worker_blame blame; /* chunks that killed a process */
};

/* isolated - embedded first in the sources of all kinds. */
struct isolated {
	struct source base;
	const struct isolated_kind *kind;
	int fd;                    /* of the source, owned; -1: it is remote */
	struct blob *blob;         /* its bytes: &local, or remote and owned; in a child of the
	                            * latter blob_proxy_client_new's */
	struct blob local;
	struct blob *origin;       /* fd is a copy of it; owned; NULL: fd is the file itself */
	char *path;                /* canonical, or as messages name what is remote; owned */
	struct source_options opts;
	char *external_root;           /* canonical, owned; NULL: no other file is touched */
	void *region;              /* the model's memory: shared with the child that made it, read
	                            * only once it was looked at */
	size_t region_size;
	int region_fd;             /* owned; for children that read elements */
	struct isolated_worker worker;
	bool plugins;              /* job.plugins of its children */
	bool again;                /* job.again */
	_Atomic bool held;         /* source_hold: a commit of ours is changing the file */
};

static inline struct isolated *isolated_of(struct source *s)
{
	return CONTAINER_OF(s, struct isolated, base);
}

static inline bool isolated_remote(const struct isolated *g)
{
	return g->blob != &g->local;
}

/* isolated_worker_init - no process is started before the first read. timeout_ms: 0 for the
 * default. */
void isolated_worker_init(struct isolated_worker *w, uint64_t timeout_ms);
/* isolated_worker_release - end the process. No other call may be running. */
void isolated_worker_release(struct isolated_worker *w);

/* isolated_chunk, isolated_vlen - library->chunk and library->vlen in another process. -EIO: the
 * library died or did not answer; nothing is known about the chunk then. On failure `out` of a
 * chunk holds anything. Any thread. */
int isolated_chunk(struct isolated *g, uint32_t array, uint64_t linear, uint8_t *out,
		   size_t len, struct err *e) NZ_MUST_USE;
int isolated_vlen(struct isolated *g, uint32_t array, uint64_t linear, struct buf *out,
		  struct err *e) NZ_MUST_USE;

/* ---- resource_errors.c: in a child, what its library does not say ---- */

/* resource_errors_note - after something that the library did: remember when memory, descriptors or
 * bytes failed beneath it. Resets errno. */
void resource_errors_note(void);
/* resource_errors_reset - forget that: another question. */
void resource_errors_reset(void);
/* resource_errors_ignore_emfile - this process may open no more files than its library needs: that
 * it opens more is the file's fault. */
void resource_errors_ignore_emfile(void);
/* isolated_was_short - the answer of a library that gave rc: rc itself, 0 or a failure, or where
 * something was short -ENOMEM, -EMFILE, -ENFILE or -EIO, recorded; RETRY_NOMEM: memory was, for
 * something large, and it is not asked again yet. */
int isolated_was_short(int rc, bool again, struct err *e);
/* isolated_look_at_crashes - from now on this process ends with EXIT_NOMEM_CRASH when it crashes
 * after something was short; crashes that nothing explains are what they were. */
void isolated_look_at_crashes(void);

/* ---- isolated_source.c: operations of a source, for the kinds' tables ---- */

/* isolated_open - source_ops.open for a kind. at->fd with a remote at->file: a copy of that. */
int isolated_open(const struct isolated_kind *kind, const struct source_at *at,
		  const struct source_options *opts, struct source **ret,
		  struct err *e) NZ_MUST_USE;
/* The others; contracts in translate/contract/source.h. */
void isolated_close(struct source *s);
int isolated_read_chunk(struct source *s, uint32_t array, uint64_t linear, uint8_t *out,
			size_t len, struct err *e);
int isolated_read_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
		       struct err *e);
int isolated_fd(struct source *s, uint32_t blob);
int isolated_read_stored(struct source *s, uint32_t array, uint64_t linear,
			 const struct chunk_ref *ref, uint64_t off, uint8_t *out, size_t len,
			 struct err *e);
int isolated_check(struct source *s, struct err *e);
int isolated_poll(struct source *s, struct err *e);
void isolated_forget(struct source *s, uint32_t array, uint64_t linear);
void isolated_hold(struct source *s, bool on);
void isolated_model_of(const struct source *s, struct source_model *ret);

/* ---- child_job.c ---- */

/* isolated_child_start - a child that does a job for g. Returns 0 with *ret filled; -errno. Any
 * thread. */
int isolated_child_start(struct isolated *g, enum isolated_job_kind kind,
			 struct isolated_proc *ret, struct err *e) NZ_MUST_USE;
void isolated_child_end(struct isolated_proc *c);
/* isolated_call - worker_call, which is cancelled only while the child reads a remote file, and
 * fails as the server did that could not read it. *ret_slow: the child was late because the bytes
 * of that file were. */
enum child_taken isolated_call(struct isolated_proc *p, struct worker_call *c, bool *ret_slow,
			       struct err *e);
/* isolated_own_plugins - job.plugins of a child that this process forks itself; own:
 * child_start's. */
bool isolated_own_plugins(const void *own);
/* isolated_run - the whole of a child's life; for isolated_kind.child.run. */
void isolated_run(const struct isolated_kind *kind, const struct child_self *self);

/* What a child does; neither returns. isolated_source.c, read_worker.c. */
_Noreturn void isolated_open_job(struct isolated *g, int sock);
_Noreturn void isolated_read_job(struct isolated *g, int sock);

/* isolated_job_of - what another process has to know to work on g. */
int isolated_job_of(const struct isolated *g, enum isolated_job_kind kind,
		    struct isolated_job *ret, struct err *e) NZ_MUST_USE;
/* isolated_of_job - a source in that process, with a model to build or one to use. fd and region_fd
 * are its own. *ret lives as long as the process. */
int isolated_of_job(const struct isolated_kind *kind, const struct isolated_job *job, int fd,
		    int region_fd, struct isolated **ret, struct err *e) NZ_MUST_USE;

#endif
