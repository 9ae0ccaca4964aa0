/* SPDX-License-Identifier: BSD-3-Clause */
/* links.c - the only place that decides which other files may be opened.
 *
 * A file can name other files in three ways: external links, virtual datasets and external raw
 * data. These names are untrusted, so each is made canonical and must lie below the directory that
 * the user allowed. libhdf5 never follows an external link itself. It reads virtual datasets and
 * raw data itself, so their names are checked first, recursively for virtual datasets of virtual
 * datasets. */
#include "hdf5view/hdf5/library.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define VIRTUAL_DEPTH_MAX 4
#define PATTERN_FILES_MAX 1024

/* links_path_of - the canonical path of a file. */
static const char *links_path_of(const struct h5_source *s, uint32_t file)
{
	return file ? s->files[file - 1].path : s->g.path;
}

/* links_dir_of - write the directory of a path to out. Returns 0 or -ERANGE. */
static int links_dir_of(const char *path, char *out, size_t cap)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash && slash != path ? (size_t)(slash - path) : 1;

	if (n >= cap)
		return -ERANGE;
	memcpy(out, slash ? path : ".", n);
	out[n] = '\0';
	return 0;
}

int h5_file_dir(const struct h5_source *s, uint32_t file, char *out, size_t cap)
{
	return links_dir_of(links_path_of(s, file), out, cap);
}

static bool links_below(const char *root, const char *path)
{
	size_t n = strlen(root);

	if (strcmp(root, "/") == 0)
		return true;
	return strncmp(root, path, n) == 0 && path[n] == '/';
}

/* links_canonical - realpath of `name` as seen from directory dir. An absolute name that does
 * not exist is looked for in dir by its last component, as libhdf5 does. New; NULL with errno. */
static char *links_canonical(const char *dir, const char *name)
{
	auto_free char *joined = NULL;
	const char *last = strrchr(name, '/');
	char *found = name[0] == '/' ? realpath(name, NULL) : NULL;

	if (found || (name[0] == '/' && errno != ENOENT))
		return found;
	if (name[0] == '/')
		name = last + 1;
	if (!name[0] || asprintf(&joined, "%s/%s", dir, name) < 0) {
		joined = NULL;
		errno = ENOENT;
		return NULL;
	}
	return realpath(joined, NULL);
}

/* links_allowed - find a regular file that may be read. *ret: its canonical path, new. */
static int links_allowed(const struct h5_source *s, const char *dir, const char *name,
			 char **ret, struct stat *st, struct err *e)
{
	auto_free char *path = NULL;

	if (isolated_remote(&s->g))
		return err_set(e, -EACCES,
			       "it refers to the file '%.200s', and a remote file cannot refer "
			       "to other files",
			       name);
	if (!s->g.external_root)
		return err_set(e, -EACCES,
			       "it refers to the file '%.200s', and other files are not read: "
			       "-o external_root=DIR allows files below DIR",
			       name);
	path = links_canonical(dir, name);
	if (!path || stat(path, st) < 0)
		return err_sys(e, errno, "it refers to the file '%.200s'", name);
	if (!links_below(s->g.external_root, path))
		return err_set(
			e, -EACCES,
			"it refers to the file '%.200s', which is not below '%.100s' (-o "
			"external_root=DIR allows files below DIR)",
			name, s->g.external_root);
	if (!S_ISREG(st->st_mode))
		return err_set(e, -EACCES, "it refers to '%.200s', which is not a regular file",
			       name);
	*ret = steal(&path);
	return 0;
}

hid_t h5_file_id(const struct h5_build *b, uint32_t n)
{
	return n ? b->src->files[n - 1].id : b->file;
}

int h5_link_file(struct h5_build *b, uint32_t from, const char *name, uint32_t *ret,
		 struct err *e)
{
	struct h5_source *s = b->src;
	struct h5_linked *f;
	char dir[PATH_MAX];
	auto_free char *path = NULL;
	struct stat st = {0};
	int rc;

