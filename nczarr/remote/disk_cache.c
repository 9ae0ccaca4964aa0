/* SPDX-License-Identifier: BSD-3-Clause */
/* disk_cache.c - the cache on disk: blocks in slots of two large files.
 *
 * No index needs to be loaded or can be damaged. The SHA-256 of a block's identity (root, key,
 * version, number) selects a set of 16 slots. A second file has 16 bytes for each slot: part of
 * its digest and the time of its last use. A slot starts with the whole digest and the checksum of
 * its bytes, and is ignored unless both match: damage of any kind (a process killed between two
 * writes, a full disk, exchanged or truncated files) costs a request and nothing else. In a full
 * set the least recently used slot is replaced. Small blocks have slots of their own, an eighth of
 * the room.
 *
 *   lock          held with flock: shared by all users of the directory, exclusive while the files
 *                 are recreated
 *   format        parameters of the other files; if they differ, the files are recreated
 *   tags-N        sets x 16 x 16 bytes: 8 of the digest, time of use (us since 1970)
 *   data-N        sets x 16 slots: head of 64 bytes and the block
 * All numbers are little-endian.
 *
 * Several processes may use a directory: concurrent writers can at worst corrupt a slot, which its
 * digest then rejects. Only the sizes must be the same for all. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#include "base/core/clock.h"
#include "base/core/endian.h"
#include "base/os/io.h"
#include "base/os/lock.h"
#include "codecs/core/codec.h"
#include "nczarr/remote/services.h"

#define WAYS 16
#define TAG 16
#define HEAD 64
#define STRIPES 64
#define SMALL ((size_t)8 << 10)
#define LARGE ((size_t)64 << 10)
#define USED_US 60000000 /* interval of updates of the time of use */
#define LOCK_TRIES 100
#define LOCK_MS 5
#define PAUSE_NS                                                                               \
	((int64_t)60 * 1000 * 1000 * 1000) /* pause of writes after the disk was full */

static const char magic[8] = {'n', 'z', 'c', 'a', 'c', 'h', 'e', '1'};

/* disk_part - slots of one size. */
struct disk_part {
	int tags, data; /* owned */
	uint64_t sets;
	size_t room; /* of a block */
};

struct disk_cache {
	int dir, lock; /* owned */
	struct disk_part parts[2];
	pthread_mutex_t stripes[STRIPES];
	_Atomic uint64_t last;  /* last time of use */
	_Atomic int64_t paused; /* no write before this time */
};

/* ident - identity and position of a block. */
struct ident {
	struct disk_cache *d;
	struct disk_part *p;
	uint8_t digest[32];
	uint8_t tag[8];
	uint64_t set;
	pthread_mutex_t *lock;
};

/* now_us - strictly increasing: a later use is newer. */
static uint64_t now_us(struct disk_cache *d)
{
	const struct timespec ts = clock_wall();
	uint64_t now, last = atomic_load(&d->last);

	do
		now = u64_max(last + 1,
			      (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000);
	while (!atomic_compare_exchange_weak(&d->last, &last, now));
	return now;
}

/* ---- opening ---- */

/* disk_open_file - open a regular file of the directory; links are not followed. */
static int disk_open_file(int dir, const char *name, struct err *e)
{
	auto_fd int fd =
		openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	struct stat st;
	int ret;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "'%s'", name);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink > 1)
		return err_set(e, -EPERM,
			       "'%s' was not made by a cache: it is not a regular file of "
			       "yours with one link",
			       name);
	ret = fd;
	fd = -1;
	return ret;
}

/* disk_make_dir - create the directory and its parents: ~/.cache of a new user does not
 * exist. Errors of the parents are ignored: the last mkdir() reports them. */
static int disk_make_dir(const char *path)
{
	const size_t n = strlen(path);
	char above[PATH_MAX];

	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return 0;
	if (errno != ENOENT || n >= sizeof(above))
		return -1;
	for (size_t i = 1; i < n; i++) {
		if (path[i] != '/')
			continue;
		memcpy(above, path, i);
		above[i] = 0;
		(void)mkdir(above, 0700);
	}
	return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : -1;
}

