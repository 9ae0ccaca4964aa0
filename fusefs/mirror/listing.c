/* SPDX-License-Identifier: BSD-3-Clause */
/* listing.c - lists a real directory with the converted views of its datasets.
 *
 * A listing is read completely when a program starts it, and kept for its continuation. Cookies are
 * hashes of names, with a bit for converted views, and entries are sorted by them. If a listing has
 * to be read again, because it was evicted or the directory changed, it therefore continues at the
 * same position: an entry that existed all the time appears once. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/os/lock.h"
#include "base/core/str.h"
#include "fusefs/mirror/mirror_int.h"

#define NAMES_MAX ((size_t)256 << 20) /* bytes of names in one directory */
#define KEPT_MAX ((size_t)64 << 20)   /* of all listings except the newest */
#define SKIP_BYTES (NAME_BYTES + 40)
#define COOKIE_SHIFT 11               /* the hash has 53 bits: space for a few equal ones */
#define COOKIE_OTHER ((uint64_t)1 << 53) /* converted views come after all real entries */

struct mirror_listing_entry {
	uint64_t cookie;
	uint32_t name;  /* offset in names */
	uint32_t other; /* of a converted view: name of its dataset */
	bool is_dir, real;
	bool left_out; /* a dataset that is listed under the name of its converted view */
	uint8_t rank;
};

/* mirror_skip - a dataset that is not shown under a name, because another entry has that name. */
struct mirror_skip {
	uint32_t source, name; /* offsets in names */
	uint32_t by;           /* of the dataset that has that name; 0: a real entry */
};

struct mirror_listing {
	struct mirror_skip *skips;
	size_t n_skips, cap_skips;
	bool pairs; /* a dataset in it has a converted view */
	dev_t dev; /* of the directory */
	ino_t ino;
	uint32_t holders; /* lock: users of the listing, including the table */
	uint64_t used;    /* lock */
	struct buf names;
	struct mirror_listing_entry *v;
	size_t n, cap;
};

static const char *mirror_listing_text(const struct mirror_listing *l, uint32_t offset)
{
	return (const char *)l->names.data + offset;
}

/* Creating. */

static int mirror_listing_put_text(struct mirror_listing *l, const char *name, uint32_t *ret,
				   struct err *e)
{
	*ret = (uint32_t)l->names.len; /* below NAMES_MAX */
	buf_put(&l->names, name, strlen(name) + 1);
	return buf_ok(&l->names) ? 0
				 : buf_full(&l->names, e, -ERANGE,
					    "the names in a directory take more than %zu bytes",
					    NAMES_MAX);
}

static uint64_t cookie_of(const struct mirror *m, const char *name)
{
	return (mirror_hash(m, name, strlen(name)) >> COOKIE_SHIFT) + 1;
}

static int add_entry(const struct mirror *m, struct mirror_listing *l, const char *name,
		     const struct mirror_listing_entry *entry, struct err *e)
{
	struct mirror_listing_entry *at;
	int rc;

	if (grow_array(&l->v, &l->cap, l->n + 1, sizeof(*l->v)) < 0)
		return err_nomem(e);
	at = &l->v[l->n];
	*at = *entry;
	at->cookie = cookie_of(m, name);
	rc = mirror_listing_put_text(l, name, &at->name, e);
	l->n += !rc;
	return rc;
}

/* mirror_listing_compare - by cookie, then by name; converted views with one name by rank. */
static int mirror_listing_compare(const void *a, const void *b, void *arg)
{
	const struct mirror_listing *l = arg;
	const struct mirror_listing_entry *x = a, *y = b;
	int r;

	if (x->cookie != y->cookie)
		return x->cookie < y->cookie ? -1 : 1;
	r = strcmp(mirror_listing_text(l, x->name), mirror_listing_text(l, y->name));
	if (r)
		return r;
	if (x->real != y->real)
		return x->real ? -1 : 1;
	return (int)x->rank - (int)y->rank;
}

/* mirror_listing_after - index of the first entry with a larger cookie. */
static size_t mirror_listing_after(const struct mirror_listing *l, uint64_t cookie)
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

