/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics.h - counters that cost a few nanoseconds, gauges, and their output as OpenMetrics text.
 *
 * The lists below are the only place where a counter or gauge is declared. Counting takes no lock
 * and allocates nothing: each thread adds to its own copy, and readers sum the copies. Any thread
 * may call any function except metrics_gauge_from. docs/reference/metrics-and-attributes.md has the
 * same lists, and a test compares them. */
#ifndef BASE_OBSERVE_METRICS_H
#define BASE_OBSERVE_METRICS_H

#include <stdatomic.h>

#include "base/core/buf.h"

/* Families: X(name, unit, label, description). Names are as in OpenMetrics, without the prefix
 * "nczarrfs_"; the unit is the end of the name; label "" means one value without a label. */
#define METRICS_FAMILIES(X)                                                                    \
	X(REQUESTS, "requests", "", "op", "Requests from the kernel.")                         \
	X(READ_BYTES, "read_bytes", "bytes", "", "Bytes returned to readers.")                 \
	X(WRITTEN_BYTES, "written_bytes", "bytes", "", "Bytes accepted from writers.")         \
	X(CHUNKS, "chunks", "", "plan", "Chunk reads started, by delivery plan.")              \
	X(CHUNKS_MADE, "chunks_made", "", "", "Chunks decoded, encoded or framed.")            \
	X(RECHUNK_READS, "rechunk_reads", "", "",                                              \
	  "Chunks of the source read to assemble chunks of other shapes.")                     \
	X(CACHE_HITS, "cache_hits", "", "cache", "Cache look-ups that found an entry.")        \
	X(CACHE_MISSES, "cache_misses", "", "cache", "Cache look-ups that found no entry.")    \
	X(ERRORS, "errors", "", "errno", "Requests answered with an error, by errno.")         \
	X(FAULTS, "faults", "", "component", "Faults, by component.")                          \
	X(WORKERS_STARTED, "workers_started", "", "",                                          \
	  "Worker processes started for libraries and plugins.")                               \
	X(WORKERS_DIED, "workers_died", "", "", "Worker processes ended by a signal.")         \
	X(REMOTE_REQUESTS, "remote_requests", "", "", "Requests to remote servers.")           \
	X(REMOTE_READ_BYTES, "remote_read_bytes", "bytes", "",                                 \
	  "Bytes received from remote servers.")                                               \
	X(COMMITS, "commits", "", "result", "Commits of pending writes.")                      \
	X(LOG_LINES, "log_lines", "", "level", "Lines logged.")                                \
	X(LOG_KEPT_BACK, "log_kept_back", "", "", "Log lines suppressed and only counted.")

