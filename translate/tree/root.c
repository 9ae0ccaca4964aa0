/* SPDX-License-Identifier: BSD-3-Clause */
/* root.c - the root's metadata, and a directory above the root.
 *
 * A state without the root's metadata is no dataset. Programs that replace a dataset remove all of
 * it first (zarr-python and xarray with mode="w"), and fail at a mount point, which the kernel does
 * not remove. So nothing is committed while the root has no metadata, and removals alone are
 * dropped when the mount ends.
 *
 * With a name in tree_rw_options the root is a directory of that name, in a directory that holds
 * nothing else. Programs can remove it and make it again. */
#include <errno.h>
#include <string.h>

#define LOG_COMPONENT LOG_WRITE
#include "base/observe/log.h"
#include "translate/tree/tree_int.h"

static const char *const docs[] = {".zgroup", ".zarray", "zarr.json"};

unsigned root_doc(const char *key)
{
	for (unsigned i = 0; i < ARRAY_LEN(docs); i++)
		if (strcmp(key, docs[i]) == 0)
			return i + 1;
	return 0;
}

int root_check(struct tree *t, struct err *e)
{
	bool had = false, has = false;
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(docs) && !rc && !has; i++) {
		struct found f;

		rc = tree_base(snapshots_latest(t->snapshots), docs[i], &f, e);
		had = had || (!rc && f.kind != FOUND_NOTHING);
		rc = rc ? rc : tree_find_below(t, docs[i], &f, e);
		has = !rc && f.kind != FOUND_NOTHING && f.size > 0;
	}
	t->rootless = !rc && had && !has;
	if (!t->rootless)
		return rc;
	return err_set(e, -EIO,
		       "the metadata of the root (.zgroup or zarr.json) was removed: nothing "
		       "is committed until a program writes it. A program that replaces the "
		       "dataset (mode=\"w\") cannot do so at the mount point: mount with -o "
		       "root=NAME and give it MOUNTPOINT/NAME");
}

/* any_content - whether something waits that is more than a removal. */
struct any_content {
	struct tree *t;
	bool any;
};

static bool content_entry(void *arg, const char *key, const struct stage_entry *x)
{
	struct any_content *c = arg;

	c->any = (x->kind == STAGE_DATA || x->kind == STAGE_ALIAS) && !tree_rw_passing(key) &&
		 !pins_have(c->t, key);
	return !c->any;
}

int root_drop_removals(struct tree *t, struct err *e)
{
	struct any_content c = {.t = t};
	int rc = stage_each(t->stage, UINT64_MAX, content_entry, &c);

	if (rc)
		return err_set(e, rc, "the pending writes in '%s' cannot be listed", t->o.dir);
	if (c.any)
		return -EIO; /* e says why nothing was committed */
	rc = stage_drop(t->stage, NULL, e);
	if (!rc || rc == -ENODATA)
		log_warn("everything was removed, including the metadata of the root, and "
			 "nothing was written: the dataset is unchanged");
	return rc == -ENODATA ? 0 : rc;
}

/* ---- the directory above the root ---- */

int root_only(const struct tree *t, struct err *e)
{
	return err_set(e, -EPERM, "only the directory '%s' can exist here (-o root)",
		       t->o.name);
}

int root_mkdir(struct tree *t, const char *name, struct view_attr *ret, struct err *e)
{
	int rc = strcmp(t->o.name, name) == 0 ? 0 : root_only(t, e);
	TREE_SCOPE(write_lock(t));

	if (!rc && !t->removed)
		rc = err_set(e, -EEXIST, "'%s' already exists", t->o.name);
	rc = rc ? rc : node_show(t, "", &(struct found){.kind = FOUND_DIR}, ret, e);
	if (!rc)
		t->removed = false;
	return rc;
}

int root_rmdir(struct tree *t, const char *name, struct err *e)
{
	auto_node *n = NULL;
	int rc = 0;
	TREE_SCOPE(write_lock(t));

	if (t->removed || strcmp(t->o.name, name) != 0)
		rc = err_set(e, -ENOENT, "'%.200s' does not exist", name);
	rc = rc ? rc : tree_is_empty(t, "", t->o.name, e);
	if (rc)
		return rc;
	n = node_find(t, "");
	if (n)
		node_detach(t, n);
	t->removed = true;
	return 0;
}