/* entry_named - find an entry; NULL: none. */
static struct mirror_listing_entry *entry_named(const struct mirror *m,
						const struct mirror_listing *l,
						const char *name)
{
	uint64_t cookie = cookie_of(m, name);

	for (int other = 0; other < 2; other++, cookie += COOKIE_OTHER) {
		const size_t first = mirror_listing_after(l, cookie - 1);

		/* entries with equal hashes have consecutive cookies */
		for (size_t i = first; i < l->n && l->v[i].cookie - cookie <= i - first; i++)
			if (strcmp(mirror_listing_text(l, l->v[i].name), name) == 0)
				return &l->v[i];
	}
	return NULL;
}

/* leave_out - mark datasets that are listed under the name of their converted view (-o show=). */
static void leave_out(const struct mirror *m, struct mirror_listing *l)
{
	size_t n = 0;

	if (m->setup->cfg->forms == CFG_FORMS_BOTH)
		return;
	for (size_t i = 0; i < l->n; i++) {
		struct mirror_listing_entry *own =
			l->v[i].real ? NULL
				     : entry_named(m, l, mirror_listing_text(l, l->v[i].other));

		if (own)
			own->left_out = true;
	}
	for (size_t i = 0; i < l->n; i++)
		if (!l->v[i].left_out)
			l->v[n++] = l->v[i];
	l->n = n;
}

/* real_first - sort real entries first: a program that removes what it lists then removes datasets
 * by their own names, also those whose converted views cannot be changed. */
static int real_first(struct mirror_listing *l, struct err *e)
{
	auto_free struct mirror_listing_entry *others = alloc_array(l->n, sizeof(*others));
	size_t n = 0, m = 0;

	if (!others)
		return err_nomem(e);
	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i].real) {
			l->v[n++] = l->v[i];
			continue;
		}
		others[m] = l->v[i];
		others[m++].cookie += COOKIE_OTHER;
	}
	if (m)
		memcpy(&l->v[n], others, m * sizeof(*others));
	return 0;
}

/* take_skip - record that an entry of the same name hides the view of `lost`. */
static int take_skip(struct mirror_listing *l, const struct mirror_listing_entry *lost,
		     const struct mirror_listing_entry *by, struct err *e)
{
	if (lost->real)
		return 0;
	if (grow_array(&l->skips, &l->cap_skips, l->n_skips + 1, sizeof(*l->skips)) < 0)
		return err_nomem(e);
	l->skips[l->n_skips++] = (struct mirror_skip){
		.source = lost->other, .name = lost->name, .by = by->real ? 0 : by->other};
	return 0;
}

/* skip_reason - write to out why a name does not show a dataset. */
static const char *skip_reason(const struct mirror_listing *l, const struct mirror_skip *s,
			       char out[SKIP_BYTES])
{
	if (s->by)
		(void)snprintf(out, SKIP_BYTES, "that name shows '%s'",
			       mirror_listing_text(l, s->by));
	else
		(void)snprintf(out, SKIP_BYTES, "that name exists");
	return out;
}

/* log_skips - log each hidden dataset of a directory, once in a mount's life. */
static void log_skips(struct mirror *m, const char *dir, const struct mirror_listing *l)
{
	for (size_t i = 0; i < l->n_skips && i < MIRROR_SKIPS_LOGGED; i++) {
		char reason[SKIP_BYTES];

		mirror_log_skip(m, dir, mirror_listing_text(l, l->skips[i].source),
				mirror_listing_text(l, l->skips[i].name),
				skip_reason(l, &l->skips[i], reason));
	}
}

/* mirror_listing_settle - sort, and make names unique and cookies strictly increasing. */
static int mirror_listing_settle(const struct mirror *m, struct mirror_listing *l,
				 struct err *e)
{
	size_t n = 0;

	if (l->n)
		qsort_r(l->v, l->n, sizeof(*l->v), mirror_listing_compare, l);
	for (size_t i = 0; i < l->n; i++)
		if (!n || strcmp(mirror_listing_text(l, l->v[n - 1].name),
				 mirror_listing_text(l, l->v[i].name)) != 0)
			l->v[n++] = l->v[i];
		else if (take_skip(l, &l->v[i], &l->v[n - 1], e) < 0)
			return -ENOMEM;
	l->n = n;
	if (real_first(l, e) < 0)
		return -ENOMEM;
	leave_out(m, l);
	l->pairs = l->n && !l->v[l->n - 1].real;
	for (size_t i = 1; i < l->n; i++)
		if (l->v[i].cookie <= l->v[i - 1].cookie)
			l->v[i].cookie = l->v[i - 1].cookie + 1;
	return 0;
}