	if (h5_file_dir(s, from, dir, sizeof(dir)) < 0)
		return err_set(e, -EACCES, "its directory's name is too long");
	rc = links_allowed(s, dir, name, &path, &st, e);
	if (rc < 0)
		return rc;
	if (st.st_dev == s->g.base.ds.st.st_dev && st.st_ino == s->g.base.ds.st.st_ino) {
		*ret = 0;
		return 0;
	}
	for (uint32_t i = 0; i < s->n_files; i++) {
		if (s->files[i].dev == st.st_dev && s->files[i].ino == st.st_ino) {
			*ret = i + 1;
			return 0;
		}
	}
	if (s->n_files == HDF5_FILES_MAX)
		return err_set(e, -EACCES, "it refers to more than %d other files",
			       HDF5_FILES_MAX);
	if (grow_array(&s->files, &s->c_files, (size_t)s->n_files + 1, sizeof(*f)) < 0)
		return err_nomem(e);
	f = &s->files[s->n_files];
	*f = (struct h5_linked){.dev = st.st_dev, .ino = st.st_ino};
	f->path = arena_strdup(b->arena, path);
	if (!f->path)
		return h5_full(b, e);
	rc = h5_open_file(s, s->n_files + 1, true, &f->id, e);
	if (rc < 0)
		return rc;
	*ret = ++s->n_files;
	return 0;
}

/* links_check - the arguments of a check of one dataset's sources. */
struct links_check {
	const struct h5_source *s;
	hid_t lapl;
	const hsize_t *start, *count; /* at depth 0: the region to check; NULL: all */
};

static int storage_ok(const struct links_check *c, const char *path, hid_t file, hid_t dcpl,
		      unsigned depth, struct err *e);

/* external_ok - check the files of external raw data. */
static int external_ok(const struct h5_source *s, const char *dir, hid_t dcpl, unsigned depth,
		       struct err *e)
{
	int n = H5Pget_external_count(dcpl);

	if (n > 0 && depth)
		return err_set(e, -EACCES,
			       "external raw data behind a virtual dataset is not "
			       "supported");
	if (n > 0 && getenv("HDF5_EXTFILE_PREFIX"))
		return err_set(e, -EACCES,
			       "external raw data is not read while "
			       "HDF5_EXTFILE_PREFIX is set");
	for (unsigned i = 0; n > 0 && i < (unsigned)n; i++) {
		char name[PATH_MAX] = "";
		auto_free char *path = NULL;
		struct stat st;
		off_t off;
		hsize_t size;

		if (H5Pget_external(dcpl, i, sizeof(name) - 1, name, &off, &size) < 0)
			return h5_error(e, -EBADMSG, "its external files cannot be read");
		if (links_allowed(s, dir, name, &path, &st, e) < 0)
			return -EACCES;
		/* a missing file is not searched for elsewhere */
		if (name[0] == '/' &&
		    (!links_below(s->g.external_root, name) || access(name, F_OK) < 0))
			return err_set(e, -EACCES,
				       "it refers to the file '%.200s', which is not below the "
				       "external_root",
				       name);
	}
	return 0;
}

/* source_dataset_ok - check dataset `dset` of an open file. */
static int source_dataset_ok(const struct links_check *c, const char *path, hid_t file,
			     const char *dset, unsigned depth, struct err *e)
{
	auto_hid hid_t id = H5Oopen(file, dset, c->lapl);
	auto_hid hid_t dcpl = -1;

	if (id < 0 || H5Iget_type(id) != H5I_DATASET)
		return err_set(e, -EACCES, "its source dataset '%.200s' cannot be opened",
			       dset);
	dcpl = H5Dget_create_plist(id);
	if (dcpl < 0)
		return h5_error(e, -EACCES, "its source dataset cannot be read");
	return storage_ok(c, path, file, dcpl, depth + 1, e);
}

/* source_file_ok - check dataset `dset` of another file. *ret_absent: the file is missing; NULL:
 * that is an error. */