static int disk_open_dir(const char *path, struct err *e)
{
	auto_fd int fd = -1;
	struct stat st;
	int ret;

	if (disk_make_dir(path) == 0)
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "cache directory '%s'", path);
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return err_set(e, -EPERM,
			       "cache directory '%s' belongs to another user, or other users "
			       "can write to it: use a directory of your own",
			       path);
	ret = fd;
	fd = -1;
	return ret;
}

/* disk_same_format - whether the format file has our parameters. */
static bool disk_same_format(int fd, const char *text)
{
	char was[128];
	ssize_t n = pread(fd, was, sizeof(was), 0);

	return n == (ssize_t)strlen(text) && memcmp(was, text, (size_t)n) == 0;
}

/* lock_shared - the exclusive lock is held for a moment only; earlier versions held it as long as
 * they ran. */
static int lock_shared(const struct disk_cache *d, const char *dir, struct err *e)
{
	for (int i = 0; flock(d->lock, LOCK_SH | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK)
			return err_sys(e, errno, "cannot lock cache directory '%s'", dir);
		if (i == LOCK_TRIES)
			return err_set(e, -EBUSY,
				       "cache directory '%s' is locked by another process", dir);
		(void)nanosleep(&(struct timespec){.tv_nsec = LOCK_MS * 1000000L}, NULL);
	}
	return 0;
}

/* share - use the files as they are, or recreate them if their sizes differ and no other process
 * uses them. */
static int share(struct disk_cache *d, const char *dir, int format, const char *text,
		 struct err *e)
{
	bool alone = flock(d->lock, LOCK_EX | LOCK_NB) == 0;
	int rc = 0;

	if (alone &&
	    !disk_same_format(format, text)) { /* recreate them, empty and of our sizes */
		if (ftruncate(format, 0) < 0)
			return err_sys(e, errno, "'format'");
		for (size_t i = 0; i < 2; i++)
			if (ftruncate(d->parts[i].tags, 0) < 0 ||
			    ftruncate(d->parts[i].data, 0) < 0)
				return err_sys(e, errno, "cannot reset the cache");
		rc = io_pwrite(format, text, strlen(text), 0, e);
	}
	rc = rc ? rc : lock_shared(d, dir, e);
	/* the lock is not upgraded atomically: another process may have recreated them meanwhile */
	if (!rc && !disk_same_format(format, text))
		rc = err_set(e, -EBUSY,
			     "cache directory '%s' is used by a mount with another cache_size: "
			     "give both the same",
			     dir);
	return rc;
}

static int open_parts(struct disk_cache *d, const char *dir, struct err *e)
{
	auto_fd int format = disk_open_file(d->dir, "format", e);
	char text[128];

	if (format < 0)
		return format;
	(void)snprintf(text, sizeof(text),
		       "nczarrfs cache 1\n%" PRIu64 " sets of %zu\n%" PRIu64 " sets of %zu\n",
		       d->parts[0].sets, d->parts[0].room, d->parts[1].sets, d->parts[1].room);
	for (size_t i = 0; i < 2; i++) {
		struct disk_part *p = &d->parts[i];

		p->tags = disk_open_file(d->dir, i ? "tags-1" : "tags-0", e);
		if (p->tags < 0)
			return p->tags;
		p->data = disk_open_file(d->dir, i ? "data-1" : "data-0", e);
		if (p->data < 0)
			return p->data;
	}
	return share(d, dir, format, text, e);
}

int disk_cache_open(const char *dir, uint64_t max_bytes, struct disk_cache **ret, struct err *e)
{
	struct disk_cache *d = alloc_array(1, sizeof(*d));
	int rc;

	if (!d)
		return err_nomem(e);
	d->lock = -1;
	for (size_t i = 0; i < 2; i++)
		d->parts[i].tags = d->parts[i].data = -1;
	for (size_t i = 0; i < STRIPES; i++)
		(void)pthread_mutex_init(&d->stripes[i], NULL); /* cannot fail with these */
	d->parts[0].room = SMALL;
	d->parts[1].room = LARGE;
	for (size_t i = 0; i < 2; i++) {
		uint64_t bytes = i ? max_bytes - max_bytes / 8 : max_bytes / 8;

		d->parts[i].sets = u64_max(1, bytes / WAYS / (TAG + HEAD + d->parts[i].room));
	}
	rc = d->dir = disk_open_dir(dir, e);
	if (rc >= 0)
		rc = d->lock = disk_open_file(d->dir, "lock", e);
	if (rc >= 0)
		rc = open_parts(d, dir, e);
	if (rc < 0) {
		disk_cache_close(d);
		return rc;
	}
	*ret = d;
	return 0;
}

