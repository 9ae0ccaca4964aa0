/* mirror_list.c - listing a real directory with the counterparts of its datasets.
 *
 * A listing is read whole when somebody begins to list, and kept for those who go on. Cookies are
 * hashes of names and entries are in their order, so that a listing that had to be read again,
 * because others took its place or the directory changed, goes on where it was: what was there
 * all along comes once. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/beneath.h"
#include "fusefs/mirror_int.h"

#define NAMES_MAX ((size_t)256 << 20) /* bytes of names in one directory */
#define KEPT_MAX ((size_t)64 << 20)   /* of all listings but the one that was made last */
#define COOKIE_SHIFT 11               /* a hash of 53 bits: room for a few that are equal */

struct entry {
	uint64_t cookie;
	uint32_t name;  /* offset in names */
	uint32_t other; /* of a counterpart: name of its dataset */
	bool is_dir, real;
	uint8_t rank;
};

struct listing {
	dev_t dev; /* of the directory */
	ino_t ino;
	uint32_t holders; /* lock: who uses it, and the table */
	uint64_t used;    /* lock */
	struct buf names;
	struct entry *v;
	size_t n, cap;
};

static const char *text(const struct listing *l, uint32_t offset)
{
	return (const char *)l->names.data + offset;
}

/* Making one. */

static int put_text(struct listing *l, const char *name, uint32_t *ret, struct err *e)
{
	*ret = (uint32_t)l->names.len; /* below NAMES_MAX */
	buf_put(&l->names, name, strlen(name) + 1);
	return buf_ok(&l->names) ? 0
				 : buf_full(&l->names, e, -ERANGE,
					    "the names of a directory take more "
					    "than %zu bytes",
					    NAMES_MAX);
}

static int add_entry(const struct mirror *m, struct listing *l, const char *name,
		     const struct entry *entry, struct err *e)
{
	struct entry *at;
	int rc;

	if (grow_array(&l->v, &l->cap, l->n + 1, sizeof(*l->v)) < 0)
		return err_nomem(e);
	at = &l->v[l->n];
	*at = *entry;
	at->cookie = (mirror_hash(m, name, strlen(name)) >> COOKIE_SHIFT) + 1;
	rc = put_text(l, name, &at->name, e);
	l->n += !rc;
	return rc;
}

/* compare - by cookie, then by name; of counterparts with one name the first in rank. */
static int compare(const void *a, const void *b, void *arg)
{
	const struct listing *l = arg;
	const struct entry *x = a, *y = b;
	int r;

	if (x->cookie != y->cookie)
		return x->cookie < y->cookie ? -1 : 1;
	r = strcmp(text(l, x->name), text(l, y->name));
	if (r)
		return r;
	if (x->real != y->real)
		return x->real ? -1 : 1;
	return (int)x->rank - (int)y->rank;
}

/* settle - into order, each name once, each cookie larger than the one before. */
static void settle(struct listing *l)
{
	size_t n = 0;

	if (l->n)
		qsort_r(l->v, l->n, sizeof(*l->v), compare, l);
	for (size_t i = 0; i < l->n; i++)
		if (!n || strcmp(text(l, l->v[n - 1].name), text(l, l->v[i].name)) != 0)
			l->v[n++] = l->v[i];
	l->n = n;
	for (size_t i = 1; i < n; i++)
		if (l->v[i].cookie <= l->v[i - 1].cookie)
			l->v[i].cookie = l->v[i - 1].cookie + 1;
}

/* type_of - S_IFMT bits of an entry, 0 when it is gone. */
static mode_t type_of(int fd, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return DTTOIF(d->d_type);
	return fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode & S_IFMT : 0;
}

/* add_counterpart - of this kind, when the entry is a dataset that has one. */
static int add_counterpart(const struct mirror *m, const struct where *dir, struct listing *l,
			   const char *name, bool is_dir, enum name_kind kind, struct err *e)
{
	struct entry entry = {.is_dir = kind == NAME_TREE};
	auto_free char *path = NULL;
	char other[NAME_BYTES];
	unsigned rank;
	int rc;

	if (!name_counterpart(name, is_dir, kind, other, &rank))
		return 0;
	path = mirror_join(dir->path, name);
	if (!path)
		return err_nomem(e);
	rc = mirror_looks(m, path, kind);
	if (rc <= 0)
		return rc < 0 ? err_sys(e, -rc, "'%s'", path) : 0;
	entry.rank = (uint8_t)rank;
	rc = put_text(l, name, &entry.other, e);
	return rc ? rc : add_entry(m, l, other, &entry, e);
}

