/* SPDX-License-Identifier: BSD-3-Clause */
/* fusefs.h - shared by the parts of fusefs: the mount of one view.
 *
 * Processes: the one that was started waits until the mount answers; a small supervisor (in the
 * foreground: the same process) stays, watches the server, and ends with it; the server reads the
 * source and answers the kernel; the mounter mounts for it, and unmounts when it ends or dies. */
#ifndef FUSEFS_APP_FUSEFS_H
#define FUSEFS_APP_FUSEFS_H

#include <fuse_lowlevel.h>
#include <pthread.h>

#include "fusefs/ops/epoch.h"
#include "fusefs/app/dataset_names.h"
#include "fusefs/app/codec_rules_int.h"
#include "mountcfg/options.h"
#include "translate/contract/view.h"

struct chunkio_shared;
struct fs_refs_table;
struct fs_rw;
struct fs_remote;
struct status;

/* view_request - which view of a source is to be opened, beside what cfg says. */
struct view_request {
	bool nc;            /* as one netCDF-4 file; else as a Zarr tree */
	const char *name;   /* of that file; borrowed for the view's life */
	uint64_t id_limit;  /* ids stay below it */
	const struct fs_rules *rules; /* the setup's */
	struct chunkio_shared *shared; /* the setup's */
	bool writable;      /* a writable view will stand on it */
	const char *root;   /* -o root: of a writable tree; NULL; borrowed for the view's life */
	uint32_t share;     /* so many views share the memory and the threads that cfg allows */
};

enum { FS_MIRROR_SHARE = 4 }; /* more datasets than that are seldom read at the same time */

/* app - what main wires together; constant while the program runs. */
struct app {
	const struct cfg *cfg;
	const struct fs_rules *rules; /* cfg's */
	struct chunkio_shared *shared; /* memory of all views; NULL: each its own */
	const struct source_ops *const *formats;
	size_t n_formats;
	const struct source_ops *zarr; /* the one whose counterpart is a netCDF-4 file */
	const struct source_ops *hdf5; /* the one whose files are netCDF-4 already, or like it */
	char file_name[NAME_BYTES];    /* of the virtual file of cfg's source */
	/* view_open - present a source as cfg and want say. Returns 0 with *ret new. */
	int (*view_open)(struct source *s, const struct cfg *cfg,
			 const struct view_request *want, struct view **ret, struct err *e);
	const struct fs_rw *rw; /* fusefs/write/writable.h */
	const struct fs_refs_table *refs; /* fusefs/cmd/refs.h */
	void (*versions)(struct buf *text); /* append the text of --version */
	const struct fs_remote *remote; /* fusefs/app/remote.h */
	/* forget - in a process that opens nothing: wipe the secrets of cfg. */
	void (*forget)(void);
	/* prepare - what must be done in the server before it has threads. NULL: nothing. */
	int (*prepare)(struct err *e);
};

/* fs_source_options - what cfg says about sources. */
void fs_source_options(const struct cfg *cfg, struct source_options *ret);

/* fs_open - source and view of a setup; a mirrored directory is a view without a source (NULL).
 * Both are the caller's: close the view, then the source. */
int fs_open(const struct app *setup, struct source **ret_source, struct view **ret_view,
	    struct err *e) NZ_MUST_USE;

/* fs_open_quietly - the same while the process has one thread: what libraries print is dropped,
 * unless the user asked for more words. */
int fs_open_quietly(const struct app *setup, struct source **ret_source, struct view **ret_view,
		    struct err *e) NZ_MUST_USE;

/* fs_open_again - the same when the source changed while it is served; not for a mirror, which
 * follows by itself. */
int fs_open_again(const struct app *setup, struct source **ret_source, struct view **ret_view,
		  struct err *e) NZ_MUST_USE;
/* fs_print_notes - what an epoch's source and view have to say goes to the log. */
void fs_print_notes(const struct epoch *ep);

/* reply_log - what the log has had once and need not have again. base/observe/log_limit_int.h
 * counts lines. */
struct reply_log {
	pthread_mutex_t lock;
	uint32_t n_once;      /* lock */
	uint64_t once[256];   /* lock: hashes of texts that are written once in a mount's life */
};

/* fs - one mount; the userdata of its session. */
struct fs {
	struct epochs *live;
	struct fuse_session *se;    /* set before requests */
	struct reply_log log;
	pthread_key_t buffer_key;   /* each thread's read buffer */
	bool no_open, no_opendir;   /* the kernel takes ENOSYS as "no need to ask" */
	bool no_xattr;              /* the same of extended attributes */
	bool follows;               /* the view's; set before requests */
	const char *path;           /* of the source, or its address; borrowed */
	bool remote;                /* it is an address; set before requests */
	uint32_t revalidate;       /* seconds until a remote source is asked whether it changed, 0:
	                             * never; set before requests */
	uint32_t max_read;          /* -o max_read=, 0: none; set before requests */
	bool ask_opendir;           /* it is to ask all the same; set before requests */
	bool writes;                /* the view has write; set before requests */
	struct status *status;      /* NULL: nobody can ask; set before requests */
	bool uncached;              /* large files bypass the page cache; set before requests */
};

