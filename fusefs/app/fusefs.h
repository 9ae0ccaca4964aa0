/* SPDX-License-Identifier: BSD-3-Clause */
/* fusefs.h - shared by the parts of fusefs: the mount of one view.
 *
 * Processes: the command waits until the mount answers. A small supervisor (the command itself in
 * the foreground) watches the server and ends with it. The server reads the source and answers the
 * kernel. The mounter mounts for the server, and unmounts when the server ends or dies. */
#ifndef FUSEFS_APP_FUSEFS_H
#define FUSEFS_APP_FUSEFS_H

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <signal.h>

#include "fusefs/ops/epoch.h"
#include "fusefs/app/dataset_names.h"
#include "fusefs/app/codec_rules_int.h"
#include "mountcfg/options.h"
#include "translate/contract/view.h"

struct chunkio_shared;
struct rechunk_shared;
struct status;

/* view_request - the view of a source to open, in addition to cfg. */
struct view_request {
	bool nc;            /* true: one netCDF-4 file; false: a Zarr store */
	const char *name;   /* name of that file; borrowed for the view's life */
	uint64_t id_limit;  /* inode ids stay below this */
	const struct fs_rules *rules; /* the setup's */
	struct chunkio_shared *shared; /* the setup's */
	bool writable;      /* a writable view will use this one */
	/* -o root: of a writable Zarr store; NULL; borrowed for the view's life */
	const char *root;
	uint32_t share;     /* number of views that share cfg's memory and threads */
};

enum { FS_MIRROR_SHARE = 4 }; /* more datasets are rarely read at the same time */

/* app - the tables that main connects; constant while the program runs. */
struct app {
	const struct cfg *cfg;
	const struct fs_rules *rules; /* cfg's */
	struct chunkio_shared *shared; /* memory of all views; NULL: each has its own */
	struct rechunk_shared *rechunk; /* memory for assembled chunks; NULL: there are none */
	uint32_t decode_threads; /* -o decode_threads=, or its default */
	const struct source_ops *const *formats;
	size_t n_formats;
	const struct source_ops *zarr; /* sources whose converted view is a netCDF-4 file */
	const struct source_ops *hdf5; /* sources whose files are netCDF-4, HDF5 or similar */
	char file_name[NAME_BYTES];    /* name of the virtual file of cfg's source */
	/* view_open - present a source according to cfg and request. Returns 0 with *ret new
	 * (view_close); on error s is closed. */
	int (*view_open)(struct source *s, const struct cfg *cfg,
			 const struct view_request *want, struct view **ret, struct err *e);
	/* forget - wipe the secrets of cfg in a process that opens no source. */
	void (*forget)(void);
	/* prepare - must run in the server before it starts threads. NULL: nothing to do. */
	int (*prepare)(struct err *e);
};

/* app_prepare - call prepare, unless it was called in this process, and decode in other processes
 * from now on if cfg says so. */
int app_prepare(const struct app *setup, struct err *e) NZ_MUST_USE;

/* fs_source_options - the options of cfg that apply to sources. */
void fs_source_options(const struct cfg *cfg, struct source_options *ret);

/* fs_rechunk - with rules for chunks in cfg (-o rechunk=, the name of a mirror's view), replace a
 * source by the same in other chunks. opts: of the source. share: number of sources that share
 * cfg's threads. On error *s is closed. */
int fs_rechunk(const struct app *setup, const struct cfg *cfg,
	       const struct source_options *opts, uint32_t share,
	       struct source **s, struct err *e) NZ_MUST_USE;

/* fs_open - open the view of a setup, and its source; a mirrored directory is a view without one.
 * Returns 0 with *ret new (view_close). */
int fs_open(const struct app *setup, struct view **ret, struct err *e) NZ_MUST_USE;

/* fs_open_quietly - the same while the process has one thread: the standard error output of
 * libraries is dropped, unless the user asked for more verbosity. */
int fs_open_quietly(const struct app *setup, struct view **ret, struct err *e) NZ_MUST_USE;

/* fs_quiet - true if the standard error output of libraries is dropped while a source is opened. */
bool fs_quiet(const struct cfg *cfg);
/* fs_print_notes - log the notes of an epoch's source and view. */
void fs_print_notes(const struct epoch *ep);

/* reply_log - messages that are logged only once. base/observe/log_limit_int.h limits the rate. */
struct reply_log {
	pthread_mutex_t lock;
	uint32_t n_once;      /* lock */
	uint64_t once[256];   /* lock: hashes of messages that are logged once in a mount's life */
};

/* fs - one mount; the userdata of its session. */
struct fs {
	const struct app *setup;    /* borrowed */
	struct epochs *live;
	struct fuse_session *se;    /* set before requests */
	struct reply_log log;
	pthread_key_t buffer_key;   /* each thread's read buffer */
	bool no_open, no_opendir;   /* the kernel takes ENOSYS as "do not send this request" */
	bool no_xattr;              /* the same for extended attributes */
	bool follows;               /* the view follows changes; set before requests */
	const char *path;           /* path or address of the source; borrowed */
	char *folder;               /* of a pattern: the watched folder; otherwise NULL */
	bool remote;                /* path is an address; set before requests */
	bool cancels;               /* requests can be cancelled; set before requests */
	/* seconds between checks whether a remote source changed; 0: never; set before requests */
	uint32_t revalidate;
	uint32_t max_read;          /* -o max_read=, 0: none; set before requests */
	bool ask_opendir;           /* the kernel must send opendir; set before requests */
	bool writes;                /* the view has write; set before requests */
	struct status *status;      /* NULL: no status requests; set before requests */
	bool uncached;              /* large files bypass the page cache; set before requests */
};

