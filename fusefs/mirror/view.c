/* SPDX-License-Identifier: BSD-3-Clause */
/* view.c - requests for a mirrored directory, passed to its real entries and to the views of its
 * datasets.
 *
 * Names, attributes and contents of real entries are read at every request; the kernel may cache
 * them for a second. The same holds for names of converted views, but not for their content: an id
 * of a dataset always means the same bytes, or ESTALE. */
#include "fusefs/mirror/view.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>

#include "base/os/cancel.h"
#include "fusefs/mirror/mirror_int.h"
#include "translate/chunkio/provenance.h"

enum {
	PARKED_TIMES = 16, /* parked Zarr stores for each dataset that may be open */
	PARKED_MAX = 1 << 14,
};

int mirror_looks(const struct mirror *m, const char *path, enum name_kind kind)
{
	const struct app *setup = m->setup;
	auto_free char *full = path_join(setup->cfg->source, path);
	const struct source_ops *of = NULL;
	int rc = full ? source_bidder(setup->formats, setup->n_formats, full, &of) : -ENOMEM;

	if (rc == -EIO) /* one retry, because the result decides which names are cached */
		rc = source_bidder(setup->formats, setup->n_formats, full, &of);
	if (rc < 0) /* an entry that cannot be examined is shown: opening it gives the error */
		return err_is_transient(rc) ? rc : 1;
	/* a netCDF-4 file needs no second netCDF-4 name */
	return of && (kind != NAME_NC4 || (of != setup->zarr && of != setup->hdf5));
}

bool mirror_has(const struct mirror *m, const char *path, enum name_kind kind)
{
	return mirror_looks(m, path, kind) != 0;
}

/* Attributes of converted views. */

/* mirror_view_take_over - copy attributes of the dataset to its virtual file or directory. */
static void mirror_view_take_over(const struct stat *st, struct view_attr *a)
{
	mode_t mode = st->st_mode & 0444;

	a->volatile_attrs = true;
	a->fixed = !a->unknown;
	if (a->own)
		return;
	a->own = true;
	a->mode = a->is_dir ? mode | mode >> 2 : mode;
	a->uid = st->st_uid;
	a->gid = st->st_gid;
	a->mtime = st->st_mtim;
	a->ctime = st->st_ctim;
}

/* show_written - the same for a writable view, which decides how long they may be cached. */
static void show_written(const struct slot *s, struct view_attr *a)
{
	mode_t mode = s->st.st_mode & 0666;

	a->volatile_attrs = true;
	if (!a->own) {
		a->own = true;
		a->mtime = s->st.st_mtim;
		a->ctime = s->st.st_ctim;
	}
	a->mode = a->is_dir ? mode | (mode & 0444) >> 2 : mode;
	a->uid = s->st.st_uid;
	a->gid = s->st.st_gid;
}

void mirror_show(const struct mirror *m, const struct slot *s, struct view_attr *a)
{
	/* A change of a file gives the root another id. That of a store in a directory shows only
	 * when it is polled, for which there have to be requests. In a writable mirror the same
	 * slot may become writable. */
	a->inner = !m->base.write && !a->unknown && a->id != VIEW_ROOT &&
		   name_is_tree(s->kind) && S_ISREG(s->st.st_mode);
	a->id = id_of(s->number, a->id);
	if (s->view->write)
		show_written(s, a);
	else
		mirror_view_take_over(&s->view->source->ds.st, a);
}

/* mirror_view_tree_attr - the directory of a Zarr store view, which need not be open. */
static void mirror_view_tree_attr(const struct mirror *m, uint32_t number, enum name_kind kind,
				  const struct stat *st, struct view_attr *ret)
{
	*ret = (struct view_attr){.id = id_of(number, VIEW_ROOT), .nlink = 1, .is_dir = true};
	mirror_view_take_over(st, ret);
	if (m->base.write && kind == NAME_TREE)
		ret->mode |= st->st_mode & 0222;
}

/* mirror_view_file_attr - the virtual file of a dataset, which is opened: its size is exact, or it
 * is marked as unknown. Fails with ESTALE only. */
static int mirror_view_file_attr(struct mirror *m, uint32_t number, const struct stat *st,
				 struct view_attr *ret, struct err *e)
{
	struct slot *s;
	int rc = slot_get(m, number, &s, e);