static int source_file_ok(const struct links_check *c, const char *dir, const char *name,
			  const char *dset, unsigned depth, bool *ret_absent, struct err *e)
{
	auto_free char *other = NULL;
	auto_hid hid_t fapl = -1;
	auto_hid hid_t id = -1;
	struct err why = ERR_INIT;
	struct stat st;
	int rc = links_allowed(c->s, dir, name, &other, &st, &why);

	if (rc == -ENOENT && ret_absent) {
		*ret_absent = true;
		return 0;
	}
	if (rc < 0)
		return err_set(e, -EACCES, "%s", why.msg);
	fapl = h5_fapl(true);
	id = fapl < 0 ? -1 : H5Fopen(other, H5F_ACC_RDONLY, fapl);
	if (id < 0)
		return h5_error(e, -EACCES, "its source file cannot be opened");
	return source_dataset_ok(c, other, id, dset, depth, e);
}

/* links_expand - a pattern as libhdf5 reads it: %b is the number of a block, %% is '%'.
 * Returns false for anything else, and when it is too long. */
static bool links_expand(const char *pattern, uint64_t block, char out[PATH_MAX])
{
	size_t n = 0;

	for (const char *p = pattern; *p; p++) {
		int put;

		if (*p != '%')
			put = snprintf(out + n, PATH_MAX - n, "%c", *p);
		else if (*++p == 'b')
			put = snprintf(out + n, PATH_MAX - n, "%" PRIu64, block);
		else if (*p == '%')
			put = snprintf(out + n, PATH_MAX - n, "%%");
		else
			return false;
		if (put < 0 || (size_t)put >= PATH_MAX - n)
			return false;
		n += (size_t)put;
	}
	out[n] = '\0';
	return true;
}

/* links_blocks_of - numbers of the blocks of a mapping that the region needs, as far as that
 * is known. */
static void links_blocks_of(const struct links_check *c, hid_t dcpl, size_t i, unsigned depth,
			    uint64_t *first, uint64_t *last)
{
	auto_hid hid_t space = H5Pget_virtual_vspace(dcpl, i);
	hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK],
		block[H5S_MAX_RANK];
	int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);

	*first = 0;
	*last = UINT64_MAX;
	if (depth || !c->start || rank < 0 ||
	    H5Sget_regular_hyperslab(space, start, stride, count, block) < 0)
		return;
	for (int d = 0; d < rank; d++) {
		if (count[d] != H5S_UNLIMITED || stride[d] == 0)
			continue;
		*first = c->start[d] > start[d] ? (c->start[d] - start[d]) / stride[d] : 0;
		*last = c->start[d] + (c->count[d] - 1);
		*last = *last > start[d] ? (*last - start[d]) / stride[d] : 0;
	}
}

/* pattern_ok - a virtual dataset's file name with a block number in it. libhdf5 takes one file
 * after the other until one is missing; each is looked at like one that is named in full. It looks
 * for a missing one in the working directory as well, which is nowhere that a file may lead to. */
static int pattern_ok(const struct links_check *c, const char *dir, const char *pattern,
		      const char *dset, hid_t dcpl, size_t i, unsigned depth, struct err *e)
{
	char name[PATH_MAX];
	uint64_t n, last;
	bool absent = false;
	int rc = 0;

	links_blocks_of(c, dcpl, i, depth, &n, &last);
	for (uint64_t k = 0; rc == 0 && !absent && n <= last; k++, n++) {
		if (k == PATTERN_FILES_MAX)
			return err_set(e, -EACCES, "it refers to more than %d files '%.200s'",
				       PATTERN_FILES_MAX, pattern);
		if (!links_expand(pattern, n, name))
			return err_set(e, -EACCES,
				       "it refers to files '%.200s', whose names are not known",
				       pattern);
		rc = source_file_ok(c, dir, name, dset, depth, &absent, e);
		if (absent &&
		    (access(name, F_OK) == 0 ||
		     access(strrchr(name, '/') ? strrchr(name, '/') + 1 : name, F_OK) == 0))
			return err_set(e, -EACCES,
				       "it refers to the file '%.200s', which is not below the "
				       "external_root but in the working directory",
				       name);
	}
	return rc;
}

