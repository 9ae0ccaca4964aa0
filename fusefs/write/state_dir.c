/* SPDX-License-Identifier: BSD-3-Clause */
/* state_dir.c - the state directory of a dataset: its path, its lock, its removal.
 *
 * It is next to the dataset, on the same filesystem, so that finished objects can be renamed into
 * place. Two names of one dataset have one state directory: the canonical path decides. Its
 * contents are trusted, so it must belong to the user.
 *
 * Files in it: "lock"; "base", the identity of the HDF5 file that the pending writes apply to;
 * "chains", the filters that writers requested; all others hold pending writes. */
#include "fusefs/write/writable_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/os/io.h"
#define LOG_COMPONENT LOG_WRITE
#include "base/core/hash.h"
#include "base/os/lock.h"
#include "base/observe/log.h"
#include "base/core/str.h"
#include "fusefs/write/chunk_set.h"
#include "fusefs/app/remote.h"
#include "mountcfg/address/address.h"

#define LOCK "lock"
#define BASE "base"
#define SUFFIX ".nczarrfs"
enum {
	NAME_MAX_BYTES = 255,
	BASE_BYTES = 128,
	LOCK_TRIES = 8, /* its owner may remove it while we open it */
	LEFT_TRIES =
		/* attempts to lock the state of a mount that ended but whose processes have not */
		100,
	LEFT_MS = 20, /* delay between two attempts */
};

/* The states that are open in this process, for fs_rw_states. */
static struct list_link open_states = {&open_states, &open_states};
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER; /* open_states */

static void state_dir_forget(struct rw_state *s)
{
	LOCK_SCOPE(&open_lock);

	if (s->link.next)
		list_remove(&s->link);
}

void fs_rw_states(struct buf *out)
{
	LOCK_SCOPE(&open_lock);

	for (struct list_link *l = open_states.next; l != &open_states; l = l->next) {
		const struct rw_state *s = CONTAINER_OF(l, struct rw_state, link);

		buf_put(out, s->dir, strlen(s->dir) + 1);
	}
}

/* name_in - path of the state directory below `parent`. If it is not next to the dataset, or the
 * name is too long, its name contains a hash of the canonical path. */
static char *name_in(const char *parent, const char *path, const char *base, bool hashed)
{
	const size_t len = strlen(base);
	char *text = NULL;
	int rc;

	if (strcmp(parent, "/") == 0)
		parent = "";
	if (!hashed && len + sizeof("." SUFFIX) - 1 <= NAME_MAX_BYTES)
		rc = asprintf(&text, "%s/.%s" SUFFIX, parent, base);
	else
		rc = asprintf(&text, "%s/.%.200s-%016llx" SUFFIX, parent, base,
			      (unsigned long long)hash_text(HASH_SEED, path));
	return rc < 0 ? NULL : text;
}

int rw_state_dir(const struct cfg *cfg, const char *path, char **ret, char **ret_path,
		 struct err *e)
{
	auto_free char *real = NULL, *parent = NULL;
	char *base;

	if (address_is_remote(path)) {
		auto_free char *copy = strdup(path);
		int rc = copy ? rw_state_remote(cfg, path, false, ret, e) : err_nomem(e);

		if (rc == 0)
			*ret_path = steal(&copy);
		return rc;
	}
	real = realpath(path, NULL);
	if (!real && errno == ENOENT)
		return err_set(e, -ENOENT, "'%s': no such file or directory: check the path%s",
			       path, cfg->write.rw ? ", or create it with -o rw,create" : "");
	if (!real)
		return err_sys(e, errno, "'%s'", path);
	base = strrchr(real, '/') + 1;
	parent = cfg->write.state_dir
			 ? strdup(cfg->write.state_dir)
			 : strndup(real, base - real > 1 ? (size_t)(base - real - 1) : 1);
	if (!parent)
		return err_nomem(e);
	*ret = name_in(parent, real, *base ? base : "root", cfg->write.state_dir != NULL);
	if (!*ret)
		return err_nomem(e);
	*ret_path = steal(&real);
	return 0;
}

/* state_dir_open_dir - the directory must belong to the user and be writable by no other user,
 * because its contents are trusted. */
static int state_dir_open_dir(const char *dir, bool make, int *ret, struct err *e)
{
	struct stat st;
	int fd;

	if (make && mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno,
			       "'%s', the state directory (to use another place: -o "
			       "state_dir=DIR)",
			       dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, -ENOENT, "'%s' does not exist", dir);
	if (fd < 0)
		return err_sys(e, errno, "'%s'", dir);
	if (fstat(fd, &st) < 0) {
		int errnum = errno;

		(void)close(fd);
		return err_sys(e, errnum, "'%s'", dir);
	}
	if (st.st_uid != geteuid() || (st.st_mode & 022)) {
		(void)close(fd);
		return err_set(e, -EACCES,
			       "'%s' belongs to another user, or other users can write to "
			       "it", dir);
	}
	*ret = fd;
	return 0;
}