/* Counters: X(id, family, value of the label). Those of a family are adjacent. */
#define METRICS_COUNTERS(X)                                                                    \
	X(REQ_LOOKUP, REQUESTS, "lookup")                                                      \
	X(REQ_GETATTR, REQUESTS, "getattr")                                                    \
	X(REQ_SETATTR, REQUESTS, "setattr")                                                    \
	X(REQ_READLINK, REQUESTS, "readlink")                                                  \
	X(REQ_FORGET, REQUESTS, "forget")                                                      \
	X(REQ_OPEN, REQUESTS, "open")                                                          \
	X(REQ_CREATE, REQUESTS, "create")                                                      \
	X(REQ_READ, REQUESTS, "read")                                                          \
	X(REQ_WRITE, REQUESTS, "write")                                                        \
	X(REQ_FLUSH, REQUESTS, "flush")                                                        \
	X(REQ_RELEASE, REQUESTS, "release")                                                    \
	X(REQ_FSYNC, REQUESTS, "fsync")                                                        \
	X(REQ_OPENDIR, REQUESTS, "opendir")                                                    \
	X(REQ_READDIR, REQUESTS, "readdir")                                                    \
	X(REQ_MKDIR, REQUESTS, "mkdir")                                                        \
	X(REQ_REMOVE, REQUESTS, "remove")                                                      \
	X(REQ_RENAME, REQUESTS, "rename")                                                      \
	X(REQ_LINK, REQUESTS, "link")                                                          \
	X(REQ_STATFS, REQUESTS, "statfs")                                                      \
	X(REQ_XATTR, REQUESTS, "xattr")                                                        \
	X(REQ_IOCTL, REQUESTS, "ioctl")                                                        \
	X(READ_BYTES, READ_BYTES, "")                                                          \
	X(WRITTEN_BYTES, WRITTEN_BYTES, "")                                                    \
	X(CHUNK_PASS, CHUNKS, "pass")                                                          \
	X(CHUNK_HEAD, CHUNKS, "head")                                                          \
	X(CHUNK_FRAME, CHUNKS, "frame")                                                        \
	X(CHUNK_FILL, CHUNKS, "fill")                                                          \
	X(CHUNK_DECODE, CHUNKS, "decode")                                                      \
	X(CHUNK_ENCODE, CHUNKS, "encode")                                                      \
	X(CHUNK_VLEN, CHUNKS, "vlen")                                                          \
	X(CHUNK_FIXED, CHUNKS, "fixed")                                                        \
	X(CHUNKS_MADE, CHUNKS_MADE, "")                                                        \
	X(RECHUNK_READS, RECHUNK_READS, "")                                                    \
	X(HIT_DECODED, CACHE_HITS, "decoded")                                                  \
	X(HIT_BLOCKS, CACHE_HITS, "blocks")                                                    \
	X(HIT_DISK, CACHE_HITS, "disk")                                                        \
	X(MISS_DECODED, CACHE_MISSES, "decoded")                                               \
	X(MISS_BLOCKS, CACHE_MISSES, "blocks")                                                 \
	X(MISS_DISK, CACHE_MISSES, "disk")                                                     \
	X(ERR_EIO, ERRORS, "EIO")                                                              \
	X(ERR_ESTALE, ERRORS, "ESTALE")                                                        \
	X(ERR_ENOMEM, ERRORS, "ENOMEM")                                                        \
	X(ERR_EINTR, ERRORS, "EINTR")                                                          \
	X(ERR_EROFS, ERRORS, "EROFS")                                                          \
	X(ERR_EPERM, ERRORS, "EPERM")                                                          \
	X(ERR_EACCES, ERRORS, "EACCES")                                                        \
	X(ERR_EINVAL, ERRORS, "EINVAL")                                                        \
	X(ERR_ENOSPC, ERRORS, "ENOSPC")                                                        \
	X(ERR_OTHER, ERRORS, "other")                                                          \
	X(FAULT_FUSE, FAULTS, "fuse")                                                          \
	X(FAULT_SOURCE, FAULTS, "source")                                                      \
	X(FAULT_CODEC, FAULTS, "codec")                                                        \
	X(FAULT_CACHE, FAULTS, "cache")                                                        \
	X(FAULT_HTTP, FAULTS, "http")                                                          \
	X(FAULT_WRITE, FAULTS, "write")                                                        \
	X(FAULT_ISOLATE, FAULTS, "isolate")                                                    \
	X(WORKERS_STARTED, WORKERS_STARTED, "")                                                \
	X(WORKERS_DIED, WORKERS_DIED, "")                                                      \
	X(REMOTE_REQUESTS, REMOTE_REQUESTS, "")                                                \
	X(REMOTE_READ_BYTES, REMOTE_READ_BYTES, "")                                            \
	X(COMMITS_DONE, COMMITS, "done")                                                       \
	X(COMMITS_FAILED, COMMITS, "failed")                                                   \
	X(LOG_ERRORS, LOG_LINES, "error")                                                      \
	X(LOG_WARNINGS, LOG_LINES, "warn")                                                     \
	X(LOG_INFOS, LOG_LINES, "info")                                                        \
	X(LOG_DEBUGS, LOG_LINES, "debug")                                                      \
	X(LOG_KEPT_BACK, LOG_KEPT_BACK, "")