void disk_cache_close(struct disk_cache *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < 2; i++) {
		close_fd(&d->parts[i].tags); /* lost blocks are fetched again */
		close_fd(&d->parts[i].data);
	}
	close_fd(&d->lock);
	close_fd(&d->dir);
	for (size_t i = 0; i < STRIPES; i++)
		(void)pthread_mutex_destroy(&d->stripes[i]);
	free(d);
}

/* ---- which block ---- */

static bool disk_add_text(EVP_MD_CTX *m, const char *text)
{
	uint8_t n[4];

	put_le32(n, (uint32_t)strlen(text));
	return EVP_DigestUpdate(m, n, 4) && EVP_DigestUpdate(m, text, strlen(text));
}

static bool add_number(EVP_MD_CTX *m, uint64_t v)
{
	uint8_t n[8];

	put_le64(n, v);
	return EVP_DigestUpdate(m, n, 8);
}

static bool ident_of(struct disk_cache *d, const char *name, const char *key,
		     const struct object_info *version, uint64_t block, size_t len,
		     struct ident *ret)
{
	EVP_MD_CTX *m = EVP_MD_CTX_new();
	bool ok = m && EVP_DigestInit_ex(m, EVP_sha256(), NULL) && disk_add_text(m, name) &&
		  disk_add_text(m, key) && add_number(m, version != NULL) &&
		  add_number(m, block);

	if (ok && version)
		ok = disk_add_text(m, version->etag) && add_number(m, version->size) &&
		     add_number(m, (uint64_t)version->changed) && add_number(m, version->weak);
	ok = ok && EVP_DigestFinal_ex(m, ret->digest, NULL);
	EVP_MD_CTX_free(m);
	if (!ok || len > LARGE)
		return false;
	ret->d = d;
	ret->p = &d->parts[len > SMALL];
	ret->set = get_le64(ret->digest) % ret->p->sets;
	memcpy(ret->tag, ret->digest + 8, 8);
	ret->tag[0] |= 1; /* zeros are an empty slot */
	ret->lock = &d->stripes[ret->set % STRIPES];
	return true;
}

static bool read_tags(const struct ident *id, uint8_t tags[WAYS * TAG])
{
	ssize_t n = pread(id->p->tags, tags, WAYS * TAG, (off_t)(id->set * WAYS * TAG));

	if (n < 0)
		return false;
	memset(tags + n, 0, WAYS * TAG - (size_t)n); /* sets without any write */
	return true;
}

static bool write_tag(const struct ident *id, size_t way, const uint8_t *tag, uint64_t used)
{
	uint8_t t[TAG] = {0};

	if (tag)
		memcpy(t, tag, 8);
	put_le64(t + 8, used);
	return io_pwrite(id->p->tags, t, TAG, (id->set * WAYS + way) * TAG, NULL) == 0;
}

static off_t disk_slot_at(const struct ident *id, size_t way)
{
	return (off_t)((id->set * WAYS + way) * (HEAD + id->p->room));
}

static size_t find_way(const struct ident *id, const uint8_t *tags, size_t from)
{
	while (from < WAYS && memcmp(tags + from * TAG, id->tag, 8) != 0)
		from++;
	return from;
}

/* ---- reading ---- */