/* busy - report the holder of the lock, which the lock file names. */
static int busy(int fd, const char *path, struct err *e)
{
	char text[ERR_TEXT_MAX / 2];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return err_set(e, -EBUSY, "'%s' is being written by another nczarrfs%s%s", path,
		       text[0] ? ": " : "", text);
}

/* state_dir_left_behind - true if the holder of the lock has ended. Its children may hold the lock
 * for a moment longer; to report the dataset as busy would make it read-only. */
static bool state_dir_left_behind(int fd)
{
	static const char word[] = "process ";
	const size_t skip = sizeof(word) - 1;
	char text[64];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	uint64_t pid;

	text[n > 0 ? n : 0] = '\0';
	return strncmp(text, word, skip) == 0 &&
	       str_u64(text + skip, strcspn(text + skip, ",\n"), INT32_MAX, &pid) == 0 &&
	       pid > 0 && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

/* state_dir_lock - returns 0, or a positive errno. */
static int state_dir_lock(int fd)
{
	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		int errnum = errno;

		if (errnum != EWOULDBLOCK || i == LEFT_TRIES || !state_dir_left_behind(fd))
			return errnum;
		(void)nanosleep(&(struct timespec){.tv_nsec = LEFT_MS * 1000000L}, NULL);
	}
	return 0;
}

