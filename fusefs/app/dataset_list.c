/* SPDX-License-Identifier: BSD-3-Clause */
/* dataset_list.c - walks through directories and asks the formats about each entry. */
#include "fusefs/app/dataset_list.h"

#include <errno.h>

#include "base/observe/log.h"
#include "fusefs/mirror/view.h"

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

static int take_path(struct dataset_walk *w, char *path, struct err *e)
{
	struct dataset_list *l = w->list;

	if (l->n == PATHS_MAX)
		return err_set(e, -ERANGE,
			       "'%s': more than %zu datasets: give its "
			       "subdirectories separately",
			       w->dir, PATHS_MAX);
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

void dataset_list_release(struct dataset_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->paths[i]);
	free(l->paths);
	*l = (struct dataset_list){.n = 0};
}
