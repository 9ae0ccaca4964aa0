/* SPDX-License-Identifier: BSD-3-Clause */
/* reply.c - translates errors to the kernel's errnos and to lines of the log. */
#include "fusefs/app/fusefs.h"

#include <errno.h>
#include <string.h>

#include "base/core/hash.h"
#include "base/observe/log.h"
#include "base/observe/metrics.h"
#include "base/os/lock.h"

int reply_errno(int rc, bool may_be_absent)
{
	switch (-rc) {
	case ENOENT:
	case ENOTDIR:
		return may_be_absent ? -rc : EIO;
	case ESTALE:
	case ENOMEM:
	case EROFS:
	case ENAMETOOLONG:
	case EINTR: /* the program does not wait for the answer any more */
		return -rc;
	default: /* EBADMSG, EOPNOTSUPP, ERANGE, EINVAL, EIO and the errors of system calls */
		return EIO;
	}
}

int reply_errno_write(int rc, bool may_be_absent)
{
	switch (-rc) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
	case EPERM:
	case EACCES:
	case EEXIST:
	case ENOTEMPTY:
	case EINVAL:
	case EOPNOTSUPP:
	case EXDEV:
	case EBUSY:
	case ETXTBSY:
		return -rc;
	case EISDIR:
		return may_be_absent ? EISDIR : EIO;
	default:
		return reply_errno(rc, may_be_absent);
	}
}

static bool once_locked(const struct reply_log *log, uint64_t hash)
{
	for (uint32_t i = 0; i < log->n_once; i++)
		if (log->once[i] == hash)
			return true;
	return false;
}

bool reply_log_done(struct reply_log *log, const char *text)
{
	LOCK_SCOPE(&log->lock);

	return once_locked(log, hash_text(HASH_SEED, text));
}

void reply_log_once(struct reply_log *log, const char *text)
{
	const uint64_t hash = hash_text(HASH_SEED, text);
	LOCK_SCOPE(&log->lock);

	if (!once_locked(log, hash) && log->n_once < ARRAY_LEN(log->once))
		log->once[log->n_once++] = hash;
}

void reply_log(struct fs *fs, const struct err *e)
{
	const char *text = e->msg, *path = fs->path ? fs->path : "";
	const bool once = e->code == -EOPNOTSUPP;
	/* errors of a mirror's files begin with their paths */
	const bool named = !*path || (*text == '\'' && strncmp(text + 1, path, strlen(path)) == 0);
	bool put;

	if (!text[0])
		return; /* logged when it occurred */
	if (once && reply_log_done(&fs->log, text))
		return;
	put = named ? log_put(LOG_COMPONENT, LOG_ERROR, "%s", text)
		    : log_put(LOG_COMPONENT, LOG_ERROR, "'%s': %s", path, text);
	if (put && once)
		reply_log_once(&fs->log, text);
}

/* ops_reply_count - count an error. The existence or absence of a name is an answer, not an
 * error. */
static void ops_reply_count(int errnum, enum metric where)
{
	if (errnum == ENOENT || errnum == ENOTDIR || errnum == EEXIST || errnum == ENOTEMPTY ||
	    errnum == EISDIR)
		return;
	metrics_error(errnum);
	if (where == M_FAULT_WRITE && errnum != EINTR && errnum != ESTALE)
		metrics_count(where);
}

void reply_fail(struct fs *fs, fuse_req_t req, int rc, bool may_be_absent, bool writes,
		const struct err *e)
{
	const int errnum = writes ? reply_errno_write(rc, may_be_absent)
				  : reply_errno(rc, may_be_absent);

	if (errnum == ESTALE || errnum == ENOENT || errnum == ENOTDIR || errnum == EINTR ||
	    (writes && (errnum == EEXIST || errnum == ENOTEMPTY || errnum == EISDIR)))
		log_debug("%s", e->msg);
	else
		reply_log(fs, e);
	ops_reply_count(errnum, writes ? M_FAULT_WRITE : M_FAULT_FUSE);
	(void)fuse_reply_err(req, errnum); /* fails only if the request was interrupted */
}