/* mirror_listing_type_of - S_IFMT bits of an entry, 0 if it does not exist any more. */
static mode_t mirror_listing_type_of(int fd, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return DTTOIF(d->d_type);
	return fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode & S_IFMT : 0;
}

/* add_counterpart - add the converted view of this kind, if the entry is a dataset that has one. */
static int add_counterpart(const struct mirror *m, const struct where *dir,
			   struct mirror_listing *l, const char *name, bool is_dir,
			   enum name_kind kind, struct err *e)
{
	struct mirror_listing_entry entry = {.is_dir = kind == NAME_TREE};
	auto_free char *path = NULL;
	char other[NAME_BYTES];
	unsigned rank;
	int rc;

	if (!name_counterpart(name, is_dir, kind, other, &rank))
		return 0;
	path = path_join(dir->path, name);
	if (!path)
		return err_nomem(e);
	rc = mirror_looks(m, path, kind);
	if (rc <= 0)
		return rc < 0 ? err_sys(e, -rc, "'%s'", path) : 0;
	entry.rank = (uint8_t)rank;
	rc = mirror_listing_put_text(l, name, &entry.other, e);
	return rc ? rc : add_entry(m, l, other, &entry, e);
}

/* mirror_listing_wanted - true if listings include converted views of this kind (-o show=). */
static bool mirror_listing_wanted(const struct mirror *m, enum name_kind kind)
{
	switch (m->setup->cfg->forms) {
	case CFG_FORMS_CONVERTED:
		return kind != NAME_NC4; /* one name for each dataset */
	case CFG_FORMS_ZARR:
		return kind == NAME_TREE;
	case CFG_FORMS_NC:
		return kind == NAME_FILE;
	default:
		return true;
	}
}

/* add_counterparts - add the converted views of an entry that may be a dataset. */
static int add_counterparts(const struct mirror *m, const struct where *dir,
			    struct mirror_listing *l, const char *name, mode_t type,
			    struct err *e)
{
	int rc = 0;

	if (dir->in_dataset || (!S_ISREG(type) && !S_ISDIR(type)))
		return 0;
	for (enum name_kind kind = NAME_TREE; !rc && kind <= NAME_NC4; kind++)
		if (mirror_listing_wanted(m, kind))
			rc = add_counterpart(m, dir, l, name, S_ISDIR(type), kind, e);
	return rc;
}

static int mirror_listing_take_entry(const struct mirror *m, const struct where *dir,
				     struct mirror_listing *l, int fd, const struct dirent *d,
				     struct err *e)
{
	mode_t type;
	int rc;

	if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
	    real_is_mountpoint(m, dir->dev, dir->ino, d->d_name) || mirror_hidden(d->d_name))
		return 0;
	type = mirror_listing_type_of(fd, d);
	if (!type)
		return 0;
	rc = add_entry(m, l, d->d_name,
		       &(struct mirror_listing_entry){.is_dir = S_ISDIR(type), .real = true},
		       e);
	return rc ? rc : add_counterparts(m, dir, l, d->d_name, type, e);
}

static void mirror_listing_listing_free(struct mirror_listing *l)
{
	if (!l)
		return;
	buf_release(&l->names);
	free(l->skips);
	free(l->v);
	free(l);
}

static int mirror_listing_make(const struct mirror *m, const struct where *dir,
			       struct mirror_listing **ret, struct err *e)
{
	struct mirror_listing *l = alloc_array(1, sizeof(*l));
	const struct dirent *d;
	DIR *stream;
	int fd, rc;

	if (!l)
		return err_nomem(e);
	*l = (struct mirror_listing){.dev = dir->dev, .ino = dir->ino, .holders = 1};
	buf_init(&l->names, NAMES_MAX);
	buf_putc(&l->names, '\0'); /* offset 0 means no name */
	fd = real_open_dir(m, dir, e);
	stream = fd < 0 ? NULL : fdopendir(fd);
	rc = fd < 0 ? fd : stream ? 0 : err_sys(e, errno, "'%s'", dir->path);
	while (!rc && (errno = 0, d = readdir(stream)))
		rc = mirror_listing_take_entry(m, dir, l, fd, d, e);
	if (!rc && errno)
		rc = err_sys(e, errno, "'%s'", dir->path);
	if (stream)
		(void)closedir(stream); /* only read: no error to report */
	else if (fd >= 0)
		(void)close(fd);
	if (!rc)
		rc = mirror_listing_settle(m, l, e);
	if (rc)
		mirror_listing_listing_free(l);
	else
		*ret = l;
	return rc;
}