/* Gauges: X(id, name, unit, label, value of the label, description). */
#define METRICS_GAUGES(X)                                                                      \
	X(START_TIME, "start_time_seconds", "seconds", "", "",                                 \
	  "Time of the mount, in seconds since 1970.")                                         \
	X(REQUESTS_RUNNING, "requests_running", "", "", "",                                    \
	  "Requests that are not answered yet.")                                               \
	X(OPEN_DATASETS, "open_datasets", "", "", "", "Open datasets.")                        \
	X(PENDING_COMMITS, "pending_commits", "", "", "", "Datasets with pending writes.")     \
	X(MEM_DECODED, "memory_bytes", "bytes", "budget", "decoded",                           \
	  "Bytes in use, by memory budget.")                                                   \
	X(MEM_INDEX, "memory_bytes", "bytes", "budget", "index",                               \
	  "Bytes in use, by memory budget.")                                                   \
	X(MEM_MODEL, "memory_bytes", "bytes", "budget", "model",                               \
	  "Bytes in use, by memory budget.")                                                   \
	X(MEM_REMOTE, "memory_bytes", "bytes", "budget", "remote",                             \
	  "Bytes in use, by memory budget.")                                                   \
	X(MEM_STAGING, "memory_bytes", "bytes", "budget", "staging",                           \
	  "Bytes in use, by memory budget.")

enum metric {
#define METRIC_ID(id, family, value) M_##id,
	METRICS_COUNTERS(METRIC_ID)
#undef METRIC_ID
	METRICS
};

enum gauge {
#define GAUGE_ID(id, name, unit, label, value, help) G_##id,
	METRICS_GAUGES(GAUGE_ID)
#undef GAUGE_ID
	GAUGES
};

/* The last copy is shared by all threads that found the others in use. */
enum { METRICS_COPIES = 64, METRICS_SHARED = METRICS_COPIES - 1 };

extern _Atomic uint64_t metrics_counts[METRICS_COPIES][(METRICS + 7) / 8 * 8];
extern _Thread_local unsigned metrics_copy; /* 1 + this thread's copy; 0: none yet */
unsigned metrics_take_copy(void);

/* metrics_add, metrics_count - add n, add one. */
static inline void metrics_add(enum metric id, uint64_t n)
{
	const unsigned copy = (metrics_copy ? metrics_copy : metrics_take_copy()) - 1;
	_Atomic uint64_t *at = &metrics_counts[copy][id];

	if (copy == METRICS_SHARED)
		(void)atomic_fetch_add_explicit(at, n, memory_order_relaxed);
	else /* only this thread writes it */
		atomic_store_explicit(at, atomic_load_explicit(at, memory_order_relaxed) + n,
				      memory_order_relaxed);
}

static inline void metrics_count(enum metric id)
{
	metrics_add(id, 1);
}

/* metrics_sum - the value of a counter. */
uint64_t metrics_sum(enum metric id);

/* metrics_error - count an errno (positive) that a program received. */
void metrics_error(int errnum);

/* metrics_gauge_add - delta may be negative. metrics_gauge_set - set the value. */
void metrics_gauge_add(enum gauge id, int64_t delta);
void metrics_gauge_set(enum gauge id, int64_t value);
/* metrics_gauge_from - read a gauge by calling fn, which must not take a lock that a thread may
 * hold while it waits. Before threads start; NULL: stop calling fn, when no thread reads gauges any
 * more. */
void metrics_gauge_from(enum gauge id, int64_t (*fn)(void *arg), void *arg);
int64_t metrics_gauge(enum gauge id);

/* metrics_each - call fn for every value, counters first, families together. family: without
 * prefix; label and value are "" where there is none. */
struct metric_value {
	const char *family, *unit, *label, *value, *help;
	bool counter;
	bool first;   /* the first of its family */
	uint64_t n;   /* 0 for a gauge below 0 */
};
void metrics_each(void (*fn)(void *arg, const struct metric_value *v), void *arg);

/* metrics_text - append all values as OpenMetrics text 1.0, with "# EOF" at the end. mount: the
 * value of label "mount". Spec: OpenMetrics 1.0, "Text format". */
void metrics_text(const char *mount, const char *version, struct buf *out);

#endif
