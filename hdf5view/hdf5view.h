/* SPDX-License-Identifier: BSD-3-Clause */
/* hdf5view.h - everything of the netCDF/HDF5 family that the program wires together. */
#ifndef HDF5VIEW_HDF5VIEW_H
#define HDF5VIEW_HDF5VIEW_H

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
	const char *name;         /* of the one file, "store.nc"; borrowed for the view's life */
	struct plan_policy policy;
	struct chunkio_options io;
	uint64_t max_image_bytes; /* most memory for structure and texts of the file */
	uint64_t max_index_bytes; /* most memory for the sizes of its chunks */
	uint64_t build_timeout_ms; /* for the structure, in libhdf5; 0: no limit */
	bool keep_going;          /* arrays that cannot be shown are left out, with a note */
};

/* nc_view_open - present a source as one virtual netCDF-4 file in the root directory. The source
 * is borrowed and outlives the view. Nothing is read: the file is laid out at the first look at
 * it (its size says where everything is), and again never. Ids: VIEW_ROOT and 2.
 * Returns 0 with *ret new (view->ops->close). docs/dev/reading/virtual-file.md. */
int nc_view_open(struct source *s, const struct nc_view_options *opts, struct view **ret,
		 struct err *e) NZ_MUST_USE;

/* nc_view_array, nc_view_group, nc_view_dim - which array, group or dimension of the source the
 * netCDF path "/g/name" in a view by nc_view_open means; DS_NONE: none. v: the view, as sink_names
 * wants it. */
uint32_t nc_view_array(void *v, const char *path);
uint32_t nc_view_group(void *v, const char *path);
uint32_t nc_view_dim(void *v, const char *path);

/* ---- writing the virtual file ---- */

/* nc_rw_open - the virtual file of grounds' view (nc_view_open), writable: what is written lands in
 * a copy of the pages that are touched; when a descriptor that wrote is closed, or synced, the file
 * is committed. Other files can be made beside it: they are scratch files, as editors and NCO make
 * them, and become the dataset when they are renamed to its name. grounds is taken on success.
 * What a mount before this one could not commit is tried again.
 * Returns 0 with *ret new: a view with `write`, which follows. */
int nc_rw_open(struct snapshots *g, const struct file_rw_options *opts, struct view **ret,
	       struct err *e) NZ_MUST_USE;

/* ---- writing netCDF-4 files ---- */

/* hdf5_sink_open - path: a netCDF-4 or HDF5 file. real: the same file, opened as a source. dir_fd:
 * of the state directory, for the journal. Both are borrowed until close. libhdf5 runs in this
 * process: call it in one of its own.
 * Returns 0 with *ret new; -EAGAIN another program has the file open and locked; -ESTALE it is not
 * the file that real is. */
int hdf5_sink_open(const char *path, struct source *real, int dir_fd, struct sink **ret,
		   struct err *e) NZ_MUST_USE;

/* hdf5_sink_holds - whether netCDF-4 can hold every group, array and attribute of a dataset. Asks
 * no library. Returns 0; -EOPNOTSUPP, -EINVAL (names), -ERANGE with the first that it cannot. */
int hdf5_sink_holds(const struct dataset *ds, struct err *e) NZ_MUST_USE;

/* hdf5_create - a new, empty netCDF-4 file as netCDF-C makes it; libhdf5 makes its bytes in a
 * process of its own, within timeout_ms (0: no limit). On failure there is no file. Returns 0;
 * -EEXIST; -ENOMEM; -EIO the library failed. */
int hdf5_create(const char *path, uint64_t timeout_ms, struct err *e) NZ_MUST_USE;

/* hdf5_journal_state - what the journal in a state directory says about the file at path. */
enum hdf5_journal_state {
	HDF5_JOURNAL_NONE,    /* nothing: the file is whole */
	HDF5_JOURNAL_ABANDON, /* a commit had begun: the file has bytes behind its end to be cut */
	HDF5_JOURNAL_REDO,    /* a commit was made and has to be written to the file */
	HDF5_JOURNAL_FOREIGN, /* of another file, or the file was changed since: nothing is done */
};
int hdf5_journal_status(const char *path, int dir_fd, enum hdf5_journal_state *ret,
			struct err *e) NZ_MUST_USE;
/* hdf5_journal_recover - do what look says; may be interrupted at any point and called again. Needs
 * write permission for ABANDON and REDO. */
int hdf5_journal_recover(const char *path, int dir_fd, struct err *e) NZ_MUST_USE;

/* hdf5_prepare - start the process that later processes for libhdf5 are forked from, while this
 * one has a single thread and holds no lock. Without it they are forked from the caller, which
 * is right for programs with one thread only. Call it at most once. Returns 0 or -errno. */
int hdf5_prepare(struct err *e) NZ_MUST_USE;

/* hdf5_version - version of the HDF5 library in use, into text. */
void hdf5_version(char *text, size_t cap);

/* hdf4_version - the same of libhdf4; "" where it was built without. */
void hdf4_version(char *text, size_t cap);

#endif