/* still_there - 1: the file that we locked is still the one at that path; 0: not; -errno. */
static int still_there(const struct rw_state *s, int fd)
{
	struct stat ours, there;

	if (fstat(fd, &ours) < 0)
		return -errno;
	if (fstatat(s->dir_fd, LOCK, &there, 0) < 0)
		return errno == ENOENT ? 0 : -errno;
	return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

/* try_lock - 1: the lock file was removed meanwhile. */
static int try_lock(struct rw_state *s, struct err *e)
{
	int fd = openat(s->dir_fd, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc, errnum;

	if (fd < 0 && errno == ENOENT)
		return 1; /* the directory itself was removed */
	if (fd < 0)
		return err_sys(e, errno, "'%s/" LOCK "'", s->dir);
	errnum = state_dir_lock(fd);
	if (errnum) {
		rc = errnum == EWOULDBLOCK ? busy(fd, s->shown, e)
					   : err_sys(e, errnum, "lock '%s/" LOCK "'", s->dir);
		(void)close(fd);
		return rc;
	}
	rc = still_there(s, fd);
	if (rc > 0) {
		s->lock_fd = fd;
		return 0;
	}
	(void)close(fd);
	return rc < 0 ? err_sys(e, -rc, "'%s/" LOCK "'", s->dir) : 1;
}

/* say_who - record pid and mountpoint for the EBUSY message; errors are ignored. */
static void say_who(const struct rw_state *s, const struct cfg *cfg)
{
	if (ftruncate(s->lock_fd, 0) < 0 ||
	    dprintf(s->lock_fd, "process %ld%s%s\n", (long)getpid(),
		    cfg->mountpoint ? ", mounted on " : "",
		    cfg->mountpoint ? cfg->mountpoint : "") < 0)
		log_debug("'%s/" LOCK "' could not be written", s->dir);
}

/* same_filesystem - objects of a store are created in the state and renamed into place. */
static int same_filesystem(const struct rw_state *s, const struct stat *store, struct err *e)
{
	struct stat st;

	if (fstat(s->dir_fd, &st) < 0)
		return err_sys(e, errno, "'%s'", s->dir);
	if (st.st_dev == store->st_dev)
		return 0;
	return err_set(e, -EXDEV,
		       "'%s' is on another file system than '%s': use another -o state_dir",
		       s->dir, s->path);
}

int rw_state_open(const struct cfg *cfg, const char *path, bool make, struct rw_state *s,
		  struct err *e)
{
	struct stat st;
	int rc;

	*s = (struct rw_state)RW_STATE_INIT;
	s->remote = address_is_remote(path);
	rc = rw_state_dir(cfg, path, &s->dir, &s->path, e);
	if (rc == 0 && s->remote && make) { /* and the directories above it */
		free(s->dir);
		s->dir = NULL;
		rc = rw_state_remote(cfg, path, true, &s->dir, e);
	}
	if (rc == 0 && !s->remote && stat(s->path, &st) < 0)
		rc = err_sys(e, errno, "'%s'", path);
	if (rc == 0) {
		s->shown = fs_shown(s->path);
		rc = s->shown ? 0 : err_nomem(e);
	}
	s->is_dir = rc == 0 && (s->remote || S_ISDIR(st.st_mode));
	for (int i = 0; rc == 0 && s->lock_fd < 0; i++) {
		close_fd(&s->dir_fd);
		rc = i < LOCK_TRIES ? state_dir_open_dir(s->dir, make, &s->dir_fd, e)
				    : err_set(e, -EBUSY, "'%s' is created and removed by "
							 "another program at the same "
							 "time", s->dir);
		rc = rc ? rc : try_lock(s, e);
		rc = rc > 0 ? 0 : rc;
	}
	if (rc == 0 && s->is_dir && !s->remote)
		rc = same_filesystem(s, &st, e);
	if (rc < 0) {
		rw_state_close(s);
		return rc;
	}
	say_who(s, cfg);
	LOCK_SCOPE(&open_lock);
	list_add(&open_states, &s->link);
	return 0;
}

/* base_text - the fields that distinguish two states of a file. */
static int base_text(const struct stat *st, char *text, size_t cap)
{
	return snprintf(text, cap, "%llu %llu %lld.%09ld\n", (unsigned long long)st->st_ino,
			(unsigned long long)st->st_size, (long long)st->st_mtim.tv_sec,
			st->st_mtim.tv_nsec);
}

void rw_state_unchanged(const struct rw_state *s)
{
	char text[BASE_BYTES];
	int n = base_text(&s->base, text, sizeof(text));
	auto_fd int fd = openat(s->dir_fd, BASE,
				O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	/* without a base, pending writes apply to the file in any state */
	if (fd < 0 || io_pwrite(fd, text, (size_t)n, 0, NULL) < 0)
		log_debug("'%s/" BASE "' could not be written", s->dir);
}

int rw_state_base(struct rw_state *s, struct err *e)
{
	if (s->is_dir)
		return 0;
	if (stat(s->path, &s->base) < 0)
		return err_sys(e, errno, "'%s'", s->path);
	rw_state_unchanged(s);
	return 0;
}

int rw_state_changing(const struct rw_state *s, struct err *e)
{
	if (unlinkat(s->dir_fd, BASE, 0) < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "'%s/" BASE "'", s->dir);
	/* the base must not reappear after a power loss, when the file has changed */
	if (io_sync(s->dir_fd, true, NULL) < 0)
		log_debug("'%s' could not be synced", s->dir);
	return 0;
}

int rw_state_same(struct rw_state *s, struct err *e)
{
	char was[BASE_BYTES], is[BASE_BYTES];
	auto_fd int fd = openat(s->dir_fd, BASE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd >= 0 ? pread(fd, was, sizeof(was) - 1, 0) : 0;

	/* an incomplete line, of a writer that died meanwhile, has no meaning */
	if (s->is_dir || n <= 0 || was[n - 1] != '\n')
		return 0;
	was[n] = '\0';
	if (stat(s->path, &s->base) < 0)
		return err_sys(e, errno, "'%s'", s->path);
	(void)base_text(&s->base, is, sizeof(is)); /* fits: numbers */
	if (strcmp(was, is) == 0)
		return 0;
	return err_set(e, -ESTALE,
		       "'%s' was changed by another program while writes were pending in '%s': "
		       "remove '" BASE
		       "' there to commit them anyway, or remove the whole directory to discard "
		       "them",
		       s->path, s->dir);
}

/* Files that mean nothing to the next mount if there are no others; the lock is removed last. */
static const char *const ours[] = {BASE, BASE ".new", COMMIT_CHAINS, COMMIT_CHAINS ".new",
				   LOCK};

static bool state_dir_is_ours(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (strcmp(name, ours[i]) == 0)
			return true;
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool is_map(const char *name)
{
	const char *dot = strrchr(name, '.');

	return strncmp(name, "nc-", 3) == 0 && dot && strcmp(dot, ".map") == 0;
}

/* state_dir_any - true if `wanted` is true for an entry, or if that is unknown. */
static bool state_dir_any(const struct rw_state *s, bool (*is)(const char *name), bool wanted)
{
	int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	bool ret = !d;

	if (!d && fd >= 0)
		(void)close(fd);
	while (d && (entry = readdir(d)))
		ret |= is(entry->d_name) == wanted;
	if (d)
		(void)closedir(d);
	return ret;
}

bool rw_state_bare(const struct rw_state *s)
{
	return !state_dir_any(s, state_dir_is_ours, false);
}

bool rw_state_holds_file(const struct rw_state *s)
{
	return state_dir_any(s, is_map, true);
}

bool fs_rw_left(const char *dir)
{
	auto_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct rw_state s = RW_STATE_INIT;

	if (fd < 0)
		return errno != ENOENT;
	s.dir_fd = fd;
	return !rw_state_bare(&s);
}

void rw_state_close(struct rw_state *s)
{
	state_dir_forget(s);
	/* while it is locked: a process that waits for the lock then finds another file at the
	 * path */
	if (s->lock_fd >= 0 && rw_state_bare(s)) {
		for (size_t i = 0; i < ARRAY_LEN(ours); i++)
			(void)unlinkat(s->dir_fd, ours[i], 0); /* most of them do not exist */
		if (rmdir(s->dir) < 0)
			log_debug("'%s' stays", s->dir);
	}
	close_fd(&s->lock_fd);
	close_fd(&s->dir_fd);
	free(s->dir);
	free(s->path);
	free(s->shown);
	*s = (struct rw_state)RW_STATE_INIT;
}