/* Keeping. */

static size_t mirror_listing_bytes_of(const struct mirror_listing *l)
{
	return l->names.cap + l->cap * sizeof(*l->v) + l->cap_skips * sizeof(*l->skips);
}

/* drop_locked - remove a listing from the table. Returns it if it has to be freed. */
static struct mirror_listing *drop_locked(struct mirror *m, size_t i)
{
	struct mirror_listing *l = m->listings[i];

	m->listings[i] = NULL;
	return l && --l->holders == 0 ? l : NULL;
}

/* mirror_listing_victim_locked - the listing to evict before another is stored: one of the same
 * directory, or the least recently used one if all entries or bytes are in use; LISTINGS: none. */
static size_t mirror_listing_victim_locked(const struct mirror *m,
					   const struct mirror_listing *fresh)
{
	size_t oldest = LISTINGS, total = 0, n = 0;

	for (size_t i = 0; i < LISTINGS; i++) {
		const struct mirror_listing *l = m->listings[i];

		if (!l)
			continue;
		if (l->dev == fresh->dev && l->ino == fresh->ino)
			return i;
		if (oldest == LISTINGS || l->used < m->listings[oldest]->used)
			oldest = i;
		total += mirror_listing_bytes_of(l);
		n++;
	}
	return n == LISTINGS || total > KEPT_MAX ? oldest : LISTINGS;
}

static void mirror_listing_keep(struct mirror *m, struct mirror_listing *l)
{
	size_t i, free_at = 0;

	(void)pthread_mutex_lock(&m->lock);
	while ((i = mirror_listing_victim_locked(m, l)) < LISTINGS) {
		struct mirror_listing *old = drop_locked(m, i);

		(void)pthread_mutex_unlock(&m->lock);
		mirror_listing_listing_free(old);
		(void)pthread_mutex_lock(&m->lock);
	}
	while (m->listings[free_at])
		free_at++;
	l->holders++;
	l->used = ++m->listing_clock;
	m->listings[free_at] = l;
	(void)pthread_mutex_unlock(&m->lock);
}

/* mirror_listing_kept - a kept listing of the directory, held for the caller; NULL: none. */
static struct mirror_listing *mirror_listing_kept(struct mirror *m, const struct where *dir)
{
	LOCK_SCOPE(&m->lock);

	for (size_t i = 0; i < LISTINGS; i++) {
		struct mirror_listing *l = m->listings[i];

		if (!l || l->dev != dir->dev || l->ino != dir->ino)
			continue;
		l->holders++;
		l->used = ++m->listing_clock;
		return l;
	}
	return NULL;
}

static void mirror_listing_let_go(struct mirror *m, struct mirror_listing *l)
{
	bool last;

	(void)pthread_mutex_lock(&m->lock);
	last = --l->holders == 0;
	(void)pthread_mutex_unlock(&m->lock);
	if (last)
		mirror_listing_listing_free(l);
}

/* id_at - the kernel's id of an entry, for d_ino. */
static uint64_t id_at(struct mirror *m, const struct where *dir, const struct mirror_listing *l,
		      const struct mirror_listing_entry *entry)
{
	auto_free char *path = NULL;

	if (!entry->real)
		return UNKNOWN_ID;
	path = path_join(dir->path, mirror_listing_text(l, entry->name));
	return path ? real_known_id(m, path) : UNKNOWN_ID;
}

/* mirror_listing_begin - the listing for a cookie; a program that starts gets a new listing. */
static int mirror_listing_begin(struct mirror *m, const struct where *dir, uint64_t cookie,
				struct mirror_listing **ret, struct err *e)
{
	int rc;

	*ret = cookie ? mirror_listing_kept(m, dir) : NULL;
	if (*ret)
		return 0;
	rc = mirror_listing_make(m, dir, ret, e);
	if (rc)
		return rc;
	log_skips(m, dir->path, *ret);
	mirror_listing_keep(m, *ret);
	return 0;
}