	if (!rc) {
		rc = s->view->write ? s->view->ops->lookup(s->view, VIEW_ROOT, s->name,
							   strlen(s->name), ret, e)
				    : s->view->ops->getattr(s->view, IMAGE_ID, ret, e);
		rc = slot_end(m, s, rc, ret, 0, e);
	}
	if (!rc || rc == -ESTALE || rc == -ENOENT)
		return rc;
	*ret = (struct view_attr){
		.id = id_of(number, IMAGE_ID), .size = 1, .nlink = 1, .unknown = true};
	mirror_view_take_over(st, ret); /* not empty: an empty file would be read as one */
	return 0;
}

/* Lookup. */

/* counterpart_at - the converted view of the dataset at path. -ENOENT: it is no dataset with such a
 * view. */
static int counterpart_at(struct mirror *m, enum name_kind kind, const char *path,
			  const char *name, const struct stat *st, struct view_attr *ret,
			  struct err *e)
{
	uint32_t number;
	int rc;

	if (!slot_is_at(m, kind, path, name, st) && !mirror_has(m, path, kind))
		return -ENOENT;
	rc = slot_of(m, kind, path, name, st, &number, e);
	if (rc)
		return rc;
	if (name_is_tree(kind))
		mirror_view_tree_attr(m, number, kind, st, ret);
	else
		rc = mirror_view_file_attr(m, number, st, ret, e);
	if (rc)
		slot_forget(m, number, 1);
	return rc;
}

static bool may_be(enum name_kind kind, bool dir_only, const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return kind == NAME_FILE;
	return S_ISREG(st->st_mode) && !dir_only;
}

/* look_up_converted - the view `name` of the dataset whose converted view would be `plain`. shaped:
 * the view's kind if it has a rule; otherwise NAME_PLAIN, and name is plain. */
static int look_up_converted(struct mirror *m, const struct where *dir, const char *plain,
			     enum name_kind shaped, const char *name, struct view_attr *ret,
			     struct err *e)
{
	for (unsigned rank = 0; rank < NAME_RANKS; rank++) {
		char source[NAME_BYTES];
		auto_free char *path = NULL;
		bool dir_only;
		enum name_kind kind = name_source(plain, rank, source, &dir_only);
		struct stat st;
		int rc;

		if (kind == NAME_PLAIN)
			continue;
		rc = real_probe(m, dir, source, &path, &st, e);
		if (!rc)
			rc = may_be(kind, dir_only, &st)
				     ? counterpart_at(m, shaped ? shaped : kind, path, name,
						      &st, ret, e)
				     : -ENOENT;
		if (rc != -ENOENT)
			return rc;
	}
	return -ENOENT;
}

/* look_up_shaped - a view whose name has a rule: the dataset has the name without it, or is the one
 * that is shown under that name. */
static int look_up_shaped(struct mirror *m, const struct where *dir, const char *name,
			  struct view_attr *ret, struct err *e)
{
	char plain[NAME_BYTES], rule[NAME_BYTES], other[NAME_BYTES];
	const enum name_kind kind = name_shaped(name, plain, rule);
	auto_free char *path = NULL;
	struct stat st;
	int rc;

	if (kind == NAME_PLAIN)
		return -ENOENT;
	rc = real_probe(m, dir, plain, &path, &st, e);
	if (rc == 0)
		return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)
			       ? counterpart_at(m, kind, path, name, &st, ret, e)
			       : -ENOENT;
	if (rc == -ENOENT)
		rc = look_up_converted(m, dir, plain, kind, name, ret, e);
	/* a dataset of the same format with another ending: "a@classic.nc" of "a.h5" */
	if (rc == -ENOENT && name_other(plain, other))
		rc = look_up_converted(m, dir, other, kind, name, ret, e);
	return rc;
}

int mirror_look_up(struct mirror *m, uint64_t id, const char *name, struct view_attr *ret,
		   struct err *e)
{
	auto_where dir = {0};
	struct stat st;
	char *path;
	int rc = real_where(m, id, &dir, e);

