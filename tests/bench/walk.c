/* SPDX-License-Identifier: BSD-3-Clause */
/* walk.c - what it costs to list a directory with the size of each file, as any C program would:
 * the yardstick for opening a Zarr tree.
 *
 * usage: walk DIRECTORY [PASSES]. One line of JSON a pass. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void walk(const char *path)
{
	double begin = now();
	DIR *d = opendir(path);
	uint64_t n = 0, bytes = 0;
	struct stat st;

	if (!d) {
		perror(path);
		exit(1);
	}
	for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			bytes += (uint64_t)st.st_size;
		n++;
	}
	closedir(d);
	printf("{\"seconds\": %.6f, \"files\": %" PRIu64 ", \"bytes\": %" PRIu64 "}\n",
	       now() - begin, n, bytes);
}

int main(int argc, char **argv)
{
	int passes = argc > 2 ? atoi(argv[2]) : 1;

	if (argc < 2) {
		fprintf(stderr, "usage: walk DIRECTORY [PASSES]\n");
		return 2;
	}
	while (passes-- > 0)
		walk(argv[1]);
	return 0;
}