/* Walks: programs that list a directory and remove the entries.
 *
 * If a dataset is removed, its other names disappear too, although such a program will try to
 * remove them as well: rm -r and shutil.rmtree give up at the first missing name. Therefore a
 * process that removed a dataset still sees the other names from its own listing, or its parent's
 * (a shell that expanded '*'), each until the process removes it, too. For all other processes they
 * do not exist, and for this one only until it lists the directory again or has removed nothing for
 * WALK_IDLE_MS. */

#define WALK_IDLE_MS 5000
#define WALK_MODE 0777 /* mode of a removed name: nothing to protect */

struct mirror_walk {
	struct mirror_listing *l; /* held */
	uint64_t dir;      /* the directory's id */
	pid_t process;     /* the process of the listing */
	pid_t threads[2];  /* that listed, that removed last */
	pid_t *gone;       /* by entry: the process that removed its dataset; NULL: none yet */
	uint64_t base;     /* first id of the entries; valid if gone is set */
	int64_t last_ms;   /* time of the last removal, or of the listing */
};

_Thread_local pid_t mirror_caller;

/* mirror_listing_number_in - parse a line of /proc/PID/status; 0: not found. */
static pid_t mirror_listing_number_in(const char *status, const char *line)
{
	const char *at = strstr(status, line);
	uint64_t v = 0;

	if (!at)
		return 0;
	at += strlen(line);
	return str_u64(at, strspn(at, "0123456789"), INT32_MAX, &v) == 0 ? (pid_t)v : 0;
}

/* process_of - the process of a thread, and that process's parent; 0: unknown. */
static void process_of(pid_t thread, pid_t *ret, pid_t *ret_parent)
{
	char path[40], status[2048];
	ssize_t n = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)thread); /* fits */
	*ret = *ret_parent = 0;
	auto_fd int fd = thread > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd >= 0)
		n = read(fd, status, sizeof(status) - 1);
	status[n > 0 ? n : 0] = '\0';
	*ret = mirror_listing_number_in(status, "\nTgid:\t");
	*ret_parent = mirror_listing_number_in(status, "\nPPid:\t");
}

/* walk_end_locked - end the walk at index i. */
static void walk_end_locked(struct mirror *m, size_t i)
{
	struct mirror_walk *w = m->walks[i];

	m->walks[i] = NULL;
	if (--w->l->holders == 0)
		mirror_listing_listing_free(w->l);
	free(w->gone);
	free(w);
}

static bool walk_over(const struct mirror_walk *w, int64_t now)
{
	return now - w->last_ms > WALK_IDLE_MS;
}

/* walk_before - true if a should end before b: a walk without a removal, or one that was idle for
 * longer. */
static bool walk_before(const struct mirror_walk *a, const struct mirror_walk *b)
{
	return !a->gone != !b->gone ? !a->gone : a->last_ms < b->last_ms;
}

/* walk_room_locked - find a free index for a walk of this listing: end walks while there is none,
 * or while all of them hold more than KEPT_MAX. */
static size_t walk_room_locked(struct mirror *m, const struct mirror_listing *l)
{
	for (;;) {
		size_t oldest = WALKS, place = WALKS, total = mirror_listing_bytes_of(l);

		for (size_t i = 0; i < WALKS; i++) {
			if (!m->walks[i]) {
				place = i;
				continue;
			}
			total += mirror_listing_bytes_of(m->walks[i]->l);
			if (oldest == WALKS || walk_before(m->walks[i], m->walks[oldest]))
				oldest = i;
		}
		if (oldest == WALKS || (place < WALKS && total <= KEPT_MAX))
			return place;
		walk_end_locked(m, oldest);
	}
}

/* walk_begin - this thread begins to list a directory, which ends its process's earlier walk of
 * it. */
static void walk_begin(struct mirror *m, uint64_t dir, struct mirror_listing *l)
{
	struct mirror_walk *w = l->pairs ? alloc_array(1, sizeof(*w)) : NULL;
	const int64_t now = clock_ms();
	pid_t process, parent;

	process_of(mirror_caller, &process, &parent);
	(void)pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < WALKS; i++) {
		const struct mirror_walk *x = m->walks[i];

		if (x && (walk_over(x, now) || (x->process == process && x->l->dev == l->dev &&
						x->l->ino == l->ino)))
			walk_end_locked(m, i);
	}
	if (w && process) {
		*w = (struct mirror_walk){.l = l,
					  .dir = dir,
					  .process = process,
					  .threads = {mirror_caller, 0},
					  .last_ms = now};
		l->holders++;
		m->walks[walk_room_locked(m, l)] = steal(&w);
	}
	(void)pthread_mutex_unlock(&m->lock);
	free(w);
}

