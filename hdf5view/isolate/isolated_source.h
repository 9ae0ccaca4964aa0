/* SPDX-License-Identifier: BSD-3-Clause */
/* isolated_source.h - sources whose library runs only in processes of its own; private to
 * hdf5view.
 *
 * libhdf5 and libhdf4 crash and hang on damaged files. So a child (base/process/child.h) builds
 * the model in memory that it shares with the server, and the server verifies that memory once
 * before it uses it (isolated_source.c, verify.c). A second child, started at the first need,
 * reads elements (read_worker.c): if it dies, the reader gets an error and the source gets a new
 * child. Every source has its own children, unless source_options.processes lets one child build
 * the models of several files.
 *
 * A kind (struct isolated_kind) provides the library's part; the rest is shared. */
#ifndef HDF5VIEW_ISOLATE_ISOLATED_SOURCE_H
#define HDF5VIEW_ISOLATE_ISOLATED_SOURCE_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/process/worker.h"
#include "hdf5view/isolate/blob_proxy.h"
#include "translate/contract/source.h"

#define ISOLATED_REST_MS 60000 /* pause before a chunk that killed a worker is retried */
#define ISOLATED_MS 60000      /* default time limit of a read */
#define ISOLATED_PATHS_MAX 300 /* files and directories that a child may read */
#define RETRY_WITH_PLUGINS 1   /* a child's reply: retry the request with job.plugins */
#define RETRY_NOMEM 2          /* ... with `again`: an allocation failed */
#define RETRY_ALONE 3          /* in the server: ... in a process of its own */
#define SHARED_FILES 64        /* that one process opens at most */
#define SHARED_MS 2000         /* to open one of them; it takes milliseconds */
#define EXIT_NOMEM_CRASH 88    /* exit status: a crash after memory or files ran short */

struct isolated;
struct isolated_kind;

enum isolated_job_kind { ISOLATED_OPEN, ISOLATED_READ };

/* isolated_job - a child's task; plain data. */
struct isolated_job {
	enum isolated_job_kind kind;
	void *at;                  /* address of the model's region, the same in every process */
	size_t size;               /* its bytes */
	struct stat st;            /* of the source */
	uint64_t max_meta_bytes, cut_bytes, max_chunk_bytes, max_index_bytes;
	uint64_t memory, cpu_ms;   /* limits of the child: struct sandbox_limits */
	bool plugins;              /* load third-party filter plugins */
	bool again;                /* second attempt, after a large allocation failed */
	bool keep_going;
	bool remote; /* ISOLATED_FD_SOURCE is a socket for blob_proxy_client_new */
	bool more;                 /* wait for another job afterwards */
	char path[PATH_MAX], external_root[PATH_MAX]; /* canonical; "": none */
};

/* The descriptors of a job, for isolated_kind.child.n_fds. */
enum { ISOLATED_FD_SOURCE, ISOLATED_FD_REGION, ISOLATED_FDS };

/* isolated_model - the header of a region; the arena follows it. */
struct isolated_model {
	struct dataset ds;
	const void *own;           /* the kind's own data, in the arena */
	size_t used;               /* bytes of the region in use */
};

/* ---- verify.c: check a model that another process wrote, before it is used ---- */

struct isolated_verify {
	const uint8_t *base;
	size_t size;
	const struct dataset *ds;
	uint64_t *left;            /* bytes that may still be visited, initially VERIFY_BUDGET */
	uint64_t max_chunk_bytes;  /* limit of a readable chunk */
};

/* VERIFY_BUDGET - limit of the bytes that verification visits, counting repeated visits: types can
 * share fields in a way that makes 2^60 paths. */
#define VERIFY_BUDGET ((uint64_t)1 << 30)
/* verify_charge - account for n visited bytes. Returns false when the budget is exceeded. */
bool verify_charge(const struct isolated_verify *v, uint64_t n);
/* isolated_in - whether n elements of `size` bytes at p lie inside the region, aligned. */
bool isolated_in(const struct isolated_verify *v, const void *p, uint64_t n, size_t size,
		 size_t align);
/* ISOLATED_HAS - isolated_in for n elements of a typed pointer; true for n = 0. */
#define ISOLATED_HAS(v, p, n)                                                                  \
	((n) == 0 || isolated_in(v, p, n, sizeof(*(p)), _Alignof(__typeof__(*(p)))))
/* isolated_text - whether s is a string that ends inside the region. */
bool isolated_text(const struct isolated_verify *v, const char *s);
/* isolated_flag - whether *b holds a valid bool. Another process may have stored any byte there,
 * and code compiled for two values then has undefined behaviour. */
