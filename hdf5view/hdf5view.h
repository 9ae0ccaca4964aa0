/* SPDX-License-Identifier: BSD-3-Clause */
/* hdf5view.h - the public interface of the netCDF and HDF5 family: sources, the virtual netCDF-4
 * file, its writable form, the netCDF-4 sink, and the virtual classic file. */
#ifndef HDF5VIEW_HDF5VIEW_H
#define HDF5VIEW_HDF5VIEW_H

#include "hdf5view/virtual_classic/virtual_classic.h"
#include "translate/chunkio/chunkio.h"
#include "translate/contract/file_commit.h"
#include "translate/stage/snapshot.h"
#include "translate/contract/sink.h"

/* hdf5_source_ops - netCDF-4 and plain HDF5 files as a source. libhdf5 reads names, types,
 * attributes and filters once, then its file is closed so that its lock does not block writers;
 * chunk indexes are read by format/hdf5_format.h on first use. */
extern const struct source_ops hdf5_source_ops;

/* cdf_source_ops - classic netCDF files (CDF-1, CDF-2, CDF-5) as a source. Own parser; chunks are
 * byte ranges of the file. docs/dev/reading/classic.md. */
extern const struct source_ops cdf_source_ops;

/* hdf4_source_ops - Scientific Data Sets of HDF4 files as a source, through libhdf4 in processes of
 * its own. Only where NCZARRFS_HDF4 is defined. docs/dev/reading/hdf4.md. */
extern const struct source_ops hdf4_source_ops;

struct nc_view_options {
	const char *name;         /* name of the file, "store.nc"; borrowed for the view's life */
	struct plan_policy policy;
	struct chunkio_options io;
	uint64_t max_image_bytes; /* memory limit of the file's structure and strings */
	uint64_t max_index_bytes; /* memory limit of the table of chunk sizes */
	uint64_t build_timeout_ms; /* for building the structure; 0: no limit */
	bool keep_going;          /* leave out arrays that cannot be shown, with a note */
	bool root_only;           /* only the root group is shown: no notes about others */
};

/* nc_view_open - present a source as one virtual netCDF-4 file in the root directory. The source
 * is borrowed and outlives the view. Nothing is read yet: the file is laid out once, at its first
 * use (even its size depends on the layout). Ids: VIEW_ROOT for the directory, 2 for the file.
 * Returns 0 with *ret new (view->ops->close). docs/dev/reading/virtual-file.md. */
int nc_view_open(struct source *s, const struct nc_view_options *opts, struct view **ret,
		 struct err *e) NZ_MUST_USE;

/* nc_view_array, nc_view_group, nc_view_dim - find the source's array, group or dimension that has
 * the netCDF path "/g/name" in a view of nc_view_open. v: the view, as sink_names passes it.
 * Returns its ordinal, or DS_NONE. */
uint32_t nc_view_array(void *v, const char *path);
uint32_t nc_view_group(void *v, const char *path);
uint32_t nc_view_dim(void *v, const char *path);

/* ---- writing the virtual file ---- */

/* nc_rw_open - open the virtual file of g's view (nc_view_open) for writing. Written pages land in
 * an overlay; the file is committed when a descriptor that wrote is closed or synced. Programs can
 * create scratch files next to it, as editors and NCO do; a scratch file becomes the dataset when
 * it is renamed to the file's name. Commits that an earlier mount could not make are retried. g is
 * taken on success.
 * Returns 0 with *ret new: a view with `write` that follows changes of the dataset. */
int nc_rw_open(struct snapshots *g, const struct file_rw_options *opts, struct view **ret,
	       struct err *e) NZ_MUST_USE;

/* ---- writing netCDF-4 files ---- */

/* hdf5_sink_open - open a netCDF-4 or HDF5 file for changes in place. path: the file. real: the
 * same file, opened as a source. dir_fd: the state directory, for the journal. real and dir_fd are
 * borrowed until close. libhdf5 runs in the calling process, so call it in a process of its own.
 * Returns 0 with *ret new; -EAGAIN another program has the file open and locked; -ESTALE path is
 * not the file that real was opened from. */
int hdf5_sink_open(const char *path, struct source *real, int dir_fd, struct sink **ret,
		   struct err *e) NZ_MUST_USE;

/* hdf5_sink_holds - check that netCDF-4 can represent every group, array and attribute of a
 * dataset. Calls no library. Returns 0; -EOPNOTSUPP, -EINVAL (names) or -ERANGE, with a message
 * that names the first object that it cannot represent. */
int hdf5_sink_holds(const struct dataset *ds, struct err *e) NZ_MUST_USE;

/* hdf5_create - create an empty netCDF-4 file with the bytes that netCDF-C writes. libhdf5 makes
 * them in a process of its own within timeout_ms (0: no limit). On failure no file is left.
 * Returns 0; -EEXIST; -ENOMEM; -EIO the library failed. */
int hdf5_create(const char *path, uint64_t timeout_ms, struct err *e) NZ_MUST_USE;

/* hdf5_journal_state - the state of a file according to the journal in a state directory;
 * hdf5_journal_status reports it in *ret for the file at path, and changes nothing. */
enum hdf5_journal_state {
	HDF5_JOURNAL_NONE,    /* no transaction: the file is complete */
	HDF5_JOURNAL_ABANDON, /* no commit record: cut off the bytes after the old end */
	HDF5_JOURNAL_REDO,    /* a commit record: copy the logged pages to the file */
	HDF5_JOURNAL_FOREIGN, /* another file's, or the file changed since: do nothing */
};
int hdf5_journal_status(const char *path, int dir_fd, enum hdf5_journal_state *ret,
			struct err *e) NZ_MUST_USE;
/* hdf5_journal_recover - carry out the action that hdf5_journal_status reports. It can be
 * interrupted at any point and called again. ABANDON and REDO need write permission. */
int hdf5_journal_recover(const char *path, int dir_fd, struct err *e) NZ_MUST_USE;

/* hdf5_prepare - start the process that later forks the library's processes. Call it at most once,
 * while this process has a single thread and holds no lock. Without it, library processes are
 * forked from the caller, which is safe only for programs with one thread. Returns 0 or -errno. */
int hdf5_prepare(struct err *e) NZ_MUST_USE;

/* hdf5_version - write the version of the HDF5 library in use to text, cap bytes at most. */
void hdf5_version(char *text, size_t cap);

/* hdf4_version - the same for libhdf4; "" in a build without it. */
void hdf4_version(char *text, size_t cap);

#endif