void walk_touch(struct mirror *m, bool listing)
{
	const int64_t now = clock_ms();
	LOCK_SCOPE(&m->lock);

	for (size_t i = 0; i < WALKS && mirror_caller; i++) {
		struct mirror_walk *w = m->walks[i];

		if (w && !walk_over(w, now) && (w->gone || !listing) &&
		    (w->threads[0] == mirror_caller || w->threads[1] == mirror_caller))
			w->last_ms = now;
	}
}

/* walk_mark - mark all names of a dataset except `name` as removed. */
static void walk_mark(struct mirror *m, struct mirror_walk *w, const char *name, pid_t process)
{
	const struct mirror_listing *l = w->l;
	const struct mirror_listing_entry *own = entry_named(m, l, name);
	const char *dataset = own && !own->real ? mirror_listing_text(l, own->other) : name;
	char other[NAME_BYTES];
	unsigned rank;

	if (!own)
		return;
	if (!w->gone) {
		w->gone = alloc_array(l->n, sizeof(*w->gone));
		w->base = m->next_id;
		if (!w->gone || l->n >= UNKNOWN_ID - m->next_id) {
			free(w->gone);
			w->gone = NULL;
			return;
		}
		m->next_id += l->n;
	}
	w->gone[own - l->v] = 0;
	if (!own->real && (own = entry_named(m, l, dataset)))
		w->gone[own - l->v] = process;
	for (enum name_kind kind = NAME_TREE; kind <= NAME_NC4; kind++)
		for (int is_dir = 0; is_dir < 2; is_dir++) {
			if (!name_counterpart(dataset, is_dir, kind, other, &rank) ||
			    strcmp(other, name) == 0)
				continue;
			own = entry_named(m, l, other);
			if (own && !own->real &&
			    strcmp(mirror_listing_text(l, own->other), dataset) == 0)
				w->gone[own - l->v] = process;
		}
}

/* walk_here_locked - true if a walk of a directory is still active. */
static bool walk_here_locked(const struct mirror_walk *w, const struct where *dir, int64_t now)
{
	return w && w->l->dev == dir->dev && w->l->ino == dir->ino && !walk_over(w, now);
}

/* walk_process - the process of this request, and its parent, if a walk of the directory is active;
 * gone: one that removed something. *ret is 0 otherwise. */
static void walk_process(struct mirror *m, const struct where *dir, bool gone, int64_t now,
			 pid_t *ret, pid_t *ret_parent)
{
	bool any = false;

	*ret = *ret_parent = 0;
	(void)pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < WALKS; i++)
		any = any || (walk_here_locked(m->walks[i], dir, now) &&
			      (!gone || m->walks[i]->gone));
	(void)pthread_mutex_unlock(&m->lock);
	if (any) /* without the lock: it reads a file */
		process_of(mirror_caller, ret, ret_parent);
}

void walk_removed(struct mirror *m, const struct where *dir, const char *name)
{
	const int64_t now = clock_ms();
	auto_free char *path = path_join(dir->path, name);
	const uint64_t id = path ? real_known_id(m, path) : UNKNOWN_ID;
	pid_t process, parent;

	walk_process(m, dir, false, now, &process, &parent);
	(void)pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < WALKS; i++)
		if (m->walks[i] && m->walks[i]->dir == id) /* this directory was removed */
			walk_end_locked(m, i);
	for (size_t i = 0; i < WALKS && process; i++) {
		struct mirror_walk *w = m->walks[i];

		if (!walk_here_locked(w, dir, now) ||
		    (w->process != process && w->process != parent))
			continue;
		w->threads[1] = mirror_caller;
		w->last_ms = now;
		walk_mark(m, w, name, process);
	}
	(void)pthread_mutex_unlock(&m->lock);
	walk_touch(m, false);
}

