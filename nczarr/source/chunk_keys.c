/* chunk_keys.c - keys of stored objects: "t/3.0", "t/3/0", "t/c/3/0", and what a scalar is called.
 *
 * Coordinates are of the array's axes in their own order, whatever order the elements have inside
 * an object. Spec: Zarr v2, "Chunks"; Zarr v3, "Chunk key encoding". */
#include "nczarr/source/chunks.h"

#include <errno.h>
#include <string.h>

#include "nczarr/chunk_key.h"

void zr_unravel(uint32_t rank, const uint64_t *grid, uint64_t linear, uint64_t *ret)
{
	for (uint32_t d = rank; d-- > 0;) {
		ret[d] = grid[d] ? linear % grid[d] : 0;
		linear = grid[d] ? linear / grid[d] : 0;
	}
}

uint64_t zr_ravel(uint32_t rank, const uint64_t *grid, const uint64_t *coords)
{
	uint64_t linear = 0;

	for (uint32_t d = 0; d < rank; d++)
		linear = linear * grid[d] + coords[d];
	return linear;
}

/* maker - a key in the making; len never passes the room for the longest key. */
struct maker {
	char *out;
	size_t len;
	bool full;
};

static void put(struct maker *k, const char *s, size_t n)
{
	if (n > STORE_KEY_MAX - k->len) {
		k->full = true;
		return;
	}
	memcpy(k->out + k->len, s, n);
	k->len += n;
}

static void put_number(struct maker *k, uint64_t v)
{
	char text[20];
	size_t at = sizeof(text);

	do {
		text[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	put(k, text + at, sizeof(text) - at);
}

/* put_slash - in front of everything but the key's beginning. */
static void put_slash(struct maker *k)
{
	if (k->len > 0)
		put(k, "/", 1);
}

static int finish(struct maker *k, const struct zr_meta *m, struct err *e)
{
	if (k->full)
		return err_set(e, -ERANGE, "'%.200s': a chunk's key would exceed %d bytes",
			       m->key, STORE_KEY_MAX);
	k->out[k->len] = '\0';
	return 0;
}

int zr_level_key(const struct zr_meta *m, const uint64_t *coords, uint32_t level,
		 char out[ZR_OBJECT_KEY], struct err *e)
{
	struct maker k = {.out = out};
	bool joined = false; /* whether something stands before the separator */

	put(&k, m->key, strlen(m->key));
	if (m->prefixed && (level > 0 || zr_is_nested(m))) {
		put_slash(&k);
		put(&k, "c", 1);
		joined = true;
	}
	for (uint32_t d = 0; d < level; d++) {
		if (joined)
			put(&k, &m->separator, 1);
		else
			put_slash(&k);
		joined = true;
		put_number(&k, coords[d]);
	}
	return finish(&k, m, e);
}

int zr_object_key(const struct zr_meta *m, const uint64_t *coords, char out[ZR_OBJECT_KEY],
		  struct err *e)
{
	struct maker k = {.out = out};

	if (m->rank > 0)
		return zr_level_key(m, coords, m->rank, out, e);
	put(&k, m->key, strlen(m->key));
	put_slash(&k);
	put(&k, m->prefixed ? "c" : "0", 1);
	return finish(&k, m, e);
}

int zr_name_parse(const struct zr_meta *m, const uint64_t *grid, uint32_t level,
		  const char *name, uint64_t *ret)
{
	uint64_t linear = 0, coord;
	size_t n = strlen(name);

	if (zr_is_nested(m))
		return level < m->rank ? zr_key_coord(name, n, grid[level], ret) : -EINVAL;
	if (m->prefixed) {
		if (n < 2 || name[0] != 'c' || name[1] != m->separator)
			return -EINVAL;
		name += 2;
		n -= 2;
	}
	for (uint32_t d = 0; d < m->rank; d++) {
		const char *stop = memchr(name, m->separator, n);
		size_t len = stop ? (size_t)(stop - name) : n;

		/* every coordinate but the last is followed by a separator */
		if ((stop == NULL) != (d + 1 == m->rank) ||
		    zr_key_coord(name, len, grid[d], &coord))
			return -EINVAL;
		linear = linear * grid[d] + coord;
		name += len + (stop != NULL);
		n -= len + (stop != NULL);
	}
	*ret = linear;
	return 0;
}

bool zr_coords_parse(const struct zr_meta *m, const char *name, const uint64_t *grid,
		     uint64_t *ret)
{
	uint64_t linear;

	if (m->rank == 0)
		return strcmp(name, m->prefixed ? "c" : "0") == 0;
	if (!zr_is_nested(m)) {
		if (strchr(name, '/') || zr_name_parse(m, grid, 0, name, &linear))
			return false;
		zr_unravel(m->rank, grid, linear, ret);
		return true;
	}
	if (m->prefixed) {
		if (name[0] != 'c' || name[1] != '/')
			return false;
		name += 2;
	}
	for (uint32_t d = 0; d < m->rank; d++) {
		const char *stop = strchr(name, '/');
		size_t n = stop ? (size_t)(stop - name) : strlen(name);

		if ((stop == NULL) != (d + 1 == m->rank) ||
		    zr_key_coord(name, n, grid[d], &ret[d]))
			return false;
		name += n + (stop != NULL);
	}
	return true;
}
