/* isolated_source.h - sources whose library meets files of others only in processes of its own;
 * private to hdf5view.
 *
 * libhdf5 and libhdf4 crash and hang on damaged files. So a child (base/process/child.h) builds the
 * model in memory that it shares with the server, which looks at it once before it is believed
 * (isolated_source.c, verify.c), and a second one reads elements when somebody wants them
 * (read_worker.c): what it dies of costs the reader an error and the source a new child. Every
 * source has its own.
 *
 * A kind of guest says what its library does; everything else is the same for all. */
#ifndef HDF5VIEW_ISOLATE_ISOLATED_SOURCE_H
#define HDF5VIEW_ISOLATE_ISOLATED_SOURCE_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/process/child.h"
#include "hdf5view/isolate/blob_proxy.h"
#include "translate/contract/source.h"

#define GUEST_TRIES 3      /* chunks of an array that may kill a worker */
#define GUEST_REST_MS 60000 /* how long what killed a worker is left alone */
#define GUEST_MS 60000     /* how long a read may take by default */
#define GUEST_PATHS_MAX 300 /* files and directories that a child may read */
#define GUEST_SHORT 1      /* a child's answer: the same again, with job.plugins */
#define GUEST_AGAIN 2      /* memory was short for something: the same again, with `again` */
#define GUEST_UNLUCKY 88   /* its status: it crashed after something was short */

struct guest;
struct guest_kind;

enum guest_job_kind { GUEST_OPEN, GUEST_READ };

/* guest_job - plain data, sent to the process that forks. */
struct guest_job {
	enum guest_job_kind kind;
	void *at;                  /* where the region of the model is mapped, in every process */
	size_t size;               /* bytes of it */
	struct stat st;            /* of the source */
	uint64_t max_meta_bytes, cut_bytes, max_chunk_bytes, max_index_bytes;
	uint64_t memory, cpu_ms;   /* what it may have: struct sandbox_limits */
	bool plugins;              /* it needs to know what filters others wrote */
	bool again;                /* memory was short before, for something large */
	bool has_root, keep_going;
	bool named;                /* path is no path, but what messages say */
	bool remote;               /* GUEST_FD_SOURCE is a socket for far_client_new */
	char path[PATH_MAX], link_root[PATH_MAX];
};

/* The descriptors of a job, for guest_kind.child.n_fds. */
enum { GUEST_FD_SOURCE, GUEST_FD_REGION, GUEST_FDS };

/* guest_model - the head of a region; the arena follows it. */
struct guest_model {
	struct dataset ds;
	const void *own;           /* what the kind keeps besides; in the arena */
	size_t used;               /* bytes of the region that mean something */
};

/* ---- verify.c: what another process wrote is checked before it is used ---- */

struct guest_verify {
	const uint8_t *base;
	size_t size;
	const struct dataset *ds;
	uint64_t *left;            /* how much may still be looked at, GUEST_LOOKS at first */
	uint64_t max_chunk_bytes;  /* of a chunk that can be read */
};

/* GUEST_LOOKS - bytes of texts and parts of a model that are looked at, however often something is
 * pointed to: types can share fields in a way that there are 2^60 to follow. */
#define GUEST_LOOKS ((uint64_t)1 << 30)
/* guest_spend - false when more than that was looked at. */
bool guest_spend(const struct guest_verify *v, uint64_t n);
/* guest_in - n elements of `size` bytes at p are in the region, aligned. */
bool guest_in(const struct guest_verify *v, const void *p, uint64_t n, size_t size, size_t align);
/* GUEST_HAS - n elements behind a typed pointer; none need no memory. */
#define GUEST_HAS(v, p, n)                                                                       \
	((n) == 0 || guest_in(v, p, n, sizeof(*(p)), _Alignof(__typeof__(*(p)))))
/* guest_text - a text that ends inside the region. */
bool guest_text(const struct guest_verify *v, const char *s);
/* guest_flag - whether it is true or false: a byte that another process wrote may be anything, and
 * code that is compiled for two values does anything with it. */
bool guest_flag(const bool *b);

/* guest_verify - whether a region holds a model that can be used without looking at it again: every
 * pointer leads into it, every count and product is right, every text ends, and no chunk that can
 * be read has more than max_chunk_bytes. The process that wrote it may have been taken over.
 * Returns 0 or -EBADMSG. */
int guest_verify(const struct guest_kind *kind, const struct guest_model *m, size_t size,
		 uint64_t max_chunk_bytes, struct err *e) NZ_MUST_USE;