/* add_counterparts - of an entry that may be a dataset. */
static int add_counterparts(const struct mirror *m, const struct where *dir, struct listing *l,
			    const char *name, mode_t type, struct err *e)
{
	int rc = 0;

	if (dir->in_dataset || (!S_ISREG(type) && !S_ISDIR(type)))
		return 0;
	for (enum name_kind kind = NAME_TREE; !rc && kind <= NAME_NC4; kind++)
		rc = add_counterpart(m, dir, l, name, S_ISDIR(type), kind, e);
	return rc;
}

static int take_entry(const struct mirror *m, const struct where *dir, struct listing *l,
		      int fd, const struct dirent *d, struct err *e)
{
	mode_t type;
	int rc;

	if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
	    real_is_mountpoint(m, dir->dev, dir->ino, d->d_name) || mirror_hidden(d->d_name))
		return 0;
	type = type_of(fd, d);
	if (!type)
		return 0;
	rc = add_entry(m, l, d->d_name, &(struct entry){.is_dir = S_ISDIR(type), .real = true},
		       e);
	return rc ? rc : add_counterparts(m, dir, l, d->d_name, type, e);
}

/* open_where - the directory, when it is still the one. */
static int open_where(const struct mirror *m, const struct where *dir, DIR **ret, struct err *e)
{
	int fd = beneath_open(m->fd, dir->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	struct stat st;

	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP || fd == -EXDEV)
		return err_set(e, -ESTALE, "'%s': no such directory", dir->path);
	if (fd < 0)
		return err_sys(e, -fd, "'%s'", dir->path);
	if (fstat(fd, &st) < 0) {
		int rc = err_sys(e, errno, "'%s'", dir->path);

		(void)close(fd);
		return rc;
	}
	if (st.st_dev != dir->dev || st.st_ino != dir->ino) {
		(void)close(fd);
		return err_set(e, -ESTALE, "'%s' is another directory now", dir->path);
	}
	*ret = fdopendir(fd);
	if (!*ret) {
		int rc = err_sys(e, errno, "'%s'", dir->path);

		(void)close(fd);
		return rc;
	}
	return 0;
}

static void listing_free(struct listing *l)
{
	if (!l)
		return;
	buf_release(&l->names);
	free(l->v);
	free(l);
}

static int make(const struct mirror *m, const struct where *dir, struct listing **ret,
		struct err *e)
{
	struct listing *l = alloc_array(1, sizeof(*l));
	const struct dirent *d;
	DIR *stream;
	int rc;

	if (!l)
		return err_nomem(e);
	*l = (struct listing){.dev = dir->dev, .ino = dir->ino, .holders = 1};
	buf_init(&l->names, NAMES_MAX);
	rc = open_where(m, dir, &stream, e);
	if (rc) {
		listing_free(l);
		return rc;
	}
	while (!rc && (errno = 0, d = readdir(stream)))
		rc = take_entry(m, dir, l, dirfd(stream), d, e);
	if (!rc && errno)
		rc = err_sys(e, errno, "'%s'", dir->path);
	(void)closedir(stream); /* was only read */
	if (rc) {
		listing_free(l);
		return rc;
	}
	settle(l);
	*ret = l;
	return 0;
}

/* Keeping some. */

static size_t bytes_of(const struct listing *l)
{
	return l->names.cap + l->cap * sizeof(*l->v);
}

/* drop_locked - take a listing out of the table. Returns it when it is to be freed. */
static struct listing *drop_locked(struct mirror *m, size_t i)
{
	struct listing *l = m->listings[i];

	m->listings[i] = NULL;
	return --l->holders ? NULL : l;
}

/* victim_locked - the listing that has to go before another is put in: one of the same directory,
 * or the one not used for longest when all places or all bytes are taken; LISTINGS: none. */
