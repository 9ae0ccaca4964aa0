/* place.c - a copy is made under a name of its own beside its place, and put there when it
 * is whole: nobody finds half of it. What is half done waits for a run that goes on with it. */
#include "fusefs/cmd/convert/convert_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/os/open_beneath.h"
#include "base/os/io.h"
#include "base/core/str.h"

#define FIRST "nczarrfs convert 1\n"
#define NOTE_MAX 200

/* split - the directory of a path, and the last component, both new. */
static int split(const char *path, char **ret_dir, char **ret_name, struct err *e)
{
	char *copy = strdup(path), *slash;

	if (!copy)
		return err_nomem(e);
	for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
		copy[n - 1] = '\0';
	slash = strrchr(copy, '/');
	*ret_name = strdup(slash ? slash + 1 : copy);
	if (slash)
		slash[slash == copy] = '\0';
	*ret_dir = copy;
	if (!*ret_name) {
		free(copy);
		return err_nomem(e);
	}
	if (**ret_name && strcmp(*ret_name, ".") != 0 && strcmp(*ret_name, "..") != 0)
		return 0;
	free(copy);
	free(*ret_name);
	return err_set(e, -EINVAL, "'%s' is no name for a new file or directory", path);
}

/* take_lock - the state file, which another run may have. */
static int take_lock(struct convert_place *p, const char *path, struct err *e)
{
	struct stat have, named;

	for (;;) {
		p->lock = openat(p->parent, p->state, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
				 0600);
		if (p->lock < 0)
			return err_sys(e, errno, "the directory of '%s'", path);
		if (flock(p->lock, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK
				       ? err_set(e, -EBUSY,
						 "'%s' is being made by another process", path)
				       : err_sys(e, errno, "'%s'", path);
		/* who had it before may have removed it */
		if (fstat(p->lock, &have) == 0 &&
		    fstatat(p->parent, p->state, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
		    have.st_ino == named.st_ino && have.st_dev == named.st_dev)
			return 0;
		(void)close(p->lock);
	}
}

static int there_already(const char *path, const struct stat *st, struct err *e)
{
	if (S_ISDIR(st->st_mode))
		return err_set(e, -EEXIST,
			       "'%s' is there already: remove it, name another, also one in it, or "
			       "replace it, if it is a dataset, with --force",
			       path);
	return err_set(e, -EEXIST,
		       "'%s' is there already: remove it, name another, or replace it with "
		       "--force",
		       path);
}

int convert_place_open(const char *path, bool force, struct convert_place *ret, struct err *e)
{
	auto_free char *dir = NULL;
	struct convert_place p = CONVERT_PLACE_INIT;
	struct stat st;
	int rc = split(path, &dir, &p.name, e);

	if (rc < 0) {
		dir = NULL; /* freed */
		return rc;
	}
	p.force = force;
	p.parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p.parent < 0)
		rc = err_sys(e, errno, "'%s', the directory of the copy", dir);
	else if (!force && fstatat(p.parent, p.name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		rc = there_already(path, &st, e);
	if (rc == 0 && (asprintf(&p.tmp, ".%s.nczarrfs-copy", p.name) < 0 ||
			asprintf(&p.state, ".%s.nczarrfs-copy.state", p.name) < 0))
		rc = err_nomem(e);
	if (rc == 0)
		rc = take_lock(&p, path, e);
	if (rc == 0) {
		*ret = p;
		return 0;
	}
	if (p.lock >= 0)
		(void)close(p.lock);
	if (p.parent >= 0)
		(void)close(p.parent);
	free(p.name);
	free(p.tmp);
	free(p.state);
	return rc;
}

uint64_t convert_place_done(const struct convert_place *p, uint64_t same)
{
	char text[NOTE_MAX + 1], want[NOTE_MAX];
	struct stat st;
	uint64_t done;
	ssize_t n = pread(p->lock, text, NOTE_MAX, 0);
	size_t m;

	if (n <= 0 || !same || fstatat(p->parent, p->tmp, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	text[n] = '\0';
	(void)snprintf(want, sizeof(want), FIRST "source %" PRIu64 "\ndone ", same);
	m = strlen(want);
	if (strncmp(text, want, m) != 0)
		return 0;
	n = (ssize_t)strcspn(text + m, "\n");
	return str_u64(text + m, (size_t)n, UINT64_MAX, &done) == 0 &&
			       strcmp(text + m + n, "\nend\n") == 0
		       ? done
		       : 0;
}

int convert_place_note(const struct convert_place *p, uint64_t same, uint64_t done,
		       struct err *e)
{
	char text[NOTE_MAX];
	int n, rc;

	if (!same)
		return 0;
	/* of one length, so that one write replaces all */
	n = snprintf(text, sizeof(text), FIRST "source %" PRIu64 "\ndone %" PRIu64 "\nend\n",
		     same, done);
	rc = io_pwrite(p->lock, text, (size_t)n, 0, e);
	if (rc == 0 && ftruncate(p->lock, n) < 0)
		rc = err_sys(e, errno, "'%s'", p->state);
	return rc;
}

int convert_place_appear(struct convert_place *p, struct err *e)
{
	struct stat st;
	bool there = fstatat(p->parent, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	unsigned flags = !p->force ? RENAME_NOREPLACE : there ? RENAME_EXCHANGE : 0;
	int rc;

	if (renameat2(p->parent, p->tmp, p->parent, p->name, flags) < 0) {
		rc = errno;
		if (rc == EEXIST)
			return err_set(e, -EEXIST, "'%s' has appeared meanwhile", p->name);
		/* file systems that know no exchange replace files all the same */
		if (rc != EINVAL || !there || S_ISDIR(st.st_mode) ||
		    renameat(p->parent, p->tmp, p->parent, p->name) < 0)
			return err_sys(e, rc, "'%s' could not be put in its place", p->name);
	}
	rc = io_sync(p->parent, true, e);
	if (there)
		beneath_remove(p->parent, p->tmp); /* what was replaced */
	return rc;
}

void convert_place_close(struct convert_place *p, bool keep)
{
	if (!keep) {
		beneath_remove(p->parent, p->tmp);
		(void)unlinkat(p->parent, p->state, 0);
	}
	if (p->lock >= 0)
		(void)close(p->lock);
	if (p->parent >= 0)
		(void)close(p->parent);
	free(p->name);
	free(p->tmp);
	free(p->state);
	*p = (struct convert_place)CONVERT_PLACE_INIT;
}

int convert_place_apart(const char *source, const char *path, struct err *e)
{
	auto_free char *dir = NULL, *name = NULL, *real = NULL, *from = realpath(source, NULL);
	auto_free char *to = NULL, *there = NULL;
	int rc = split(path, &dir, &name, e);

	if (rc < 0) {
		dir = name = NULL; /* freed */
		return rc;
	}
	real = realpath(dir, NULL);
	if (!from || !real)
		return 0; /* opening them says why */
	if (asprintf(&to, "%s/%s", strcmp(real, "/") == 0 ? "" : real, name) < 0) {
		to = NULL;
		return err_nomem(e);
	}
	there = realpath(to, NULL); /* a link to the source is the source */
	if (fs_below(from, to) || (there && fs_below(from, there)))
		return err_set(
			e, -EINVAL,
			"the source '%s' is '%s' or inside of it: it would be gone: name "
			"another destination",
			source, path);
	if (fs_below(to, from))
		return err_set(
			e, -EINVAL,
			"'%s' is inside of its source '%s', which must not change while it "
			"is read: name another destination",
			path, source);
	return 0;
}
