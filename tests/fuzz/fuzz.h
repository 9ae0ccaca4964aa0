/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz.h - what targets share. One thread. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/core/err.h"
#include "base/os/io.h"
#include "base/core/cursor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* require - a property; says which one does not hold. */
#define require(ok) ((ok) ? (void)0 : fuzz_failed(#ok, __FILE__, __LINE__))

static inline _Noreturn void fuzz_failed(const char *what, const char *file, int line)
{
	(void)fprintf(stderr, "%s:%d: not so: %s\n", file, line, what); /* before the end */
	abort();
}

/* failed_well - a failure has an errno and says something. */
static inline void failed_well(int rc, const struct err *e)
{
	require(rc < 0 && rc > -4096 && e->code == rc && e->msg[0]);
}

/* text_of - the bytes up to the first NUL, or all, as a text of its own: new. */
static inline char *text_of(const void *data, size_t size)
{
	size_t n = strnlen(data, size);
	char *text = malloc(n + 1);

	require(text != NULL);
	memcpy(text, data, n);
	text[n] = '\0';
	return text;
}

/* more_of - whether anything is left that can be read. */
static inline bool more_of(const struct slice *s)
{
	return s->len > 0 && slice_ok(s);
}

/* rest_of - what is left of an input, and then nothing. */
static inline struct slice rest_of(struct slice *s)
{
	struct slice all = *s;

	s->p += s->len;
	s->len = 0;
	return all;
}

/* piece_of - as many bytes as the next two say, or what is left. */
static inline struct slice piece_of(struct slice *s)
{
	size_t n = rd_le16(s);

	if (s->bad)
		return slice_of(s->p, 0);
	if (n > s->len)
		n = s->len;
	return slice_of(rd_bytes(s, n), n);
}

/* piece_text - the same as a text. */
static inline char *piece_text(struct slice *s)
{
	struct slice piece = piece_of(s);

	return text_of(piece.p ? piece.p : (const uint8_t *)"", piece.len);
}

/* memory_file - a descriptor with these bytes, at its beginning. */
static inline int memory_file(const void *data, size_t n)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	require(fd >= 0 && io_pwrite(fd, data, n, 0, NULL) == 0);
	return fd;
}

/* put_file - bytes as a file of a directory. */
static inline void put_file(int dir, const char *name, const void *data, size_t n)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	require(fd >= 0 && (n == 0 || io_pwrite(fd, data, n, 0, NULL) == 0));
	(void)close(fd); /* in memory */
}

/* fuzz_dir - a directory of this process, in memory where there is such a place, made once; its
 * path. It is removed at exit, when it is empty. */
static char fuzz_path[64];

static inline void fuzz_dir_remove(void)
{
	(void)rmdir(fuzz_path);
}

static inline const char *fuzz_dir(void)
{
	if (!fuzz_path[0]) {
		(void)snprintf(fuzz_path, sizeof(fuzz_path), "%s/nczarrfs-fuzz-XXXXXX",
			       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
		require(mkdtemp(fuzz_path) != NULL && atexit(fuzz_dir_remove) == 0);
	}
	return fuzz_path;
}

#endif
