/* SPDX-License-Identifier: BSD-3-Clause */
/* inode_map.c - the hash of names, joining of paths, and the clock of the mirror. */
#include <string.h>
#include <time.h>

#include "fusefs/mirror/mirror_int.h"

uint64_t mirror_hash(const struct mirror *m, const char *text, size_t len)
{
	uint64_t h = m->seed;

	for (size_t i = 0; i < len; i++) {
		h = (h ^ (unsigned char)text[i]) * 0x9e3779b97f4a7c15u;
		h ^= h >> 32;
	}
	return h;
}

char *path_join(const char *dir, const char *name)
{
	size_t n = strlen(dir), k = strlen(name);
	char *path = malloc(n + k + 2);

	if (!path)
		return NULL;
	memcpy(path, dir, n);
	if (n)
		path[n++] = '/';
	memcpy(path + n, name, k + 1);
	return path;
}
