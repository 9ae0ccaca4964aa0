/* SPDX-License-Identifier: BSD-3-Clause */
/* dataset_list.c - walks through directories and asks the formats about each entry, or through the
 * folders of an object store. */
#include "fusefs/app/dataset_list.h"

#include <errno.h>

#include "base/core/str.h"
#include "base/observe/log.h"
#include "fusefs/mirror/view.h"
#include "nczarr/nczarr.h"

#define DEPTH_MAX 100 /* nesting limit of directories */
#define PATHS_MAX ((size_t)10 << 20)

/* dataset_walk - one walk. */
struct dataset_walk {
	const struct app *setup;
	const char *dir;
	bool (*leave_out)(void *arg, const char *path, const struct stat *st,
			  const struct source_ops *of);
	void *arg;
	struct dataset_list *list;
};

static void missed(struct dataset_walk *w, const struct err *e)
{
	log_error("%s", e->msg);
	w->list->missed++;
}

static int too_many(const char *dir, struct err *e)
{
	return err_set(e, -ERANGE,
		       "'%s': more than %zu datasets: give its "
		       "subdirectories separately",
		       dir, PATHS_MAX);
}

/* take_path - add a path, which is taken. */
static int take_path(struct dataset_walk *w, char *path, struct err *e)
{
	struct dataset_list *l = w->list;

	if (l->n == PATHS_MAX)
		return too_many(w->dir, e);
	if (grow_array(&l->paths, &l->cap, l->n + 1, sizeof(*l->paths)) < 0)
		return err_nomem(e);
	l->paths[l->n++] = path;
	return 0;
}

static int look_in(struct dataset_walk *w, const char *dir, unsigned depth, struct err *e);

/* look_at - examine an entry of a directory. 1: it is a dataset, and path is taken. */
static int look_at(struct dataset_walk *w, char *path, const char *name, unsigned depth,
		   struct err *e)
{
	const struct source_ops *of = NULL;
	struct err why = ERR_INIT;
	struct stat st;
	int rc;

	if (lstat(path, &st) < 0) {
		if (err_is_transient(-errno))
			return err_sys(e, errno, "'%s'", path);
		if (errno != ENOENT) {
			(void)err_sys(&why, errno, "'%s'", path);
			missed(w, &why);
		}
		return 0;
	}
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	rc = source_bidder(w->setup->formats, w->setup->n_formats, path, &of);
	if (rc < 0 && err_is_transient(rc))
		return err_sys(e, -rc, "'%s'", path);
	if (rc < 0 || of || name_says_dataset(name, S_ISDIR(st.st_mode))) {
		if (w->leave_out && w->leave_out(w->arg, path, &st, of))
			return 0;
		rc = take_path(w, path, e);
		return rc < 0 ? rc : 1;
	}
	if (S_ISDIR(st.st_mode))
		return look_in(w, path, depth + 1, e);
	w->list->others++;
	return 0;
}

/* look_in - report what cannot be read, and list the rest. */
static int look_in(struct dataset_walk *w, const char *dir, unsigned depth, struct err *e)
{
	struct err why = ERR_INIT;
	struct dirent **names;
	int n = -1, rc = 0;

	errno = ELOOP;
	if (depth < DEPTH_MAX)
		n = dir_names(dir, &names);
	if (n < 0 && err_is_transient(-errno))
		return err_sys(e, errno, "'%s'", dir);
	if (n < 0) {
		(void)err_sys(&why, errno, "'%s'", dir);
		missed(w, &why);
		return 0;
	}
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;
		char *path = NULL;

		if (rc >= 0 && !mirror_hidden(name)) {
			path = path_join(dir, name);
			rc = path ? look_at(w, path, name, depth, e) : err_nomem(e);
			if (rc <= 0)
				free(path);
		}
		free(names[i]);
	}
	free(names);
	return rc < 0 ? rc : 0;
}

int dataset_list_find(const struct app *setup, const char *dir,
		      bool (*leave_out)(void *arg, const char *path, const struct stat *st,
					const struct source_ops *of),
		      void *arg, struct dataset_list *ret, struct err *e)
{
	struct dataset_walk w = {
		.setup = setup, .dir = dir, .leave_out = leave_out, .arg = arg, .list = ret};

	*ret = (struct dataset_list){.n = 0};
	return look_in(&w, dir, 0, e);
}

