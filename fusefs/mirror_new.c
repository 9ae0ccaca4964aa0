/* mirror_new.c - files and directories that are new in a mirrored directory, and become datasets
 * of the other family: x.nc, written, is then a store x.zarr; x.zarr, made, is then a file x.nc.
 *
 * Until it is a store, x.nc is a plain file: whatever happens, it is there. The store is made in
 * a state directory and gets its name when it is whole; only then the file goes. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LOG_COMPONENT LOG_WRITE
#include "base/log.h"
#include "fusefs/mirror_int.h"
#include "fusefs/rw.h"

#define HIDDEN ".nczarrfs"

bool mirror_hidden(const char *name)
{
	size_t len = strlen(name), n = sizeof(HIDDEN) - 1;

	return len > n + 1 && name[0] == '.' && strcmp(name + len - n, HIDDEN) == 0;
}

bool new_wanted(const struct mirror *m, const struct where *dir, const char *name, bool is_dir,
		char out[NAME_BYTES])
{
	static const char *const endings[2][2] = {{".nc", ".zarr"}, {".zarr", ".nc"}};
	const char *from = endings[is_dir][0], *to = endings[is_dir][1];
	size_t len = strlen(name), n = strlen(from);
	auto_free char *path = NULL;
	struct stat st;

	if (m->setup->cfg->new_as_is || dir->in_dataset || len <= n || name[0] == '.' ||
	    strcmp(name + len - n, from) != 0 || len - n + strlen(to) >= NAME_BYTES)
		return false;
	(void)snprintf(out, NAME_BYTES, "%.*s%s", (int)(len - n), name, to);
	return real_probe(m, dir, out, &path, &st, NULL) == -ENOENT;
}

static int remove_one(const char *path, const struct stat *st NZ_UNUSED, int type NZ_UNUSED,
		      struct FTW *at NZ_UNUSED)
{
	return remove(path) < 0 && errno != ENOENT;
}

/* clear - a directory of ours, with everything in it. */
static void clear(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
		(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* workplace - the state directory of the store that is being made; *ret: its path, new. */
static int workplace(const char *to, char **ret, int *ret_fd, struct err *e)
{
	const char *name = strrchr(to, '/') + 1;
	char *path = NULL;

	if (asprintf(&path, "%.*s.%s.new" HIDDEN, (int)(name - to), to, name) < 0)
		return err_nomem(e);
	clear(path); /* what another mount left, that died */
	if (mkdir(path, 0700) < 0) {
		int rc = err_sys(e, errno, "'%s'", path);

		free(path);
		return rc;
	}
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_fd < 0) {
		int rc = err_sys(e, errno, "'%s'", path);

		free(path);
		return rc;
	}
	*ret = path;
	return 0;
}

/* sync_dir - of the directory that path is in. */
static void sync_dir(const char *path)
{
	auto_free char *dir = strndup(path, (size_t)(strrchr(path, '/') - path));
	auto_fd int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0)
		(void)fsync(fd); /* a file that is there twice after a crash is no loss */
}

static int make_store(const struct fs_setup *setup, struct source *now, const char *to,
		      struct err *e)
{
	auto_free char *place = NULL, *store = NULL;
	auto_fd int fd = -1;
	int rc = workplace(to, &place, &fd, e);

	if (rc < 0)
		return rc;
	if (asprintf(&store, "%s/store", place) < 0) {
		store = NULL;
		return err_nomem(e);
	}
	rc = commit_new(setup, now, store, fd, e);
	if (rc == 0)
		rc = source_check(now, e);
	if (rc == 0 && syncfs(fd) < 0)
		rc = err_sys(e, errno, "'%s'", store);
	if (rc == 0 && renameat2(AT_FDCWD, store, AT_FDCWD, to, RENAME_NOREPLACE) < 0)
		rc = err_sys(e, errno, "'%s'", to);
	if (rc == 0)
		sync_dir(to);
	clear(place);
	return rc;
}

int new_store(struct mirror *m, const char *path, const char *to, struct err *e)
{
	const struct fs_setup *setup = m->setup;
	auto_free char *from = mirror_join(setup->cfg->source, path);
	auto_free char *full = mirror_join(setup->cfg->source, to);
	const struct source_ops *of =
		from ? source_bidder(setup->formats, setup->n_formats, from) : NULL;
	struct source_options opts;
	struct source *now = NULL;
	int rc;

	if (!from || !full)
		return err_nomem(e);
	if (!of || of == setup->zarr || !setup->rw->zarr_create || !setup->rw->zarr_sink)
		return 0;
	fs_source_options(setup->cfg, &opts);
	opts.keep_going = false;
	rc = source_open(setup->formats, setup->n_formats, from, &opts, &now, e);
	if (rc == 0)
		rc = make_store(setup, now, full, e);
	source_close(now);
	if (rc < 0)
		return err_wrap(e, rc, "'%s' stays a file", path);
	if (unlink(from) < 0) {
		log_warn("'%s' is '%s' now, and could not be removed", path, to);
		return 0;
	}
	sync_dir(full);
	log_info("'%s' is the Zarr store '%s' now", path, to);
	return 1;
}

int new_file(struct mirror *m, const char *path, struct err *e)
{
	auto_free char *full = mirror_join(m->setup->cfg->source, path);

	if (!full)
		return err_nomem(e);
	return m->setup->rw->hdf5_create
		       ? m->setup->rw->hdf5_create(full, e)
		       : err_set(e, -EOPNOTSUPP, "'%s': netCDF-4 files cannot be made", path);
}
