/* SPDX-License-Identifier: BSD-3-Clause */
/* commit_tap.c - a sink that forwards every call to another one, and reports the changes. */
#include "fusefs/write/chunk_set.h"

#include <errno.h>

struct tap {
	struct sink base;
	struct sink_ops table; /* without rename_array if the other sink has none */
	struct sink *under;
	const struct sink_observer_ops *ops;
	void *arg;
};

static struct tap *tap_of(struct sink *s)
{
	return CONTAINER_OF(s, struct tap, base);
}

static void tap_close(struct sink *s)
{
	sink_close(tap_of(s)->under);
	free(tap_of(s));
}

static int commit_tap_begin(struct sink *s, struct source *was, struct source *now,
			    struct err *e)
{
	struct sink *u = tap_of(s)->under;

	return u->ops->begin(u, was, now, e);
}

static int commit_tap_remove_array(struct sink *s, uint32_t array, struct err *e)
{
	struct tap *t = tap_of(s);
	int rc = t->ops->removed ? t->ops->removed(t->arg, array, e) : 0;

	return rc ? rc : t->under->ops->remove_array(t->under, array, e);
}

static int commit_tap_remove_group(struct sink *s, uint32_t group, struct err *e)
{
	struct sink *u = tap_of(s)->under;

	return u->ops->remove_group(u, group, e);
}

static int commit_tap_add_group(struct sink *s, uint32_t group, struct err *e)
{
	struct sink *u = tap_of(s)->under;

	return u->ops->add_group(u, group, e);
}

static int commit_tap_add_array(struct sink *s, uint32_t array, const struct sink_new *how,
				struct err *e)
{
	struct tap *t = tap_of(s);
	int rc = t->ops->added ? t->ops->added(t->arg, array, how, e) : 0;

	return rc ? rc : t->under->ops->add_array(t->under, array, how, e);
}

static int commit_tap_rename_array(struct sink *s, uint32_t was, uint32_t now, struct err *e)
{
	struct tap *t = tap_of(s);
	int rc = t->ops->removed ? t->ops->removed(t->arg, was, e) : 0;

	return rc ? rc : t->under->ops->rename_array(t->under, was, now, e);
}

static int commit_tap_dims(struct sink *s, struct err *e)
{
	struct sink *u = tap_of(s)->under;

	return u->ops->dims(u, e);
}

static int commit_tap_resize(struct sink *s, uint32_t array, struct err *e)
{
	struct tap *t = tap_of(s);
	int rc = t->ops->resized ? t->ops->resized(t->arg, array, e) : 0;

	return rc ? rc : t->under->ops->resize(t->under, array, e);
}

static int commit_tap_set_attr(struct sink *s, uint32_t group, uint32_t array,
			       const struct ds_attr *a, struct err *e)
{
	struct sink *u = tap_of(s)->under;

	return u->ops->set_attr(u, group, array, a, e);
}

static int remove_attr(struct sink *s, uint32_t group, uint32_t array, const char *name,
		       struct err *e)
{
	struct sink *u = tap_of(s)->under;

	return u->ops->remove_attr(u, group, array, name, e);
}

static int commit_tap_target(struct sink *s, uint32_t array, struct sink_array *ret,
			     struct err *e)
{
	struct sink *u = tap_of(s)->under;

	return u->ops->target(u, array, ret, e);
}

static int commit_tap_put(struct sink *s, uint32_t array, uint64_t linear,
			  const struct sink_chunk *c, struct err *e)
{
	struct tap *t = tap_of(s);
	int rc = t->ops->put ? t->ops->put(t->arg, array, linear, e) : 0;

	return rc ? rc : t->under->ops->put(t->under, array, linear, c, e);
}

static int commit_tap_drop(struct sink *s, uint32_t array, uint64_t linear, struct err *e)
{
	struct tap *t = tap_of(s);
	int rc = t->ops->put ? t->ops->put(t->arg, array, linear, e) : 0;

	return rc ? rc : t->under->ops->drop(t->under, array, linear, e);
}

static int commit_tap_commit(struct sink *s, int (*gate)(void *arg, struct err *e), void *arg,
			     struct err *e)
{
	struct sink *u = tap_of(s)->under;

	return u->ops->commit(u, gate, arg, e);
}

int sink_observer_open(struct sink *under, const struct sink_observer_ops *ops, void *arg,
		       struct sink **ret, struct err *e)
{
	struct tap *t = alloc_array(1, sizeof(*t));

	if (!t)
		return err_nomem(e);
	t->table = (struct sink_ops){
		.name = under->ops->name,
		.close = tap_close,
		.begin = commit_tap_begin,
		.remove_array = commit_tap_remove_array,
		.remove_group = commit_tap_remove_group,
		.add_group = commit_tap_add_group,
		.add_array = commit_tap_add_array,
		.rename_array = under->ops->rename_array ? commit_tap_rename_array : NULL,
		.dims = commit_tap_dims,
		.resize = commit_tap_resize,
		.set_attr = commit_tap_set_attr,
		.remove_attr = remove_attr,
		.target = commit_tap_target,
		.put = commit_tap_put,
		.drop = commit_tap_drop,
		.commit = commit_tap_commit,
	};
	t->base.ops = &t->table;
	t->under = under;
	t->ops = ops;
	t->arg = arg;
	*ret = &t->base;
	return 0;
}