/* ---- remote folders ---- */

struct folder_name {
	char *name; /* owned */
	bool is_dir;
};

/* folder_names - the names of one folder that are of interest. */
struct folder_names {
	struct folder_name *v;
	size_t n, cap;
	uint64_t others;
	bool tree; /* the folder is a Zarr store */
	int rc;
};

/* take_name - take an entry of a listing, which ends where the folder turns out to be a store. */
static bool take_name(void *arg, const char *name, bool is_dir,
		      const struct store_stat *st NZ_UNUSED)
{
	struct folder_names *f = arg;
	struct folder_name *x;

	/* attributes alone are no Zarr store */
	f->tree = !is_dir && zarr_doc_key(name) && strcmp(name, ".zattrs") != 0;
	if (f->tree || mirror_hidden(name))
		return !f->tree;
	if (!is_dir && !name_says_dataset(name, false)) {
		f->others++;
		return true;
	}
	f->rc = f->n < PATHS_MAX ? grow_array(&f->v, &f->cap, f->n + 1, sizeof(*f->v)) : -ERANGE;
	if (f->rc < 0)
		return false;
	x = &f->v[f->n];
	*x = (struct folder_name){strdup(name), is_dir};
	f->rc = x->name ? 0 : -ENOMEM;
	f->n += x->name != NULL;
	return x->name;
}

static int name_order(const void *a, const void *b)
{
	const struct folder_name *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int list_folder(const struct dataset_walk *w, struct store *s, const char *key,
		       struct folder_names *ret, struct err *e)
{
	int rc = store_list(s, key, false, take_name, ret, e);

	if (rc == -ENOENT)
		return 0; /* only the empty object that stands for the folder */
	if (rc == 0 && ret->rc < 0)
		rc = ret->rc == -ERANGE ? too_many(w->dir, e) : err_nomem(e);
	if (rc == 0 && ret->n > 0)
		qsort(ret->v, ret->n, sizeof(*ret->v), name_order);
	w->list->others += ret->others;
	return rc < 0 && *key ? err_wrap(e, rc, "folder '%s'", key) : rc;
}

static int look_in_folder(struct dataset_walk *w, struct store *s, const char *key,
			  unsigned depth, struct err *e);

/* look_at_name - examine an entry of the folder `key`. */
static int look_at_name(struct dataset_walk *w, struct store *s, const char *key,
			const struct folder_name *x, unsigned depth, struct err *e)
{
	auto_free char *below = str_printf("%s%s%s", key, *key ? "/" : "", x->name);
	char *path;
	int rc = 1; /* a dataset */

	if (!below)
		return err_nomem(e);
	if (strlen(below) > STORE_KEY_MAX)
		return err_set(e, -ENAMETOOLONG, "folder '%.100s...': too long a key", key);
	if (!name_says_dataset(x->name, x->is_dir))
		rc = look_in_folder(w, s, below, depth + 1, e);
	if (rc <= 0)
		return rc;
	path = str_printf("%s/%s", w->dir, below);
	rc = path ? take_path(w, path, e) : err_nomem(e);
	if (rc < 0)
		free(path);
	return rc;
}

/* look_in_folder - list the datasets of a folder. 1: the folder is one itself. */
static int look_in_folder(struct dataset_walk *w, struct store *s, const char *key,
			  unsigned depth, struct err *e)
{
	struct folder_names f = {.n = 0};
	int rc = depth < DEPTH_MAX ? list_folder(w, s, key, &f, e)
				   : err_sys(e, ELOOP, "'%s/%s'", w->dir, key);

	for (size_t i = 0; i < f.n; i++) {
		if (rc == 0 && !f.tree)
			rc = look_at_name(w, s, key, &f.v[i], depth, e);
		free(f.v[i].name);
	}
	free(f.v);
	return rc < 0 ? rc : f.tree;
}

int dataset_list_of_store(struct store *s, const char *top, struct dataset_list *ret,
			  struct err *e)
{
	struct dataset_walk w = {.dir = top, .list = ret};
	int rc;

	*ret = (struct dataset_list){.n = 0};
	rc = look_in_folder(&w, s, "", 0, e);
	return rc < 0 ? rc : 0;
}

void dataset_list_release(struct dataset_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->paths[i]);
	free(l->paths);
	*l = (struct dataset_list){.n = 0};
}