	if (rc)
		return rc;
	rc = real_probe(m, &dir, name, &path, &st, e);
	if (!rc)
		return real_enter(m, &dir, path, &st, ret, e);
	if (rc != -ENOENT || dir.in_dataset || real_is_mountpoint(m, dir.dev, dir.ino, name))
		return rc;
	rc = look_up_converted(m, &dir, name, NAME_PLAIN, name, ret, e);
	if (rc == -ENOENT)
		rc = look_up_shaped(m, &dir, name, ret, e);
	return rc == -ENOENT ? err_set(e, rc, "no '%s' in '%s'", name, dir.path) : rc;
}

/* look_up_walking - also find names that a program which removes a directory will still remove. */
static int look_up_walking(struct mirror *m, uint64_t id, const char *name,
			   struct view_attr *ret, struct err *e)
{
	int rc = mirror_look_up(m, id, name, ret, e);
	auto_where dir = {0};
	struct view_attr a;

	if (rc == -ESTALE && walk_gone_id(m, id, false, &a, NULL) && a.is_dir)
		return err_set(e, -ENOENT, "no '%s': its dataset has been removed", name);
	if (rc != -ENOENT || !m->base.write || real_where(m, id, &dir, NULL) < 0)
		return rc;
	return walk_gone(m, &dir, name, false, ret);
}

static int mirror_lookup(struct view *v, uint64_t dir, const char *name, size_t len,
			 struct view_attr *ret, struct err *e)
{
	struct mirror *m = mirror_of(v);
	auto_free char *copy = NULL;
	struct slot *s;
	int rc;

	if (!number_of(dir)) {
		copy = strndup(name, len);
		return copy ? look_up_walking(m, dir, copy, ret, e) : err_nomem(e);
	}
	rc = slot_get(m, number_of(dir), &s, e);
	if (rc)
		return rc;
	rc = s->view->ops->lookup(s->view, inner_of(dir), name, len, ret, e);
	return slot_end(m, s, rc, ret, 1, e);
}

/* counterpart_getattr - attributes of the directory or file that shows a dataset. */
static int counterpart_getattr(struct mirror *m, uint32_t number, const struct slot_at *at,
			       struct view_attr *ret, struct err *e)
{
	struct stat st;
	int rc = real_stat(m, at->path, &st, e);

	if (rc == 0 || rc == -ENOENT)
		rc = slot_revalidate(m, number, rc ? NULL : &st, e);
	if (rc)
		return rc;
	if (!name_is_tree(at->kind))
		return mirror_view_file_attr(m, number, &st, ret, e);
	mirror_view_tree_attr(m, number, at->kind, &st, ret);
	return 0;
}

static int mirror_getattr(struct view *v, uint64_t id, struct view_attr *ret, struct err *e)
{
	struct mirror *m = mirror_of(v);
	auto_slot_at at = {0};
	struct slot *s;
	int rc;

	if (!number_of(id)) {
		rc = real_getattr(m, id, ret, e);
		return rc == -ESTALE && walk_gone_id(m, id, false, ret, NULL) ? 0 : rc;
	}
	rc = slot_lookup(m, number_of(id), &at, e);
	if (rc)
		return rc;
	if (inner_of(id) == (name_is_tree(at.kind) ? VIEW_ROOT : IMAGE_ID))
		return counterpart_getattr(m, number_of(id), &at, ret, e);
	rc = slot_get(m, number_of(id), &s, e);
	if (rc)
		return rc;
	rc = s->view->ops->getattr(s->view, inner_of(id), ret, e);
	return slot_end(m, s, rc, ret, 0, e);
}

/* Listing. */

struct relay {
	const struct mirror *m;
	struct slot *slot;
	view_emit *emit;
	void *arg;
	uint64_t known;
};

static bool relay_entry(void *arg, const char *name, uint64_t id, bool is_dir,
			const struct view_attr *attr, uint64_t next)
{
	struct relay *r = arg;
	struct view_attr copy;
	bool taken;

	if (attr) {
		copy = *attr;
		mirror_show(r->m, r->slot, &copy);
	}
	taken = r->emit(r->arg, name, id_of(r->slot->number, id), is_dir, attr ? &copy : NULL,
			next);
	r->known += taken && attr;
	return taken;
}