/* disk_read_slot - whether the slot has this block, undamaged. */
static bool disk_read_slot(const struct ident *id, size_t way, uint8_t *out, size_t cap,
			   size_t *ret_len)
{
	uint8_t head[HEAD];
	struct iovec v[2] = {{head, HEAD}, {out, cap}};
	ssize_t n = preadv(id->p->data, v, cap ? 2 : 1, disk_slot_at(id, way));
	uint32_t len;

	if (n < HEAD || memcmp(head, magic, 8) != 0 ||
	    codec_crc32c_sum(0, head, 48) != get_le32(head + 48) ||
	    memcmp(head + 8, id->digest, 32) != 0)
		return false;
	len = get_le32(head + 40);
	if (len > cap || (size_t)n - HEAD < len ||
	    codec_crc32c_sum(0, out, len) != get_le32(head + 44))
		return false;
	*ret_len = len;
	return true;
}

/* after_read - update the tag: used, or damaged; unless another block has replaced it meanwhile. */
static void after_read(const struct ident *id, size_t way, const uint8_t *was, bool good)
{
	uint8_t tags[WAYS * TAG];
	uint64_t now = now_us(id->d);

	if (good && now - get_le64(was + way * TAG + 8) < USED_US)
		return;
	LOCK_SCOPE(id->lock);
	if (read_tags(id, tags) && memcmp(tags + way * TAG, was + way * TAG, TAG) == 0)
		(void)write_tag(id, way, good ? id->tag : NULL, good ? now : 0); /* a hint */
}

bool disk_cache_get(struct disk_cache *d, const char *name, const char *key,
		    const struct object_info *version, uint64_t block, uint8_t *out, size_t cap,
		    size_t *ret_len)
{
	uint8_t tags[WAYS * TAG];
	struct ident id;
	bool good = false;

	if (!ident_of(d, name, key, version, block, cap, &id))
		return false;
	(void)pthread_mutex_lock(id.lock);
	good = read_tags(&id, tags);
	(void)pthread_mutex_unlock(id.lock);
	if (!good)
		return false;
	for (size_t way = find_way(&id, tags, 0); way < WAYS;
	     way = find_way(&id, tags, way + 1)) {
		good = disk_read_slot(&id, way, out, cap, ret_len);
		after_read(&id, way, tags, good);
		if (good)
			return true;
	}
	return false;
}

/* ---- writing ---- */

/* fill_slot - clear the tag, write the slot, set the tag: a tag never names a partial block. */
static bool fill_slot(const struct ident *id, size_t way, const uint8_t *data, size_t len)
{
	uint8_t head[HEAD] = {0};
	struct iovec v[2];
	ssize_t n;

	memcpy(head, magic, 8);
	memcpy(head + 8, id->digest, 32);
	put_le32(head + 40, (uint32_t)len);
	put_le32(head + 44, codec_crc32c_sum(0, data, len));
	put_le32(head + 48, codec_crc32c_sum(0, head, 48));
	v[0] = (struct iovec){head, HEAD};
	v[1].iov_len = len;
	memcpy(&v[1].iov_base, &data, sizeof(data)); /* it is only read */
	if (!write_tag(id, way, NULL, 0))
		return false;
	n = pwritev(id->p->data, v, len ? 2 : 1, disk_slot_at(id, way));
	return n == (ssize_t)(HEAD + len) && write_tag(id, way, id->tag, now_us(id->d));
}

void disk_cache_put(struct disk_cache *d, const char *name, const char *key,
		    const struct object_info *version, uint64_t block, const uint8_t *data,
		    size_t len)
{
	uint8_t tags[WAYS * TAG];
	struct ident id;
	size_t way;

	if (clock_ns() < atomic_load(&d->paused) ||
	    !ident_of(d, name, key, version, block, len, &id))
		return;
	LOCK_SCOPE(id.lock);
	if (!read_tags(&id, tags))
		return;
	way = find_way(&id, tags, 0);
	if (way < WAYS && version)
		return; /* the same bytes, or damage that its checksum finds */
	if (way == WAYS) { /* replace the oldest */
		way = 0;
		for (size_t i = 1; i < WAYS; i++)
			if (get_le64(tags + i * TAG + 8) < get_le64(tags + way * TAG + 8))
				way = i;
	}
	if (!fill_slot(&id, way, data, len))
		atomic_store(&d->paused, clock_ns() + PAUSE_NS);
}