static void mirror_listing_gone_attr(const struct mirror_walk *w,
				     const struct mirror_listing_entry *entry,
				     struct view_attr *ret)
{
	*ret = (struct view_attr){.id = w->base + (uint64_t)(entry - w->l->v),
				  .nlink = 1,
				  .is_dir = entry->is_dir,
				  .volatile_attrs = true,
				  .own = true,
				  .mode = entry->is_dir ? WALK_MODE : WALK_MODE & 0666,
				  .uid = geteuid(),
				  .gid = getegid()};
}

int walk_gone(struct mirror *m, const struct where *dir, const char *name, bool take,
	      struct view_attr *ret)
{
	const int64_t now = clock_ms();
	pid_t process, parent;

	walk_process(m, dir, true, now, &process, &parent);
	LOCK_SCOPE(&m->lock);

	for (size_t i = 0; i < WALKS && process; i++) {
		const struct mirror_walk *w = m->walks[i];
		const struct mirror_listing_entry *entry;

		if (!walk_here_locked(w, dir, now) || !w->gone)
			continue;
		entry = entry_named(m, w->l, name);
		if (!entry || w->gone[entry - w->l->v] != process)
			continue;
		mirror_listing_gone_attr(w, entry, ret);
		if (take)
			w->gone[entry - w->l->v] = 0;
		return 0;
	}
	return -ENOENT;
}

bool walk_gone_id(struct mirror *m, uint64_t id, bool take, struct view_attr *ret,
		  struct walk_name *ret_name)
{
	const int64_t now = clock_ms();
	LOCK_SCOPE(&m->lock);

	for (size_t i = 0; i < WALKS; i++) {
		const struct mirror_walk *w = m->walks[i];
		const uint64_t at = w ? id - w->base : 0;

		if (!w || !w->gone || walk_over(w, now) || at >= w->l->n || !w->gone[at])
			continue;
		mirror_listing_gone_attr(w, &w->l->v[at], ret);
		if (ret_name) {
			ret_name->dir = w->dir;
			(void)snprintf(ret_name->name, NAME_BYTES, "%s",
				       mirror_listing_text(w->l, w->l->v[at].name));
		}
		if (take)
			w->gone[at] = 0;
		return true;
	}
	return false;
}

int real_list(struct mirror *m, uint64_t id, uint64_t cookie, view_emit *emit, void *arg,
	      struct err *e)
{
	struct view_attr a;
	struct mirror_listing *l;
	auto_where dir = {0};
	int rc = real_where(m, id, &dir, e);

	if (rc)
		return rc == -ESTALE && walk_gone_id(m, id, false, &a, NULL) && a.is_dir ? 0 : rc;
	rc = mirror_listing_begin(m, &dir, cookie, &l, e);
	if (rc)
		return rc;
	if (!cookie && m->base.write && mirror_caller)
		walk_begin(m, id, l);
	for (size_t i = mirror_listing_after(l, cookie); i < l->n; i++) {
		const struct mirror_listing_entry *entry = &l->v[i];

		if (!emit(arg, mirror_listing_text(l, entry->name), id_at(m, &dir, l, entry),
			  entry->is_dir, NULL, entry->cookie))
			break;
	}
	mirror_listing_let_go(m, l);
	return 0;
}

int mirror_each(struct view *v,
		bool (*fn)(void *arg, const char *source, const char *name, const char *why),
		void *arg, struct err *e)
{
	struct mirror *m = mirror_of(v);
	struct mirror_listing *l;
	auto_where dir = {0};
	bool more = true;
	char reason[SKIP_BYTES];
	int rc = real_where(m, VIEW_ROOT, &dir, e);

	if (!rc)
		rc = mirror_listing_make(m, &dir, &l, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < l->n && more; i++)
		more = l->v[i].real || fn(arg, mirror_listing_text(l, l->v[i].other),
					  mirror_listing_text(l, l->v[i].name), NULL);
	for (size_t i = 0; i < l->n_skips && more; i++)
		more = fn(arg, mirror_listing_text(l, l->skips[i].source),
			  mirror_listing_text(l, l->skips[i].name),
			  skip_reason(l, &l->skips[i], reason));
	mirror_listing_listing_free(l);
	return 0;
}

void listings_free(struct mirror *m)
{
	for (size_t i = 0; i < WALKS; i++)
		if (m->walks[i])
			walk_end_locked(m, i); /* no threads are left */
	for (size_t i = 0; i < LISTINGS; i++)
		mirror_listing_listing_free(drop_locked(m, i));
}