/* ---- a kind ---- */

struct guest_kind {
	bool links; /* its files can lead to others */
	/* of static lifetime. n_fds is GUEST_FDS, run calls guest_run. who: "the HDF5 library" */
	struct child_kind child;

	/* make - a new zeroed source of this kind with base.ops; NULL when memory is short. */
	struct guest *(*make)(void);
	/* release - in the server: all that is the kind's, and the memory that make gave. */
	void (*release)(struct guest *g);
	/* set_up - in the server before anything else, and in every child: path, blob, opts and
	 * base.ds.st are there. NULL: nothing to do. */
	int (*set_up)(struct guest *g, struct err *e);
	/* begin - in every child, before it knows the source. NULL: nothing. */
	void (*begin)(void);
	/* confine - the same: call sandbox_enter. paths: what the source needs, with room for
	 * GUEST_PATHS_MAX. NULL: sandbox_enter as it is. */
	int (*confine)(struct sandbox_path *paths, size_t n, const struct sandbox_limits *limits,
		       struct err *e);
	/* short_of - in a child that builds, when it has: whether it would make another model with
	 * job.plugins. needs - in the server, whether one that reads needs them. NULL: no. */
	bool (*short_of)(void);
	bool (*needs)(const struct guest *g);

	/* build - in a child: the library reads the file into g->base.ds, all in its arena.
	 * *ret_own, there as well: what else the source needs. */
	int (*build)(struct guest *g, const void **ret_own, struct err *e);
	/* sound - whether a model's own part can be followed; ds was checked before. */
	bool (*sound)(const struct guest_verify *v, const void *own);
	/* use - take over from a checked model, in the server and in children that read. */
	int (*use)(struct guest *g, const void *own, struct err *e);

	/* chunk, vlen - in a child: as source_read_chunk and source_read_vlen, whose callers have
	 * checked what they pass. vlen: NULL where no type has a variable length. */
	int (*chunk)(struct guest *g, uint32_t array, uint64_t linear, uint8_t *out, size_t len,
		     struct err *e);
	int (*vlen)(struct guest *g, uint32_t array, uint64_t linear, struct buf *out,
		    struct err *e);
};

/* ---- read_worker.c: the process that reads elements ---- */

/* guest_fatal - a chunk that killed a worker: for a while no other gets it. Not for ever, for what
 * libraries die of may have been no fault of the file. */
struct guest_fatal {
	uint32_t array;
	uint64_t linear;
	int64_t until;             /* of child_now */
};

/* guest_proc - a child, and what answers it when the file is remote. */
struct guest_proc {
	struct child_proc p;
	struct far_server *far;    /* NULL: the file is local */
};

/* guest_worker - the server's end. */
struct guest_worker {
	pthread_mutex_t lock;      /* one request at a time, and all below; before child.enter */
	struct guest_proc child;
	uint64_t served;           /* requests that this child answered */
	uint64_t timeout_ms;
	struct guest_fatal *fatal;
	size_t n_fatal, c_fatal;
};

/* guest - embedded first in the sources of all kinds. */
struct guest {
	struct source base;
	const struct guest_kind *kind;
	int fd;                    /* of the source, owned; -1: it is remote */
	struct blob *blob;         /* its bytes: &local, or remote and owned; in a child of the
	                            * latter far_client_new's */
	struct blob local;
	struct blob *origin;       /* fd is a copy of it; owned; NULL: fd is the file itself */
	char *path;                /* canonical, or as messages name what is remote; owned */
	struct source_options opts;
	char *link_root;           /* canonical, owned; NULL: no other file is touched */
	void *region;              /* the model's memory: shared with the child that made it, read
	                            * only once it was looked at */
	size_t region_size;
	int region_fd;             /* owned; for children that read elements */
	struct guest_worker worker;
	bool plugins;              /* job.plugins of its children */
	bool again;                /* job.again */
	_Atomic bool held;         /* source_hold: a commit of ours is changing the file */
};

static inline struct guest *guest_of(struct source *s)
{
	return CONTAINER_OF(s, struct guest, base);
}

static inline bool guest_remote(const struct guest *g)
{
	return g->blob != &g->local;
}

/* guest_worker_init - no process is started before the first read. timeout_ms: 0 for the
 * default. */
void guest_worker_init(struct guest_worker *w, uint64_t timeout_ms);
/* guest_worker_release - end the process. No other call may be running. */
void guest_worker_release(struct guest_worker *w);

