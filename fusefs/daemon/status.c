/* SPDX-License-Identifier: BSD-3-Clause */
/* status.c - the state of a mount as text, and the ioctl that returns it. */
#include "fusefs/daemon/status.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/core/clock.h"
#include "base/observe/log.h"
#include "base/observe/metrics.h"
#include "base/core/str.h"
#include "base/os/lock.h"
#include "fusefs/daemon/umount_wait.h"
#include "fusefs/daemon/control_socket.h"

enum {
	KEPT = 16, /* answers of several pages at a time */
	ANSWER_MAX = 1 << 20,
};

/* daemon_status_answer - an answer with further pages. */
struct daemon_status_answer {
	uint64_t id; /* 0: none */
	uid_t uid;   /* user who made the request */
	uint8_t *data;
	size_t len;
};

struct status {
	const struct cfg *cfg;
	char *mountpoint, *view, *format;
	uid_t owner;
	int64_t since; /* clock_ms */
	pthread_mutex_t lock;
	uint64_t last_id;         /* lock */
	struct daemon_status_answer kept[KEPT]; /* lock */
};

int status_new(const struct cfg *cfg, const char *mountpoint, const char *view, const char *format,
	       struct status **ret, struct err *e)
{
	struct status *s = alloc_array(1, sizeof(*s));

	if (!s)
		return err_nomem(e);
	(void)pthread_mutex_init(&s->lock, NULL);
	s->cfg = cfg;
	s->owner = geteuid();
	s->mountpoint = strdup(mountpoint);
	s->view = strdup(view);
	s->format = strdup(format);
	s->since = clock_ms();
	metrics_gauge_set(G_START_TIME, time(NULL));
	if (!s->mountpoint || !s->view || !s->format) {
		status_free(s);
		return err_nomem(e);
	}
	*ret = s;
	return 0;
}

void status_free(struct status *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < KEPT; i++)
		free(s->kept[i].data);
	free(s->mountpoint);
	free(s->view);
	free(s->format);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

/* ---- text ---- */

struct writing {
	struct buf *out;
	bool json, private;
	bool any; /* a value of this family, or an option, was written */
};

/* put_option - options that name other files are shown to the mount's owner only. */
static void put_option(void *arg, const char *name, const char *value, bool said, bool is_path)
{
	struct writing *w = arg;

	if (is_path && !w->private)
		value = value[0] ? "(shown to its owner only)" : "";
	if (w->json) {
		str_put_member(w->out, name, value);
	} else if (said) {
		buf_puts(w->out, w->any ? "," : "");
		str_put_plain(w->out, name);
		buf_puts(w->out, value[0] ? "=" : "");
		str_put_plain(w->out, value);
	}
	w->any = w->any || said;
}

/* daemon_status_put_value - in the output for people, values of 0 are left out. */
static void daemon_status_put_value(void *arg, const struct metric_value *v)
{
	struct writing *w = arg;

	if (w->json) {
		if (v->first && v->label[0])
			buf_printf(w->out, "%s,\n \"%s\": {", w->any ? "}" : "", v->family);
		else if (v->first)
			buf_printf(w->out, "%s,\n \"%s\": ", w->any ? "}" : "", v->family);
		else
			buf_puts(w->out, ", ");
		if (v->first)
			w->any = v->label[0] != '\0'; /* a JSON object is open */
		if (v->label[0])
			buf_printf(w->out, "\"%s\": ", v->value);
		buf_printf(w->out, "%" PRIu64, v->n);
		return;
	}
	if (v->first)
		w->any = false;
	if (v->n == 0 || strcmp(v->family, "start_time_seconds") == 0)
		return;
	if (!w->any)
		buf_printf(w->out, "\n%-18s", v->family);
	buf_printf(w->out, "%s%s%s%" PRIu64, w->any ? ", " : " ", v->value,
		   v->label[0] ? " " : "", v->n);
	w->any = true;
}

static uint64_t seconds_up(const struct status *s)
{
	return (uint64_t)(clock_ms() - s->since) / 1000;
}

static void text_head(struct status *s, struct writing *w)
{
	struct buf *out = w->out;

	buf_puts(out, "mount              ");
	str_put_plain(out, s->mountpoint);
	buf_puts(out, "\nsource             ");
	str_put_plain(out, s->cfg->shown);
	buf_printf(out, "\nview               %s", s->view);
	if (s->format[0])
		buf_printf(out, ", of %s", s->format);
	buf_printf(out,
		   "\nserver             nczarrfs %s, pid %d, up %" PRIu64
		   " s\noptions            ",
		   NCZARRFS_VERSION, (int)getpid(), seconds_up(s));
	cfg_each(s->cfg, put_option, w);
	buf_puts(out, "\nlog                ");
	log_levels(out);
	w->any = false;
	metrics_each(daemon_status_put_value, w);
	buf_putc(out, '\n');
}

static void json_head(struct status *s, struct writing *w)
{
	const char *const facts[][2] = {{"mount", s->mountpoint},
					{"source", s->cfg->shown},
					{"view", s->view},
					{"format", s->format},
					{"version", NCZARRFS_VERSION}};
	struct buf *out = w->out;
	auto_buf levels = buf_of(1024);

	log_levels(&levels);
	buf_putc(&levels, '\0');
	for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
		buf_puts(out, i ? ",\n " : "{");
		str_put_member(out, facts[i][0], facts[i][1]);
	}
	buf_printf(out, ",\n \"pid\": %d,\n \"uptime_seconds\": %" PRIu64 ",\n \"options\": {",
		   (int)getpid(), seconds_up(s));
	cfg_each(s->cfg, put_option, w);
	buf_puts(out, "},\n ");
	str_put_member(out, "log", buf_ok(&levels) ? (const char *)levels.data : "");
	w->any = false;
	metrics_each(daemon_status_put_value, w);
	buf_puts(out, w->any ? "}}\n" : "}\n");
}