bool isolated_flag(const bool *b);

/* isolated_verify - check that a region holds a model that can be used without further checks:
 * every pointer leads into the region, every count and product is right, every string ends, and no
 * readable chunk has more than max_chunk_bytes. The process that wrote it may be under an
 * attacker's control.
 * Returns 0 or -EBADMSG. */
int isolated_verify(const struct isolated_kind *kind, const struct isolated_model *m,
		    size_t size, uint64_t max_chunk_bytes, struct err *e) NZ_MUST_USE;

/* ---- a kind ---- */

/* isolated_library - functions that only a child calls: the server has no path to them
 * (scripts/check-server). */
struct isolated_library {
	/* begin - in every child, before it gets the source. NULL: nothing. */
	void (*begin)(void);
	/* confine - in every child, like begin: call sandbox_enter. paths: the paths that the
	 * source needs, with room for ISOLATED_PATHS_MAX. NULL: call sandbox_enter with them
	 * unchanged. */
	int (*confine)(struct sandbox_path *paths, size_t n, const struct sandbox_limits *limits,
		       struct err *e);
	/* short_of - in a child that builds, after build: whether the model would differ with
	 * job.plugins. NULL: no. */
	bool (*short_of)(void);
	/* build - read the file with the library into g->base.ds, with all memory from its arena.
	 * *ret_own: the source's other data, in the same arena. */
	int (*build)(struct isolated *g, const void **ret_own, struct err *e);
	/* chunk, vlen - as source_read_chunk and source_read_vlen, with arguments that the caller
	 * has checked. vlen: NULL if no type has a variable length. */
	int (*chunk)(struct isolated *g, uint32_t array, uint64_t linear, uint8_t *out,
		     size_t len, struct err *e);
	int (*vlen)(struct isolated *g, uint32_t array, uint64_t linear, struct buf *out,
		    struct err *e);
};

struct isolated_kind {
	bool links; /* its files can refer to other files */
	/* static lifetime. n_fds is ISOLATED_FDS, run calls isolated_run. who: "the HDF5
	 * library" */
	struct child_kind child;
	const struct isolated_library *library;

	/* make - a new zeroed source of this kind with base.ops; NULL when memory is short. */
	struct isolated *(*make)(void);
	/* release - in the server: free the kind's resources and the memory that make returned. */
	void (*release)(struct isolated *g);
	/* set_up - in the server before anything else, and in every child; path, blob, opts and
	 * base.ds.st are set. NULL: nothing. */
	int (*set_up)(struct isolated *g, struct err *e);
	/* needs - in the server: whether a child that reads needs job.plugins. NULL: no. */
	bool (*needs)(const struct isolated *g);
	/* sound - whether the kind's own data can be followed; ds has been verified. */
	bool (*sound)(const struct isolated_verify *v, const void *own);
	/* use - take over the data of a verified model, in the server and in children that
	 * read. */
	int (*use)(struct isolated *g, const void *own, struct err *e);
};

/* ---- read_worker.c: the process that reads elements ---- */

/* isolated_proc - a child, and the server of its requests when the file is remote. */
struct isolated_proc {
	struct worker w;                  /* without shared memory */
	struct blob_proxy_server *remote; /* NULL: the file is local */
};

/* isolated_worker - the server's side of the process that reads elements. */
struct isolated_worker {
	pthread_mutex_t lock;      /* held during a request; guards the fields below; taken before
				    * child.enter */
	struct isolated_proc child;
	uint64_t timeout_ms;
	struct worker_blame blame; /* chunks that killed a process */
};

/* isolated - embedded first in the sources of all kinds. */
struct isolated {
	struct source base;
	const struct isolated_kind *kind;
	int fd;                    /* of the source, owned; -1: remote */
	struct blob *blob;         /* the file's bytes: &local, or remote and owned; in a child of
				    * a remote source blob_proxy_client_new's */
	struct blob local;
	struct blob *origin;       /* fd is a local copy of it; owned; NULL: fd is the file
				    * itself */
	char *path;                /* canonical, or the name of a remote file for messages;
				    * owned */
	struct source_options opts;
	char *external_root;           /* canonical, owned; NULL: no other file may be opened */
	void *region;              /* the model's memory: shared with the child that built it, used
				    * only after verification */
	size_t region_size;
	int region_fd;             /* owned; for children that read elements */
	struct isolated_worker worker;
	bool plugins;              /* job.plugins of its children */
	bool again;                /* job.again */
	bool alone;                /* no process that opens other files is used for it */
	_Atomic bool held;         /* source_hold: a commit of this program is changing the file */
};

