/* SPDX-License-Identifier: BSD-3-Clause */
/* download.c - copies a remote HDF4 file before it is opened: libhdf4 reads only files. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/clock.h"
#include "base/os/io.h"
#include "hdf5view/hdf4/hdf4_int.h"

#define PIECE ((size_t)1 << 20)
#define PREFETCH ((uint64_t)8 << 20)

/* temporary - create a file without a name, also if the file system has no O_TMPFILE. */
static int temporary(const char **ret_dir, struct err *e)
{
	const char *dir = getenv("TMPDIR");
	auto_free char *name = NULL;
	int fd;

	*ret_dir = dir = dir && dir[0] ? dir : "/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	if (asprintf(&name, "%s/nczarrfs-XXXXXX", dir) < 0) {
		name = NULL;
		return err_nomem(e);
	}
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "cannot create a temporary file in '%.200s' (TMPDIR)",
			       dir);
	(void)unlink(name); /* it stays as long as it is open */
	return fd;
}

/* download_want_on - prefetch the next part of the file. */
static void download_want_on(struct blob *b, uint64_t at, uint64_t *wanted)
{
	struct blob_part p = {.off = *wanted};

	if (at + PREFETCH / 2 < *wanted || *wanted >= b->size)
		return;
	p.len = u64_min(PREFETCH, b->size - *wanted);
	blob_want(b, &p, 1);
	*wanted += p.len;
}

static int download_copy(struct blob *b, int fd, uint64_t timeout_ms, struct err *e)
{
	int64_t end = timeout_ms && timeout_ms < INT64_MAX / 2
			      ? clock_ms() + (int64_t)timeout_ms
			      : INT64_MAX;
	auto_free uint8_t *piece = alloc_array(PIECE, 1);
	uint64_t wanted = 0;

	if (!piece)
		return err_nomem(e);
	for (uint64_t at = 0; at < b->size; at += PIECE) {
		size_t n = (size_t)u64_min(PIECE, b->size - at);
		int rc;

		download_want_on(b, at, &wanted);
		rc = blob_read(b, at, piece, n, e);
		rc = rc ? rc : io_pwrite(fd, piece, n, at, e);
		if (rc < 0)
			return rc;
		if (clock_ms() > end)
			return err_set(e, -ETIMEDOUT,
				       "after %" PRIu64 " seconds only %" PRIu64 " of %" PRIu64
				       " bytes are downloaded: use a longer -o open_timeout",
				       (timeout_ms + 999) / 1000, at + n, b->size);
	}
	return 0;
}

int h4_fetch(struct blob *b, uint64_t timeout_ms, int *ret, struct err *e)
{
	const char *dir;
	char own[64];
	auto_fd int fd = -1;
	int rc;

	if (b->size > H4_DOWNLOAD_MAX)
		return err_set(
			e, -EFBIG,
			"a remote HDF4 file is downloaded before it is opened, and its %" PRIu64
			" bytes exceed the %" PRIu64 " bytes that an HDF4 file can have",
			b->size, H4_DOWNLOAD_MAX);
	fd = temporary(&dir, e);
	if (fd < 0)
		return fd;
	rc = download_copy(b, fd, timeout_ms, e);
	if (rc < 0)
		return err_wrap(e, rc, "cannot copy it to '%.100s' (TMPDIR)", dir);
	/* the library's process may only read it */
	(void)snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
	*ret = open(own, O_RDONLY | O_CLOEXEC);
	return *ret < 0 ? err_sys(e, errno, "cannot copy it to '%.100s' (TMPDIR)", dir) : 0;
}
