/* SPDX-License-Identifier: BSD-3-Clause */
/* io.c - all handling of EINTR, short reads and short writes. */
#include "base/os/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/clock.h"

int io_pread(int fd, void *out, size_t n, uint64_t off, struct err *e)
{
	uint8_t *p = out;
	uint64_t end;

	if (ckd_add(&end, off, (uint64_t)n) || end > INT64_MAX)
		return err_set(e, -EIO, "offset %" PRIu64 " plus %zu bytes overflows", off, n);
	while (n > 0) {
		ssize_t got = pread(fd, p, n, (off_t)off);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, errno, "cannot read %zu bytes at offset %" PRIu64, n,
				       off);
		if (got == 0)
			return err_set(e, -EIO,
				       "the file ends before offset %" PRIu64
				       ": it was truncated or replaced",
				       end);
		p += got;
		n -= (size_t)got;
		off += (uint64_t)got;
	}
	return 0;
}

int io_read_file(const char *path, size_t max, char **ret, size_t *ret_n, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "'%s'", path);
	if (!S_ISREG(st.st_mode) || (size_t)st.st_size > max)
		return err_set(e, -EINVAL, "'%s' is not a regular file of at most %zu bytes",
			       path, max);
	*ret_n = (size_t)st.st_size;
	*ret = alloc_array(*ret_n + 1, 1);
	return *ret ? io_pread(fd, *ret, *ret_n, 0, e) : err_nomem(e);
}

int io_pwrite(int fd, const void *p, size_t n, uint64_t off, struct err *e)
{
	const uint8_t *at = p;
	uint64_t end;

	if (ckd_add(&end, off, (uint64_t)n) || end > INT64_MAX)
		return err_set(e, -EFBIG, "offset %" PRIu64 " plus %zu bytes overflows", off, n);
	while (n > 0) {
		ssize_t put = pwrite(fd, at, n, (off_t)off);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return err_sys(e, errno, "cannot write %zu bytes at offset %" PRIu64, n,
				       off);
		if (put == 0)
			return err_set(e, -EIO,
				       "writing %zu bytes at offset %" PRIu64 " wrote nothing",
				       n, off);
		at += put;
		n -= (size_t)put;
		off += (uint64_t)put;
	}
	return 0;
}

int io_sync(int fd, bool all, struct err *e)
{
	int rc;

	do
		rc = all ? fsync(fd) : fdatasync(fd);
	while (rc < 0 && errno == EINTR);
	return rc < 0 ? err_sys(e, errno, "fsync") : 0;
}

int io_start_sync(int fd, uint64_t off, uint64_t n, struct err *e)
{
	if (off > INT64_MAX || n > INT64_MAX ||
	    sync_file_range(fd, (off_t)off, (off_t)n, SYNC_FILE_RANGE_WRITE) == 0 ||
	    errno == EINVAL || errno == ESPIPE || errno == ENOSYS || errno == EPERM)
		return 0;
	return err_sys(e, errno, "cannot write to the disk");
}

int64_t io_racy_ns(int64_t changed)
{
	const int64_t second = CLOCK_NS_PER_S;
	const int64_t tick = changed % second == 0 ? 2 * second : second / 50;
	const int64_t step = second / 100; /* resolution of the clock below at HZ=100 */
	struct timespec now;
	int64_t age;

	/* the clock that file systems use for timestamps */
	if (clock_gettime(CLOCK_REALTIME_COARSE, &now) < 0)
		return tick;
	if (ckd_sub(&age, clock_ns_of(&now), changed))
		return 0;
	return age < tick && age > -tick ? tick - age + step : 0;
}