static int virtual_one(const struct links_check *c, const char *dir, const char *path,
		       hid_t file, hid_t dcpl, size_t i, unsigned depth, struct err *e)
{
	char name[PATH_MAX] = "", dset[PATH_MAX] = "";

	if (H5Pget_virtual_filename(dcpl, i, name, sizeof(name) - 1) < 0 ||
	    H5Pget_virtual_dsetname(dcpl, i, dset, sizeof(dset) - 1) < 0)
		return h5_error(e, -EACCES, "its sources cannot be read");
	if (strchr(dset, '%'))
		return err_set(e, -EACCES,
			       "patterns in names of source datasets, such as '%.200s', are "
			       "not supported",
			       dset);
	if (strcmp(name, ".") == 0)
		return source_dataset_ok(c, path, file, dset, depth, e);
	if (getenv("HDF5_VDS_PREFIX"))
		return err_set(e, -EACCES,
			       "virtual datasets are not read while HDF5_VDS_PREFIX "
			       "is set");
	if (strchr(name, '%'))
		return pattern_ok(c, dir, name, dset, dcpl, i, depth, e);
	return source_file_ok(c, dir, name, dset, depth, NULL, e);
}

/* links_wanted - whether mapping i has elements in the region; true if that is unknown. */
static bool links_wanted(const struct links_check *c, hid_t dcpl, size_t i)
{
	auto_hid hid_t space = H5Pget_virtual_vspace(dcpl, i);
	hsize_t lo[H5S_MAX_RANK], hi[H5S_MAX_RANK];
	int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);

	if (rank < 0 || H5Sget_select_bounds(space, lo, hi) < 0)
		return true;
	for (int d = 0; d < rank; d++)
		if (hi[d] < c->start[d] ||
		    (lo[d] >= c->start[d] && lo[d] - c->start[d] >= c->count[d]))
			return false;
	return true;
}

static int storage_ok(const struct links_check *c, const char *path, hid_t file, hid_t dcpl,
		      unsigned depth, struct err *e)
{
	char dir[PATH_MAX];
	size_t n = 0;
	int rc;

	if (links_dir_of(path, dir, sizeof(dir)) < 0)
		return err_set(e, -EACCES, "its directory's name is too long");
	rc = external_ok(c->s, dir, dcpl, depth, e);
	if (rc < 0 || H5Pget_layout(dcpl) != H5D_VIRTUAL)
		return rc;
	if (depth >= VIRTUAL_DEPTH_MAX)
		return err_set(e, -EACCES, "virtual datasets are nested too deeply");
	if (H5Pget_virtual_count(dcpl, &n) < 0)
		return h5_error(e, -EACCES, "its sources cannot be read");
	for (size_t i = 0; i < n && rc == 0; i++)
		if (depth || !c->start || links_wanted(c, dcpl, i))
			rc = virtual_one(c, dir, path, file, dcpl, i, depth, e);
	return rc;
}

int h5_storage_ok(struct h5_build *b, uint32_t file, hid_t dcpl, struct err *e)
{
	const struct h5_source *s = b->src;
	struct links_check c = {.s = s, .lapl = b->lapl};

	return storage_ok(&c, links_path_of(s, file), h5_file_id(b, file), dcpl, 0, e);
}

int h5_sources_ok(struct h5_source *s, uint32_t file, hid_t set, const hsize_t *start,
		  const hsize_t *count, struct err *e)
{
	auto_hid hid_t lapl = h5_lapl();
	auto_hid hid_t dcpl = H5Dget_create_plist(set);
	struct links_check c = {.s = s, .lapl = lapl, .start = start, .count = count};

	if (lapl < 0 || dcpl < 0)
		return h5_error(e, -EBADMSG, "its sources cannot be read");
	/* the library opens sources with its own idea of locking, and takes a file for missing
	 * that is open in another way */
	for (uint32_t i = 0; i < s->n_files; i++) {
		if (i + 1 == file)
			continue;
		h5_id_close(&s->files[i].id);
		s->files[i].id = 0;
	}
	return storage_ok(&c, links_path_of(s, file), file ? s->files[file - 1].id : s->file,
			  dcpl, 0, e);
}