static int mirror_list(struct view *v, uint64_t dir, uint64_t cookie, bool want_attr,
		       view_emit *emit, void *arg, struct err *e)
{
	struct mirror *m = mirror_of(v);
	struct relay r = {.m = m, .emit = emit, .arg = arg};
	int rc;

	if (!cookie)
		walk_touch(m, true);
	if (!number_of(dir))
		return real_list(m, dir, cookie, emit, arg, e);
	rc = slot_get(m, number_of(dir), &r.slot, e);
	if (rc)
		return rc;
	rc = r.slot->view->ops->list(r.slot->view, inner_of(dir), cookie, want_attr,
				     relay_entry, &r, e);
	if (rc)
		rc = slot_map_error(m, r.slot, rc, e);
	slot_put(m, r.slot, r.known);
	return rc;
}

/* Other requests. */

static int mirror_readlink(struct view *v, uint64_t id, struct buf *out, struct err *e)
{
	if (number_of(id))
		return err_set(e, -EINVAL, "id %llu is not a link", (unsigned long long)id);
	return real_readlink(mirror_of(v), id, out, e);
}

/* mirror_xattr - in datasets only arrays of a Zarr store have listed attributes: nothing is opened
 * to find that out. */
static int mirror_xattr(struct view *v, uint64_t id, const char *name, struct buf *out,
			struct err *e)
{
	struct mirror *m = mirror_of(v);
	auto_slot_at at = {0};
	bool may_have = inner_of(id) != VIEW_ROOT;
	struct slot *s;
	int rc = 0;

	if (!number_of(id))
		return real_xattr(m, id, name, out, e);
	if (may_have)
		rc = slot_lookup(m, number_of(id), &at, e);
	if (rc)
		return rc;
	if (!may_have || (!name_is_tree(at.kind) && !provenance_of(name)))
		return name ? err_set(e, -ENODATA, "no attribute '%s'", name) : 0;
	rc = slot_get(m, number_of(id), &s, e);
	if (rc)
		return rc;
	rc = s->view->ops->xattr ? s->view->ops->xattr(s->view, inner_of(id), name, out, e)
				 : -ENODATA;
	if (rc && rc != -ENODATA && rc != -E2BIG)
		rc = slot_map_error(m, s, rc, e);
	slot_put(m, s, 0);
	return rc;
}

static void mirror_forget(struct view *v, uint64_t id, uint64_t count)
{
	struct mirror *m = mirror_of(v);
	struct slot *s = number_of(id) ? slot_if_open(m, number_of(id)) : NULL;

	if (s) {
		if (s->view->write && s->view->ops->forget)
			s->view->ops->forget(s->view, inner_of(id), count);
		slot_put(m, s, 0);
	}
	if (number_of(id))
		slot_forget(m, number_of(id), count);
	else
		real_forget(m, id, count);
}

/* mirror_view_holder - id of the real directory of path. */
static uint64_t mirror_view_holder(struct mirror *m, char *path)
{
	char *slash = strrchr(path, '/');
	uint64_t id;

	*(slash ? slash : path) = '\0';
	id = real_known_id(m, path);
	return id == UNKNOWN_ID ? VIEW_ROOT : id;
}

static uint64_t mirror_parent(struct view *v, uint64_t dir)
{
	struct mirror *m = mirror_of(v);
	uint32_t number = number_of(dir);
	auto_slot_at at = {0};
	auto_where w = {0};
	uint64_t id;
	struct slot *s;

	if (dir == VIEW_ROOT)
		return VIEW_ROOT;
	if (number && inner_of(dir) != VIEW_ROOT) {
		if (slot_get(m, number, &s, NULL))
			return VIEW_ROOT;
		id = id_of(number, s->view->ops->parent(s->view, inner_of(dir)));
		slot_put(m, s, 0);
		return id;
	}
	if ((number ? slot_lookup(m, number, &at, NULL) : real_where(m, dir, &w, NULL)) < 0)
		return VIEW_ROOT;
	return mirror_view_holder(m, number ? at.path : w.path);
}

static void mirror_close(struct view *v)
{
	struct mirror *m = mirror_of(v);

	write_handles_free(m);
	slots_free(m);
	listings_free(m);
	real_free(m);
	(void)pthread_cond_destroy(&m->moved);
	(void)pthread_mutex_destroy(&m->lock);
	free(m->mount_name);
	close_fd(&m->fd);
	free(m);
}

/* mirror_open_file - in a writable mirror w_open does the same, with the same error. */
static int mirror_open_file(struct view *v, uint64_t id, struct err *e)
{
	return number_of(id) ? 0 : real_open(mirror_of(v), id, e);
}