/* fs_init - everything but live and se. fs_release takes what fs_init made. */
int fs_init(struct fs *fs, struct err *e) NZ_MUST_USE;
void fs_release(struct fs *fs);
/* fs_operations - the operations of a session with a struct fs as userdata. Called while there is
 * one thread. */
const struct fuse_lowlevel_ops *fs_operations(bool writes);

/* reply_errno - the errno (positive) that the kernel is given for a negative one of ours.
 * Programs take ENOENT, ENOTDIR and EISDIR for proven absence, so that these pass only when
 * may_be_absent: when a name was looked for. */
int reply_errno(int rc, bool may_be_absent);
/* reply_errno_write - the same for requests that change something: programs act on what their
 * system calls say, a full disk, a name that is there. */
int reply_errno_write(int rc, bool may_be_absent);
/* reply_log - one line for an error, unless it has no text: then the log has it already, or it is
 * an answer to the program and no fault. What is not supported is logged once: it will not be
 * supported at the next chunk. */
void reply_log(struct fs *fs, const struct err *e);
/* reply_fail - answer a request with an error and log it, unless it only says "no such name"
 * or "the source changed", which ops/epoch.c logs. */
void reply_fail(struct fs *fs, fuse_req_t req, int rc, bool may_be_absent,
		const struct err *e);
/* reply_fail_write - the same for requests that change something. What only says that a name is
 * there or is not is not logged either. */
void reply_fail_write(struct fs *fs, fuse_req_t req, int rc, bool may_be_absent,
		      const struct err *e);
/* reply_log_once - remember that a text was written that is written once, unless there is no room.
 * reply_log_done - whether it was. */
void reply_log_once(struct reply_log *log, const char *text);
bool reply_log_done(struct reply_log *log, const char *text);

/* fs_serve - the server process: open, mount, report, answer until unmounted.
 * report_fd  gets 's' when the mount is there, or 'f' and one line why it is not; then closed
 * mounter    the socket of fusefs/daemon/mounter.h; the process's
 * Returns the exit status. */
int fs_serve(const struct app *setup, int report_fd, int mounter);

/* fs_check_mountpoint - what can be said before anything is opened: the mountpoint, /dev/fuse,
 * fusermount3. A mountpoint that is missing is created: *ret_made says so, and who ends the mount
 * removes it. Returns 0 or a negative errno with the line for the user; nothing is left then. */
int fs_check_mountpoint(const struct cfg *cfg, bool *ret_made, struct err *e) NZ_MUST_USE;
/* fs_mount_id - id of the mount of ours on dir (resolved) when nothing else lies on top of it;
 * 0: there is none. Asks the kernel only, never the server, and sees a dead mount as well. */
uint64_t fs_mount_id(const char *dir);
/* fs_unescape - mountinfo writes blanks as \040 and the like; in place. */
void fs_unescape(char *s);
/* fs_is_dead - whether what is mounted on dir has no server any more. */
bool fs_is_dead(const char *dir);
/* fs_below - whether path is dir or lies below it; both are resolved. */
bool fs_below(const char *path, const char *dir);
/* fs_links_beside - whether links of a file may lead to files below its own directory: not where
 * other users, or programs elsewhere, read what is mounted. */
bool fs_links_beside(const struct cfg *cfg);

/* fs_has_option - whether the mount was given this option, a flag. */
bool fs_has_option(const struct cfg *cfg, const char *name);
/* fs_explain_mount - text: what libfuse and fusermount3 printed. Returns -EIO with the line for
 * the user. */
int fs_explain_mount(const struct cfg *cfg, const char *text, struct err *e);

/* fs_mount, fs_info - the two commands. They print and return the exit status. */
int fs_mount(const struct app *setup);
int fs_info(const struct app *setup);
/* fs_recover - `nczarrfs recover`: for cfg's source and more. Prints what was done; returns the
 * exit status. */
int fs_recover(const struct app *setup);
/* fs_filters - append the report of `nczarrfs filters`. */
void fs_filters(const struct cfg *cfg, struct buf *out);

/* fs_is_empty_dir - a directory without entries; what cannot be read is not taken for one. */
bool fs_is_empty_dir(const char *path);

/* run_in_child - run fn in a child, so that a crash of the HDF5 library or a hang of more
 * than `timeout` seconds (0: none) becomes one line. Returns the exit status. */
int run_in_child(const char *source, uint32_t timeout, int (*fn)(void *arg), void *arg);
/* run_in_child_until - the same for who runs several: *ret_interrupted: a signal was for us,
 * and no other is to be begun. */
int run_in_child_until(const char *source, uint32_t timeout, int (*fn)(void *arg), void *arg,
		       bool *ret_interrupted);

/* fs_inherited_note - first of all: what is open beside standard input, output and error is not for
 * programs that this one starts. fs_inherited_close - close it, in a process of the background that
 * has opened its source; not when cfg names a descriptor. */
void fs_inherited_note(void);
void fs_inherited_close(const struct cfg *cfg);

/* fs_null_stdio - standard input, output and error to /dev/null. */
void fs_null_stdio(void);

#endif
