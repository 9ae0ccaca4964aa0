/* SPDX-License-Identifier: BSD-3-Clause */
/* inode_map.c - the hash of names, joining of paths, and sorted names of directories. */
#include <string.h>

#include "fusefs/mirror/mirror_int.h"
#include "fusefs/mirror/view.h"

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

static int no_dots(const struct dirent *d)
{
	return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

static int inode_map_by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int dir_names(const char *dir, struct dirent ***ret)
{
	return scandir(dir, ret, no_dots, inode_map_by_name);
}