static inline struct isolated *isolated_of(struct source *s)
{
	return CONTAINER_OF(s, struct isolated, base);
}

static inline bool isolated_remote(const struct isolated *g)
{
	return g->blob != &g->local;
}

/* isolated_worker_init - initialize; a process is started at the first read. timeout_ms: 0 for the
 * default. */
void isolated_worker_init(struct isolated_worker *w, uint64_t timeout_ms);
/* isolated_worker_release - end the process. No other call may be in progress. */
void isolated_worker_release(struct isolated_worker *w);

/* ---- resource_errors.c: in a child, detect shortages that its library hides ---- */

/* resource_errors_note - after a library call: record whether memory, descriptors or reads failed
 * in it, according to errno. Resets errno. */
void resource_errors_note(void);
/* resource_errors_reset - clear the record before the next request. */
void resource_errors_reset(void);
/* resource_errors_ignore_emfile - do not count EMFILE: the descriptor limit of this process covers
 * the library's needs, so running out of them is the file's fault. */
void resource_errors_ignore_emfile(void);
/* isolated_was_short - translate a library's result rc, 0 or a failure. If a shortage is recorded,
 * return -ENOMEM, -EMFILE, -ENFILE or -EIO, with a message, or RETRY_NOMEM if a large allocation
 * failed and `again` is false; else return rc. */
int isolated_was_short(int rc, bool again, struct err *e);
/* isolated_look_at_crashes - from now on, exit with EXIT_NOMEM_CRASH on a crash that follows a
 * recorded shortage. Other crashes keep their signal. */
void isolated_look_at_crashes(void);

/* ---- isolated_source.c: operations of a source, for the kinds' tables ---- */

/* isolated_open - source_ops.open for a kind. at->fd together with a remote at->file: a local copy
 * of it. */
int isolated_open(const struct isolated_kind *kind, const struct source_at *at,
		  const struct source_options *opts, struct source **ret,
		  struct err *e) NZ_MUST_USE;
/* The others; contracts in translate/contract/source.h. isolated_read_chunk and isolated_read_vlen
 * call library->chunk and library->vlen in the worker (read_worker.c). -EIO: the library died or
 * did not reply, so nothing is known about the chunk. On failure the contents of a chunk's `out`
 * are undefined. */
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

/* isolated_child_start - start a child for a job of g. Returns 0 with *ret filled; -errno. Any
 * thread. */
int isolated_child_start(struct isolated *g, enum isolated_job_kind kind,
			 struct isolated_proc *ret, struct err *e) NZ_MUST_USE;
void isolated_child_end(struct isolated_proc *c);
/* isolated_shares - whether a process that opens other files may open g. Its sandbox stays that of
 * its first file: so they lie below one directory, external_root, and none needs plugins. */
bool isolated_shares(const struct isolated *g);
/* isolated_shared_fits - for worker_take: whether the process of w may open arg, a struct
 * isolated. */
bool isolated_shared_fits(const struct worker *w, const void *arg);
/* isolated_shared_start - let w, of g's pool, open g: its process, if that may and can, or a new
 * one. worker_call then returns the answer. */
int isolated_shared_start(struct isolated *g, struct worker *w, struct err *e) NZ_MUST_USE;
/* isolated_call - worker_call, which can be cancelled only while the child reads a remote file. If
 * the server could not read that file, fail with the server's error. *ret_slow: the child was late
 * because the remote bytes were. */
enum child_taken isolated_call(struct isolated_proc *p, struct worker_call *c, bool *ret_slow,
			       struct err *e);
/* isolated_run - the body of a child process; for isolated_kind.child.run. */
void isolated_run(const struct isolated_kind *kind, const struct child_self *self);

/* The two jobs of a child. The first returns after a success only. isolated_source.c,
 * read_worker.c. */
void isolated_open_job(struct isolated *g, int sock);
_Noreturn void isolated_read_job(struct isolated *g, int sock);

/* isolated_job_of - fill *ret with the data that another process needs to work on g. */
int isolated_job_of(const struct isolated *g, enum isolated_job_kind kind,
		    struct isolated_job *ret, struct err *e) NZ_MUST_USE;
/* isolated_of_job - in that process: make the source of a job, with a model to build or to use. fd
 * and region_fd are the process's own. *ret lives as long as the process. */
int isolated_of_job(const struct isolated_kind *kind, const struct isolated_job *job, int fd,
		    int region_fd, struct isolated **ret, struct err *e) NZ_MUST_USE;

#endif
