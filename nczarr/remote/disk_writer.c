/* SPDX-License-Identifier: BSD-3-Clause */
/* disk_writer.c - copies the cache in memory to the cache on disk.
 *
 * A separate thread writes, so that no reader waits for the disk. The info of an object is stored
 * with its blocks: after a restart one request tells whether they are still valid. */
#include "nczarr/remote/cache_int.h"

#include <errno.h>
#include <string.h>

#define LOG_COMPONENT LOG_CACHE
#include "base/core/endian.h"
#include "base/observe/log.h"
#include "base/observe/metrics.h"
#include "base/os/thread.h"

#define INFO_BLOCK 0
#define INFO_MAX (OBJECT_ETAG_MAX + 32)

/* disk_item - a queued write. */
struct disk_item {
	struct list_link in; /* keeper.queue */
	const char *root;
	struct ext *x; /* a reference */
	struct object_info info;
	char key[];
};

struct keeper {
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_t thread;
	bool running, ending;
	struct list_link queue;
	uint64_t bytes;
};

/* ---- the stored info ---- */

static size_t disk_pack(const struct object_info *i, uint8_t out[INFO_MAX])
{
	size_t n = strnlen(i->etag, OBJECT_ETAG_MAX - 1);

	put_le64(out, i->size);
	put_le64(out + 8, (uint64_t)i->changed);
	out[16] = i->weak;
	memcpy(out + 17, i->etag, n);
	return 17 + n;
}

bool keep_info(struct cache_lookup *l, struct object_info *ret)
{
	uint8_t b[INFO_MAX];
	size_t n;

	if (!l->st->cache->disk || !disk_cache_get(l->st->cache->disk, l->st->root->name,
						   l->key, NULL, INFO_BLOCK, b, sizeof(b), &n))
		return false;
	if (n < 17 || n - 17 >= OBJECT_ETAG_MAX)
		return false;
	*ret = (struct object_info){
		.size = get_le64(b), .changed = (int64_t)get_le64(b + 8), .weak = b[16] == 1};
	memcpy(ret->etag, b + 17, n - 17);
	ret->version = object_version(ret);
	return ret->etag[0] || ret->changed;
}

/* ---- distrusted blocks ---- */

void distrust(struct cache_lookup *l)
{
	struct object_cache *c = l->st->cache;

	if (c->disk)
		atomic_store(
			&c->distrusted[atomic_fetch_add(&c->n_distrusted, 1) % RC_DISTRUSTED],
			l->hash);
}

bool distrusted(const struct cache_lookup *l)
{
	struct object_cache *c = l->st->cache;
	uint32_t n = atomic_load_explicit(&c->n_distrusted, memory_order_relaxed);

	for (uint32_t i = 0; i < n && i < RC_DISTRUSTED; i++)
		if (atomic_load_explicit(&c->distrusted[i], memory_order_relaxed) == l->hash)
			return true;
	return false;
}

/* ---- reading ---- */

uint8_t *keep_read(struct cache_lookup *l, const struct object_info *info, uint64_t off,
		   uint64_t len)
{
	auto_free uint8_t *data = NULL;
	uint64_t got = 0;

	if (!l->st->cache->disk || off % RC_BLOCK || len == 0 || off + len > info->size)
		return NULL;
	data = malloc(len);
	while (data && got < len) {
		size_t want = u64_min(RC_BLOCK, info->size - off - got), n;

		if (want > len - got ||
		    !disk_cache_get(l->st->cache->disk, l->st->root->name, l->key, info,
				    (off + got) / RC_BLOCK, data + got, want, &n) ||
		    n != want)
			return NULL;
		got += n;
	}
	return steal(&data);
}

/* ---- writing ---- */

static void write_item(struct object_cache *c, const struct disk_item *it)
{
	uint8_t b[INFO_MAX];
	uint64_t off = (it->x->off + RC_BLOCK - 1) / RC_BLOCK * RC_BLOCK;
	uint64_t end = it->x->off + it->x->len;

	for (; off < end; off += RC_BLOCK) {
		uint64_t n = u64_min(RC_BLOCK, it->info.size - off);

		if (off + n <= end)
			disk_cache_put(c->disk, it->root, it->key, &it->info, off / RC_BLOCK,
				       it->x->data + (off - it->x->off), n);
	}
	disk_cache_put(c->disk, it->root, it->key, NULL, INFO_BLOCK, b,
		       disk_pack(&it->info, b));
}

static void *keep_main(void *arg)
{
	struct object_cache *c = arg;
	struct keeper *k = c->keeper;

	(void)pthread_mutex_lock(&k->lock);
	while (!list_empty(&k->queue) || !k->ending) {
		struct disk_item *it;
		uint64_t len;

		if (list_empty(&k->queue)) {
			(void)pthread_cond_wait(&k->work, &k->lock);
			continue;
		}
		it = CONTAINER_OF(list_take(&k->queue), struct disk_item, in);
		(void)pthread_mutex_unlock(&k->lock);
		len = it->x->len;
		write_item(c, it);
		ext_unref(it->x);
		free(it);
		(void)pthread_mutex_lock(&k->lock);
		k->bytes -= len;
	}
	(void)pthread_mutex_unlock(&k->lock);
	return NULL;
}

void keep_write(struct cache_lookup *l, struct ext *x, const struct object_info *info)
{
	struct object_cache *c = l->st->cache;
	struct keeper *k = c->keeper;
	struct disk_item *it;

	if (!k || info->size == UINT64_MAX || (!info->etag[0] && !info->changed))
		return;
	it = alloc_array(1, sizeof(*it) + l->len + 1);
	if (!it)
		return; /* it is not stored then */
	*it = (struct disk_item){.root = l->st->root->name, .x = x, .info = *info};
	memcpy(it->key, l->key, l->len);
	LOCK_SCOPE(&k->lock);
	if (!k->running)
		k->running = thread_start(&k->thread, keep_main, c) == 0;
	if (!k->running || k->bytes + x->len > c->limit / 2) { /* the disk is too slow */
		free(it);
		return;
	}
	ext_ref(x);
	k->bytes += x->len;
	list_append(&k->queue, &it->in);
	(void)pthread_cond_signal(&k->work);
}

int keep_new(struct object_cache *c, const char *dir, uint64_t bytes)
{
	struct err e = ERR_INIT;
	struct keeper *k;

	if (!dir)
		return 0;
	if (disk_cache_open(dir, bytes, &c->disk, &e) < 0) {
		metrics_count(M_FAULT_CACHE);
		log_warn("%s: the disk cache is not used", e.msg);
		return 0;
	}
	k = alloc_array(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	(void)pthread_mutex_init(&k->lock, NULL); /* cannot fail with default attributes */
	cancel_cond_init(&k->work);
	list_init(&k->queue);
	c->keeper = k;
	return 0;
}

void keep_free(struct object_cache *c)
{
	struct keeper *k = c->keeper;

	if (k) {
		(void)pthread_mutex_lock(&k->lock);
		k->ending = true;
		(void)pthread_cond_broadcast(&k->work);
		(void)pthread_mutex_unlock(&k->lock);
		if (k->running)
			(void)pthread_join(k->thread, NULL);
		(void)pthread_cond_destroy(&k->work);
		(void)pthread_mutex_destroy(&k->lock);
		free(k);
	}
	disk_cache_close(c->disk);
}