/* fs_open_served - open the setup's source for a server: sets live, path, folder, remote and
 * follows. Call it while the process has one thread. */
int fs_open_served(struct fs *fs, const struct app *setup, struct err *e) NZ_MUST_USE;

/* fs_report - report to the process that waits for a mount: 's' and the name of the mounted
 * dataset, or 'f' and the error. */
void fs_report(int fd, char status, const char *text);
/* fs_end_signals - the signals that end a server: SIGTERM, SIGINT and SIGHUP. */
void fs_end_signals(sigset_t *set);

/* fs_init - initialise everything but live and se. fs_release frees everything but these, after
 * them. */
int fs_init(struct fs *fs, struct err *e) NZ_MUST_USE;
void fs_release(struct fs *fs);
/* fs_operations - the operations of a session with a struct fs as userdata. Call it while the
 * process has one thread. */
const struct fuse_lowlevel_ops *fs_operations(bool writes);

/* reply_errno - the positive errno for the kernel, from a negative one. Programs take ENOENT,
 * ENOTDIR and EISDIR as proof of absence; these three pass only if may_be_absent is true, which
 * callers set when a name was looked up. */
int reply_errno(int rc, bool may_be_absent);
/* reply_errno_write - the same for requests that change something: programs act on errors such as a
 * full disk or an existing name. */
int reply_errno_write(int rc, bool may_be_absent);
/* reply_log - log one line for an error. An error without text is not logged: the log has it
 * already, or it is a normal answer to the program. An unsupported feature is logged once, because
 * the next chunk will fail in the same way. */
void reply_log(struct fs *fs, const struct err *e);
/* reply_fail - answer a request with an error and log it, unless the error is "no such name" or
 * "the source changed", which ops/epoch.c logs. writes: the request changes something; the
 * existence of a name is not logged either. */
void reply_fail(struct fs *fs, fuse_req_t req, int rc, bool may_be_absent, bool writes,
		const struct err *e);
/* reply_log_once - record that a message which is logged once was logged, unless there is no room.
 * reply_log_done - true if it was recorded. */
void reply_log_once(struct reply_log *log, const char *text);
bool reply_log_done(struct reply_log *log, const char *text);

/* fs_serve - the server process: open, mount, report, answer until unmounted.
 * report_fd  gets 's' once mounted, or 'f' and one line with the error; then closed
 * mounter    the socket of fusefs/daemon/mounter.h; owned by the process
 * Returns the exit status. */
int fs_serve(const struct app *setup, int report_fd, int mounter);

/* fs_check_mountpoint - check the mountpoint, /dev/fuse and fusermount3 before anything is opened.
 * A missing mountpoint is created: *ret_made is true then, and the process that ends the mount
 * removes it. Returns 0 or a negative errno with a message for the user; nothing is left behind on
 * error. */
int fs_check_mountpoint(const struct cfg *cfg, bool *ret_made, struct err *e) NZ_MUST_USE;
/* fs_below - true if path is dir or lies below it; both are resolved. */
bool fs_below(const char *path, const char *dir);
/* fs_links_beside - true if links of a file may lead to files below its own directory: false if
 * other users or remote programs can read the mount. */
bool fs_links_beside(const struct cfg *cfg);

/* fs_has_option - true if the mount was given this flag option. */
bool fs_has_option(const struct cfg *cfg, const char *name);
/* fs_explain_mount - explain the output of libfuse and fusermount3 (text). Returns -EIO with a
 * message for the user. */
int fs_explain_mount(const struct cfg *cfg, const char *text, struct err *e);

/* fs_mount, fs_info - the two commands. They print and return the exit status. */
int fs_mount(const struct app *setup);
int fs_info(const struct app *setup);
/* fs_recover - `nczarrfs recover`, for cfg's source and further ones. Prints a report; returns the
 * exit status. */
int fs_recover(const struct app *setup);
/* fs_filters - append the report of `nczarrfs filters`. */
void fs_filters(const struct cfg *cfg, struct buf *out);

/* fs_is_empty_dir - true for a directory without entries; false if it cannot be read. */
bool fs_is_empty_dir(const char *path);

/* run_in_child - run fn in a child process, so that a crash of the HDF5 library or a hang of more
 * than `timeout` seconds (0: no limit) becomes one line. Returns the exit status. */
int run_in_child(const char *source, uint32_t timeout, int (*fn)(void *arg), void *arg);
/* run_in_child_until - the same for callers that run several: *ret_interrupted: this process got a
 * signal, and the caller must not start another child. */
int run_in_child_until(const char *source, uint32_t timeout, int (*fn)(void *arg), void *arg,
		       bool *ret_interrupted);

/* fs_inherited_note - call first: keep descriptors other than standard input, output and error from
 * programs that this one starts. fs_inherited_close - close them, in a background process that has
 * opened its source; not if cfg names a descriptor. */
void fs_inherited_note(void);
void fs_inherited_close(const struct cfg *cfg);

/* fs_null_stdio - standard input, output and error to /dev/null. */
void fs_null_stdio(void);

#endif