/* status_text - append the status of a mount; private: include details for its owner. */
static void status_text(struct status *s, bool json, bool private, struct buf *out)
{
	struct writing w = {.out = out, .json = json, .private = private};

	if (json)
		json_head(s, &w);
	else
		text_head(s, &w);
}

void status_metrics(struct status *s, struct buf *out)
{
	metrics_text(s->mountpoint, NCZARRFS_VERSION, out);
}

/* ---- requests ---- */

/* daemon_status_keep - keep an answer of more than a page. Returns its id; takes ownership of the
 * data. */
static uint64_t daemon_status_keep(struct status *s, uid_t uid, uint8_t *data, size_t len)
{
	struct daemon_status_answer *at = &s->kept[0];
	auto_free uint8_t *gone = NULL; /* freed without the lock */
	LOCK_SCOPE(&s->lock);

	for (size_t i = 1; i < KEPT; i++)
		if (s->kept[i].id < at->id)
			at = &s->kept[i];
	gone = at->data;
	*at = (struct daemon_status_answer){
		.id = ++s->last_id, .uid = uid, .data = data, .len = len};
	return at->id;
}

static void daemon_status_put_page(struct status_page *p, const uint8_t *data, size_t len,
				   uint64_t off)
{
	p->off = u64_min(off, len);
	p->total = len;
	p->len = (uint32_t)u64_min(len - p->off, STATUS_DATA);
	if (p->len > 0)
		memcpy(p->data, data + p->off, p->len);
}

/* next_page - a page of a kept answer; the last page frees it. */
static void next_page(struct status *s, uid_t uid, struct status_page *p)
{
	auto_free uint8_t *gone = NULL; /* freed without the lock */
	LOCK_SCOPE(&s->lock);

	p->code = -ESTALE;
	p->len = 0;
	for (size_t i = 0; i < KEPT; i++) {
		struct daemon_status_answer *a = &s->kept[i];

		if (a->id != p->id || a->uid != uid)
			continue;
		p->code = 0;
		daemon_status_put_page(p, a->data, a->len, p->off);
		if (p->off + p->len == a->len) {
			gone = a->data;
			*a = (struct daemon_status_answer){0};
		}
		return;
	}
}

static int daemon_status_fail(struct status_page *p, int code, const char *why)
{
	size_t n = strnlen(why, STATUS_DATA);

	p->code = code;
	p->len = (uint32_t)n;
	p->total = n;
	memcpy(p->data, why, n);
	return code;
}

/* set_levels - set the log's levels. Returns 0, or an error with the reason in p. */
static int set_levels(const struct status *s, uid_t uid, struct status_page *p)
{
	char spec[256];
	struct err e = ERR_INIT;

	if (p->len == 0)
		return 0;
	if (uid != 0 && uid != s->owner)
		return daemon_status_fail(p, -EPERM,
					  "only its owner and root may change log levels");
	if (p->len >= sizeof(spec))
		return daemon_status_fail(p, -EINVAL, "too long");
	memcpy(spec, p->data, p->len);
	spec[p->len] = '\0';
	if (strlen(spec) != p->len)
		return daemon_status_fail(p, -EINVAL, "a NUL");
	return log_configure(spec, &e) < 0 ? daemon_status_fail(p, e.code, e.msg) : 0;
}

static void first_page(struct status *s, uid_t uid, struct status_page *p)
{
	auto_buf out = buf_of(ANSWER_MAX);
	uint8_t *data;
	size_t len;

	if (p->what == STATUS_LEVELS && set_levels(s, uid, p) < 0)
		return;
	if (p->what == STATUS_ENDING && uid != 0 && uid != s->owner) {
		(void)daemon_status_fail(p, -EPERM, "only its owner and root may query this");
		return;
	}
	if (p->what == STATUS_LEVELS)
		log_levels(&out);
	else if (p->what == STATUS_ENDING)
		umount_wait_answer(&out);
	else
		status_text(s, p->what == STATUS_JSON, uid == 0 || uid == s->owner, &out);
	if (!buf_ok(&out)) {
		(void)daemon_status_fail(p, -ENOMEM, "memory is short");
		return;
	}
	p->code = 0;
	daemon_status_put_page(p, out.data, out.len, 0);
	if (p->total > p->len) {
		data = buf_take(&out, &len);
		p->id = daemon_status_keep(s, uid, data, len);
	}
}

void status_ioctl(struct status *s, fuse_req_t req, fuse_ino_t ino, unsigned int cmd,
		  unsigned flags, const void *in, size_t in_size, size_t out_size)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	struct status_page p;

	if (!s || ino != FUSE_ROOT_ID || cmd != (unsigned int)STATUS_IOCTL ||
	    !(flags & FUSE_IOCTL_DIR)) {
		(void)fuse_reply_err(req, ENOTTY);
		return;
	}
	if (in_size != sizeof(p) || out_size < sizeof(p)) {
		(void)fuse_reply_err(req, EINVAL);
		return;
	}
	memcpy(&p, in, sizeof(p));
	if (p.version != STATUS_VERSION || p.what > STATUS_ENDING || p.len > STATUS_DATA) {
		(void)fuse_reply_err(req, EINVAL);
		return;
	}
	if (p.id)
		next_page(s, ctx->uid, &p);
	else
		first_page(s, ctx->uid, &p);
	if (p.len < STATUS_DATA)
		memset(p.data + p.len, 0, STATUS_DATA - p.len);
	(void)fuse_reply_ioctl(req, 0, &p, sizeof(p));
}