static void mirror_release(struct view *v, uint64_t id)
{
	if (!number_of(id))
		real_closed(mirror_of(v), id);
}

static const struct view_ops mirror_ops = {
	.name = "mirror",
	.close = mirror_close,
	.lookup = mirror_lookup,
	.getattr = mirror_getattr,
	.list = mirror_list,
	.read = mirror_read,
	.open = mirror_open_file,
	.release = mirror_release,
	.parent = mirror_parent,
	.readlink = mirror_readlink,
	.xattr = mirror_xattr,
	.forget = mirror_forget,
};

int mirror_wanted(const struct app *setup, struct err *e)
{
	return setup->cfg->view == CFG_VIEW_AUTO ? mirror_only(setup, e) : 0;
}

int mirror_only(const struct app *setup, struct err *e)
{
	const char *path = setup->cfg->source;
	const struct source_ops *of;
	struct stat st;
	int rc;

	if (setup->cfg->is_remote || setup->cfg->concat.dim)
		return 0;
	if (stat(path, &st) < 0) /* for other sources opening them gives a better error */
		return errno == EIO || err_is_transient(-errno)
			       ? err_sys(e, errno, "'%s'", path)
			       : 0;
	if (!S_ISDIR(st.st_mode))
		return 0;
	rc = source_bidder(setup->formats, setup->n_formats, path, &of);
	if (rc < 0)
		return err_sys(e, -rc, "'%s': its format could not be determined", path);
	return !of;
}

/* find_mountpoint - find the mountpoint within the directory: an access to it would be a request to
 * this server. */
static int find_mountpoint(struct mirror *m, const char *mountpoint, struct err *e)
{
	auto_free char *dir = realpath(mountpoint, NULL);
	char *slash = dir ? strrchr(dir, '/') : NULL;
	struct stat st;

	if (!slash || !slash[1])
		return dir ? 0 : err_sys(e, errno, "mountpoint '%s'", mountpoint);
	m->mount_name = strdup(slash + 1);
	if (!m->mount_name)
		return err_nomem(e);
	slash[slash == dir] = '\0';
	if (stat(dir, &st) < 0)
		return err_sys(e, errno, "mountpoint '%s'", mountpoint);
	m->mount_dev = st.st_dev;
	m->mount_ino = st.st_ino;
	return 0;
}

static int mirror_init(struct mirror *m, struct err *e)
{
	const struct cfg *cfg = m->setup->cfg;
	struct stat st;

	if (getrandom(&m->seed, sizeof(m->seed), 0) != (ssize_t)sizeof(m->seed))
		return err_sys(e, errno, "random numbers");
	m->fd = open(cfg->source, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (m->fd < 0 || fstat(m->fd, &st) < 0)
		return err_sys(e, errno, "'%s'", cfg->source);
	m->cap_open = cfg->limits.open_datasets;
	m->open = alloc_array(m->cap_open, sizeof(struct slot *));
	m->max_parked = u64_min((uint64_t)PARKED_TIMES * cfg->limits.open_datasets, PARKED_MAX);
	m->slots = alloc_array(1, sizeof(struct slot *)); /* number 0 is never a dataset */
	if (!m->open || !m->slots)
		return err_nomem(e);
	m->n_slots = m->cap_slots = 1;
	if (cfg->mountpoint && find_mountpoint(m, cfg->mountpoint, e) < 0)
		return e ? e->code : -EIO;
	return real_root(m, &st, e);
}

int mirror_open(const struct app *setup, struct view **ret, struct err *e)
{
	struct mirror *m = alloc_array(1, sizeof(*m));
	int rc;

	if (!m)
		return err_nomem(e);
	*m = (struct mirror){
		.base = {.ops = &mirror_ops, .follows = true}, .setup = setup, .fd = -1};
	list_init(&m->handles);
	(void)pthread_mutex_init(&m->lock, NULL);
	cancel_cond_init(&m->moved);
	rc = mirror_init(m, e);
	if (rc) {
		mirror_close(&m->base);
		return rc;
	}
	if (setup->cfg->write.rw)
		m->base.write = &mirror_write_ops;
	if (setup->cfg->command == CFG_MOUNT || setup->cfg->command == CFG_SERVE)
		mirror_warn_top(m);
	*ret = &m->base;
	return 0;
}