/* guest_chunk, guest_vlen - kind->chunk and kind->vlen in another process. -EIO: the library died
 * or did not answer; nothing is known about the chunk then. On failure `out` of a chunk holds
 * anything. Any thread. */
int guest_chunk(struct guest *g, uint32_t array, uint64_t linear, uint8_t *out, size_t len,
		struct err *e) NZ_MUST_USE;
int guest_vlen(struct guest *g, uint32_t array, uint64_t linear, struct buf *out,
	       struct err *e) NZ_MUST_USE;

/* guest_lock - take a lock that others hold while they read the file: of a remote one they may wait
 * long. Returns 0; -EINTR stop_asked. */
int guest_lock(struct guest *g, pthread_mutex_t *lock, struct err *e) NZ_MUST_USE;

/* ---- resource_errors.c: in a child, what its library does not say ---- */

/* guest_look - after something that the library did: remember when memory, descriptors or bytes
 * failed beneath it. Resets errno. */
void guest_look(void);
/* guest_look_anew - forget that: another question. */
void guest_look_anew(void);
/* guest_few_files - this process may open no more files than its library needs: that it opens more
 * is the file's fault. */
void guest_few_files(void);
/* guest_was_short - the answer of a library that gave rc: rc itself, 0 or a failure, or where
 * something was short -ENOMEM, -EMFILE, -ENFILE or -EIO, recorded; GUEST_AGAIN: memory was, for
 * something large, and it is not asked again yet. */
int guest_was_short(int rc, bool again, struct err *e);
/* guest_look_at_crashes - from now on this process ends with GUEST_UNLUCKY when it crashes after
 * something was short; crashes that nothing explains are what they were. */
void guest_look_at_crashes(void);

/* ---- isolated_source.c: operations of a source, for the kinds' tables ---- */

/* guest_open - source_ops.open for a kind. at->fd with a remote at->file: a copy of that. */
int guest_open(const struct guest_kind *kind, const struct source_at *at,
	       const struct source_options *opts, struct source **ret, struct err *e) NZ_MUST_USE;
/* The others; contracts in translate/contract/source.h. */
void guest_close(struct source *s);
int guest_read_chunk(struct source *s, uint32_t array, uint64_t linear, uint8_t *out, size_t len,
		     struct err *e);
int guest_read_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
		    struct err *e);
int guest_fd(struct source *s, uint32_t blob);
int guest_read_stored(struct source *s, uint32_t array, uint64_t linear,
		      const struct chunk_ref *ref, uint64_t off, uint8_t *out, size_t len,
		      struct err *e);
int guest_check(struct source *s, struct err *e);
int guest_poll(struct source *s, struct err *e);
void guest_forget(struct source *s, uint32_t array, uint64_t linear);
void guest_hold(struct source *s, bool on);

/* ---- child_job.c ---- */

/* guest_child_start - a child that does a job for g. Returns 0 with *ret filled; -errno. Any
 * thread. */
int guest_child_start(struct guest *g, enum guest_job_kind kind, struct guest_proc *ret,
		      struct err *e) NZ_MUST_USE;
/* guest_child_end - child_end. */
int guest_child_end(struct guest_proc *c);
/* guest_await - wait until a child that reads a remote file says something, before `end`
 * (child_now); children that read local ones are not waited for here. *ret: CHILD_TAKEN, or
 * CHILD_LATE. Returns 0; -EINTR stop_asked. */
int guest_await(const struct guest_proc *c, int64_t end, enum child_taken *ret,
		struct err *e) NZ_MUST_USE;
/* guest_own_plugins - job.plugins of a child that this process forks itself; own: child_start's. */
bool guest_own_plugins(const void *own);
/* guest_run - the whole of a child's life; for guest_kind.child.run. */
void guest_run(const struct guest_kind *kind, const struct child_self *self);

/* What a child does; neither returns. isolated_source.c, read_worker.c. */
_Noreturn void guest_open_job(struct guest *g, int sock);
_Noreturn void guest_read_job(struct guest *g, int sock);

/* guest_job_of - what another process has to know to work on g. */
int guest_job_of(const struct guest *g, enum guest_job_kind kind, struct guest_job *ret,
		 struct err *e) NZ_MUST_USE;
/* guest_of_job - a source in that process, with a model to build or one to use. fd and region_fd
 * are its own. *ret lives as long as the process. */
int guest_of_job(const struct guest_kind *kind, const struct guest_job *job, int fd,
		 int region_fd, struct guest **ret, struct err *e) NZ_MUST_USE;

#endif
