/* SPDX-License-Identifier: BSD-3-Clause */
/* fingerprint.c - a number for the state of a source. */
#include "fusefs/app/fingerprint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os/io.h"
#include "fusefs/app/remote.h"

#define DEPTH_MAX 64 /* levels of nested directories */

uint64_t fingerprint_mix(uint64_t h, uint64_t v)
{
	/* the finaliser of splitmix64 (Steele, Lea, Flood 2014), over both */
	h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
	h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
	h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
	return h ^ (h >> 31);
}

static uint64_t mix_text(uint64_t h, const char *text)
{
	for (; text && *text; text++)
		h = fingerprint_mix(h, (unsigned char)*text);
	return fingerprint_mix(h, 256);
}

static uint64_t mix_stat(uint64_t h, const struct stat *st)
{
	h = fingerprint_mix(h, (uint64_t)st->st_dev);
	h = fingerprint_mix(h, (uint64_t)st->st_ino);
	h = fingerprint_mix(h, (uint64_t)st->st_size);
	h = fingerprint_mix(h, (uint64_t)st->st_mtim.tv_sec);
	h = fingerprint_mix(h, (uint64_t)st->st_mtim.tv_nsec);
	h = fingerprint_mix(h, (uint64_t)st->st_ctim.tv_sec);
	return fingerprint_mix(h, (uint64_t)st->st_ctim.tv_nsec);
}

static int fingerprint_cannot(const struct cfg *cfg, struct err *e)
{
	return err_set(e, -EOPNOTSUPP,
		       "'%s': changes to it cannot be detected, so this cannot be resumed",
		       cfg->shown);
}

/* ---- a directory ---- */

struct fingerprint_walk {
	const struct cfg *cfg;
	uint64_t sum; /* a sum, because the order of a listing has no meaning */
};

static int fingerprint_walk(struct fingerprint_walk *w, int fd, uint64_t above, int depth,
			    struct err *e);

static int fingerprint_entry(struct fingerprint_walk *w, int dir, const char *name,
			     uint64_t above, int depth, struct err *e)
{
	uint64_t h = mix_text(above, name);
	struct stat st;
	int fd;

	if (fnmatch("refs.*.parq", name, 0) == 0)
		return fingerprint_cannot(w->cfg, e);
	if (fstatat(dir, name, &st, 0) < 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "'%.200s'", name);
	w->sum += mix_stat(h, &st);
	if (!S_ISDIR(st.st_mode))
		return 0;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, errno, "'%.200s'", name)
		      : fingerprint_walk(w, fd, h, depth + 1, e);
}

/* fingerprint_walk - add everything below fd; closes fd. */
static int fingerprint_walk(struct fingerprint_walk *w, int fd, uint64_t above, int depth,
			    struct err *e)
{
	DIR *d = depth > DEPTH_MAX ? NULL : fdopendir(fd);
	const struct dirent *x;
	int rc = 0;

	if (!d) {
		(void)close(fd);
		return depth > DEPTH_MAX ? err_set(e, -ELOOP, "directories are nested too deeply")
					 : err_sys(e, errno, "a directory");
	}
	while (rc == 0 && (errno = 0, x = readdir(d)))
		if (strcmp(x->d_name, ".") != 0 && strcmp(x->d_name, "..") != 0)
			rc = fingerprint_entry(w, dirfd(d), x->d_name, above, depth, e);
	if (rc == 0 && errno)
		rc = err_sys(e, errno, "a directory");
	(void)closedir(d);
	return rc;
}

/* is_archive - true if a local Zarr source is a zip archive or a file of references. */
static bool is_archive(const char *path)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char head[2];

	return fd >= 0 && io_pread(fd, head, 2, 0, NULL) == 0 && memcmp(head, "PK", 2) == 0;
}

static int fingerprint_local(const struct app *setup, struct source *s, uint64_t *h,
			     struct err *e)
{
	const struct cfg *cfg = setup->cfg;
	struct fingerprint_walk w = {.cfg = cfg};
	struct stat st;
	int fd, rc;

	if (stat(cfg->source, &st) < 0)
		return err_sys(e, errno, "'%s'", cfg->shown);
	*h = mix_stat(*h, &st);
	if (!S_ISDIR(st.st_mode))
		return s->ops == setup->zarr && !is_archive(cfg->source)
			       ? fingerprint_cannot(cfg, e)
			       : 0;
	fd = open(cfg->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "'%s'", cfg->shown);
	rc = fingerprint_walk(&w, fd, 0, 0, e);
	*h = fingerprint_mix(*h, w.sum);
	return rc;
}

/* ---- remote sources ---- */

static bool add_object(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	uint64_t *sum = arg;

	if (!is_dir && st)
		*sum += fingerprint_mix(fingerprint_mix(mix_text(0, name), st->version),
					st->size);
	return true;
}

static int remote_tree(const struct app *setup, uint64_t *h, struct err *e)
{
	struct store *store;
	uint64_t sum = 0;
	int rc = fs_store(setup, setup->cfg->source, &store, e);

	if (rc < 0)
		return rc;
	rc = store_list_deep(store, "", add_object, &sum, e);
	store_close(store);
	*h = fingerprint_mix(*h, sum);
	return rc == -EOPNOTSUPP ? fingerprint_cannot(setup->cfg, e) : rc;
}

/* ---- entry point ---- */

static void add_option(void *arg, const char *name, const char *value, bool said NZ_UNUSED,
		       bool is_path NZ_UNUSED)
{
	uint64_t *h = arg;

	*h = mix_text(mix_text(*h, name), value);
}

int source_fingerprint(const struct app *setup, struct source *s, uint64_t *ret, struct err *e)
{
	uint64_t h = mix_text(0, NCZARRFS_VERSION);
	int rc;

	cfg_each(setup->cfg, add_option, &h);
	h = mix_text(h, setup->cfg->shown);
	h = fingerprint_mix(h, s->ds.n_arrays);
	if (!setup->cfg->is_remote) {
		rc = fingerprint_local(setup, s, &h, e);
	} else if (S_ISDIR(s->ds.st.st_mode)) {
		rc = remote_tree(setup, &h, e);
	} else {
		h = mix_stat(h, &s->ds.st);
		rc = s->ds.st.st_mtim.tv_sec == 0 ? fingerprint_cannot(setup->cfg, e) : 0;
	}
	*ret = h;
	return rc;
}