static size_t victim_locked(const struct mirror *m, const struct listing *fresh)
{
	size_t oldest = LISTINGS, total = 0, n = 0;

	for (size_t i = 0; i < LISTINGS; i++) {
		const struct listing *l = m->listings[i];

		if (!l)
			continue;
		if (l->dev == fresh->dev && l->ino == fresh->ino)
			return i;
		if (oldest == LISTINGS || l->used < m->listings[oldest]->used)
			oldest = i;
		total += bytes_of(l);
		n++;
	}
	return n == LISTINGS || total > KEPT_MAX ? oldest : LISTINGS;
}

static void keep(struct mirror *m, struct listing *l)
{
	for (;;) {
		struct listing *old = NULL;
		size_t i;

		(void)pthread_mutex_lock(&m->lock);
		i = victim_locked(m, l);
		if (i < LISTINGS) {
			old = drop_locked(m, i);
		} else {
			for (i = 0; m->listings[i];)
				i++;
			l->holders++;
			l->used = ++m->listing_clock;
			m->listings[i] = l;
			i = LISTINGS;
		}
		(void)pthread_mutex_unlock(&m->lock);
		listing_free(old);
		if (i == LISTINGS)
			return;
	}
}

/* kept - a listing of the directory, held for the caller; NULL: there is none. */
static struct listing *kept(struct mirror *m, const struct where *dir)
{
	struct listing *found = NULL;

	(void)pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < LISTINGS && !found; i++) {
		struct listing *l = m->listings[i];

		if (l && l->dev == dir->dev && l->ino == dir->ino)
			found = l;
	}
	if (found) {
		found->holders++;
		found->used = ++m->listing_clock;
	}
	(void)pthread_mutex_unlock(&m->lock);
	return found;
}

static void let_go(struct mirror *m, struct listing *l)
{
	bool last;

	(void)pthread_mutex_lock(&m->lock);
	last = --l->holders == 0;
	(void)pthread_mutex_unlock(&m->lock);
	if (last)
		listing_free(l);
}

void listings_free(struct mirror *m)
{
	for (size_t i = 0; i < LISTINGS; i++)
		listing_free(m->listings[i]);
}

/* after - index of the first entry whose cookie is larger. */
static size_t after(const struct listing *l, uint64_t cookie)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (l->v[mid].cookie <= cookie)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* id_at - what the kernel knows an entry by, for d_ino. */
static uint64_t id_at(struct mirror *m, const struct where *dir, const struct listing *l,
		      const struct entry *entry)
{
	auto_free char *path = NULL;

	if (!entry->real)
		return UNKNOWN_ID;
	path = mirror_join(dir->path, text(l, entry->name));
	return path ? real_known_id(m, path) : UNKNOWN_ID;
}

/* begin - the listing for a cookie; whoever starts gets it as it is now. */
static int begin(struct mirror *m, const struct where *dir, uint64_t cookie,
		 struct listing **ret, struct err *e)
{
	int rc;

	*ret = cookie ? kept(m, dir) : NULL;
	if (*ret)
		return 0;
	rc = make(m, dir, ret, e);
	if (!rc)
		keep(m, *ret);
	return rc;
}

int real_list(struct mirror *m, uint64_t id, uint64_t cookie, view_emit *emit, void *arg,
	      struct err *e)
{
	struct listing *l;
	struct where dir;
	int rc = real_where(m, id, &dir, e);

	if (rc)
		return rc;
	rc = begin(m, &dir, cookie, &l, e);
	if (!rc) {
		for (size_t i = after(l, cookie); i < l->n; i++) {
			const struct entry *entry = &l->v[i];

			if (!emit(arg, text(l, entry->name), id_at(m, &dir, l, entry),
				  entry->is_dir, NULL, entry->cookie))
				break;
		}
		let_go(m, l);
	}
	free(dir.path);
	return rc;
}

int mirror_each(struct view *v, bool (*fn)(void *arg, const char *source, const char *name),
		void *arg, struct err *e)
{
	struct mirror *m = mirror_of(v);
	struct listing *l;
	struct where dir;
	int rc = real_where(m, VIEW_ROOT, &dir, e);

	if (rc)
		return rc;
	rc = make(m, &dir, &l, e);
	if (!rc) {
		for (size_t i = 0; i < l->n; i++)
			if (!l->v[i].real &&
			    !fn(arg, text(l, l->v[i].other), text(l, l->v[i].name)))
				break;
		listing_free(l);
	}
	free(dir.path);
	return rc;
}
