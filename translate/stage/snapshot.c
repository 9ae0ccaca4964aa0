/* SPDX-License-Identifier: BSD-3-Clause */
/* snapshot.c - the states of a dataset that are open, and who holds which. */
#include "translate/stage/snapshot.h"

#include <errno.h>
#include <pthread.h>

#include "base/os/lock.h"
#include "translate/stage/stage.h"

/* held_snapshot - a snapshot and the number of its holders; the latest is kept without any. */
struct held_snapshot {
	struct snapshot pub;
	uint64_t holders; /* lock */
};

struct snapshots {
	view_open_fn *open;
	void *arg;
	pthread_mutex_t lock;
	struct held_snapshot *latest; /* lock */
	uint64_t next;       /* the caller's of snapshots_reopen */
};

static void close_held(struct held_snapshot *h)
{
	if (!h)
		return;
	store_close(h->pub.files);
	view_close(h->pub.view);
	free(h);
}

static int open_next(struct snapshots *g, struct held_snapshot **ret, struct err *e)
{
	struct held_snapshot *h = alloc_array(1, sizeof(*h));
	int rc;

	if (!h)
		return err_nomem(e);
	rc = g->open(g->arg, &h->pub.view, e);
	if (rc) {
		free(h);
		return rc;
	}
	rc = view_store(h->pub.view, &h->pub.files, e);
	if (rc) {
		close_held(h);
		return rc;
	}
	h->pub.number = g->next++;
	*ret = h;
	return 0;
}

int snapshots_new(view_open_fn *open, void *arg, struct snapshots **ret, struct err *e)
{
	struct snapshots *g = alloc_array(1, sizeof(*g));
	int rc;

	if (!g)
		return err_nomem(e);
	*g = (struct snapshots){.open = open, .arg = arg};
	rc = open_next(g, &g->latest, e);
	if (!rc && pthread_mutex_init(&g->lock, NULL) != 0) {
		close_held(g->latest);
		rc = err_nomem(e);
	}
	if (rc) {
		free(g);
		return rc;
	}
	*ret = g;
	return 0;
}

void snapshots_free(struct snapshots *g)
{
	if (!g)
		return;
	close_held(g->latest);
	(void)pthread_mutex_destroy(&g->lock);
	free(g);
}

struct snapshot *snapshots_get(struct snapshots *g)
{
	LOCK_SCOPE(&g->lock);

	g->latest->holders++;
	return &g->latest->pub;
}

const struct snapshot *snapshots_latest(struct snapshots *g)
{
	LOCK_SCOPE(&g->lock);

	return &g->latest->pub;
}

void snapshot_put(struct snapshots *g, struct snapshot *x)
{
	struct held_snapshot *h = CONTAINER_OF(x, struct held_snapshot, pub);
	bool last;

	(void)pthread_mutex_lock(&g->lock);
	last = --h->holders == 0 && h != g->latest;
	(void)pthread_mutex_unlock(&g->lock);
	if (last)
		close_held(h);
}

int snapshots_reopen(struct snapshots *g, struct err *e)
{
	struct held_snapshot *fresh, *old;
	int rc = open_next(g, &fresh, e);

	if (rc)
		return rc;
	(void)pthread_mutex_lock(&g->lock);
	old = g->latest;
	g->latest = fresh;
	if (old->holders)
		old = NULL; /* who holds it closes it */
	(void)pthread_mutex_unlock(&g->lock);
	close_held(old);
	return 0;
}

int snapshots_check(struct snapshots *g, struct err *e)
{
	struct snapshot *x = snapshots_get(g);
	int rc = x->view->source ? source_poll(x->view->source, e) : 0;

	snapshot_put(g, x);
	return rc;
}
