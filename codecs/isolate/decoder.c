/* SPDX-License-Identifier: BSD-3-Clause */
/* decoder.c - the server's side of the children that decode chunks.
 *
 * Children are kept, as many as decode at a time. One that has a chunk belongs to its thread, with
 * the memory that both share: the server puts the stored bytes there, the child the elements, and
 * the server copies these once. One that dies is replaced by the next who needs it. */
#include "codecs/isolate/decoder.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/core/clock.h"
#include "codecs/isolate/decoder_int.h"
#include "codecs/plugin/plugin_table.h"

#define DECODERS_MAX 32
#define REGION_MIN ((uint64_t)1 << 20)
#define REGION_KEEP ((uint64_t)64 << 20) /* of an idle child; what is beyond is given back */
#define ROOM_MIN ((uint64_t)1 << 30)     /* address space of a child */
#define ROOM_TIMES 8                     /* of a chunk, stored and decoded */
#define ALIGN 64

struct decoder {
	struct child_proc child; /* pid 0: none */
	struct shm shared;
	uint64_t room;   /* address space that the child may have */
	uint64_t served; /* chunks that it decoded */
	bool busy;
	size_t in_len, out_len; /* of the chunk that it is for */
	uint64_t in, out;       /* offsets */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t idle;
	pid_t owner;                    /* who decodes apart; 0: nobody */
	uint32_t n;                     /* children at most */
	struct decoder v[DECODERS_MAX]; /* a busy one belongs to its thread */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER};

static uint64_t limit_ms = DECODER_MS;

void decoder_set_time(uint64_t ms)
{
	limit_ms = ms < INT_MAX ? ms : INT_MAX;
}

/* ---- what is decoded apart ---- */

/* strange - a filter whose decoder is not our own, or not simple. Checksums have no decoder. */
static bool strange(const struct codec_ops *ops)
{
	return !ops->check && ops->h5_id != CODEC_SHUFFLE;
}

static bool apart(void)
{
	return pool.owner && pool.owner == getpid();
}

bool codec_chain_apart(const struct codec_chain *chain, uint32_t mask)
{
	bool any = false;

	if (mask == CODEC_ALL_SKIPPED || chain->n > CODEC_CHAIN_MAX || !apart())
		return false;
	for (uint32_t i = 0; i < chain->n; i++) {
		const struct codec_ops *ops = codec_builtin(chain->specs[i].h5_id);

		if (mask >> i & 1)
			continue;
		if (!ops)
			return false; /* a plugin's: step by step */
		any |= strange(ops);
	}
	return any;
}

/* ---- one child ---- */

static int decoder_do_end(struct decoder *d)
{
	d->served = 0;
	d->room = 0;
	return child_end(&d->child);
}

/* decoder_ready - a child that is alive and may have the memory; one that died while idle is
 * replaced without a word. */
static int decoder_ready(struct decoder *d, uint64_t room, struct err *e)
{
	struct pollfd p = {.fd = d->child.sock, .events = POLLIN};
	struct decoder_job job = {.memory = room, .cpu_ms = limit_ms};
	int rc;

	if (d->child.pid && (d->room < room || poll(&p, 1, 0) != 0))
		(void)decoder_do_end(d); /* it has nothing to say before it is asked */
	if (d->child.pid)
		return 0;
	rc = child_start(&decoder_child, &job, &job, sizeof(job), &d->shared.fd, &d->child, e);
	if (rc == 0)
		d->room = room;
	return rc;
}

/* decoder_place - n bytes behind *end, aligned; returns their offset. *end is UINT64_MAX on
 * overflow. */
static uint64_t decoder_place(uint64_t *end_at, uint64_t n)
{
	uint64_t at;

	if (ckd_add(&at, *end_at, (uint64_t)ALIGN - 1)) {
		*end_at = UINT64_MAX;
		return 0;
	}
	at = at / ALIGN * ALIGN;
	if (ckd_add(end_at, at, n))
		*end_at = UINT64_MAX;
	return at;
}

/* decoder_lay_out - where a chunk and its chain are in the region, which is large enough then. */
static int decoder_lay_out(struct decoder *d, uint64_t head, struct err *e)
{
	uint64_t at = head;
	int rc = 0;

	d->in = decoder_place(&at, d->in_len);
	d->out = decoder_place(&at, d->out_len);
	if (!d->shared.at)
		rc = shm_new(DECODER_PROCESS, REGION_MIN, &d->shared, e);
	return rc == 0 ? shm_grow(&d->shared, at, e) : rc;
}

static uint64_t decoder_head_of(const struct codec_chain *chain)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < chain->n; i++)
		n += sizeof(struct decoder_spec) +
		     (uint64_t)chain->specs[i].n_params * sizeof(uint32_t);
	return n;
}

/* ---- the pool ---- */

/* decoder_pick_locked - an idle child, or room for one. NULL: all are busy. */
static struct decoder *decoder_pick_locked(void)
{
	struct decoder *none = NULL;

	for (uint32_t i = 0; i < pool.n; i++) {
		if (pool.v[i].busy)
			continue;
		if (pool.v[i].child.pid)
			return &pool.v[i];
		none = none ? none : &pool.v[i];
	}
	return none;
}

int decoder_take(const struct codec_chain *chain, size_t in_len, size_t out_len,
		 bool fresh, struct decoder **ret, uint8_t **ret_in, struct err *e)
{
	const uint64_t both = (uint64_t)in_len + out_len; /* of objects that may exist */
	struct decoder *d;
	int rc;

	(void)pthread_mutex_lock(&pool.lock);
	while (!(d = decoder_pick_locked()))
		(void)pthread_cond_wait(&pool.idle, &pool.lock);
	d->busy = true;
	(void)pthread_mutex_unlock(&pool.lock);
	if (fresh && d->served)
		(void)decoder_do_end(d);
	d->in_len = in_len;
	d->out_len = out_len;
	rc = decoder_lay_out(d, decoder_head_of(chain), e);
	if (rc == 0)
		rc = decoder_ready(d,
				   u64_max(ROOM_MIN, both < UINT64_MAX / ROOM_TIMES
							     ? both * ROOM_TIMES
							     : UINT64_MAX / 2),
				   e);
	if (rc < 0) {
		decoder_give(d);
		return rc;
	}
	*ret = d;
	*ret_in = d->shared.at + d->in;
	return 0;
}

void decoder_give(struct decoder *d)
{
	shm_keep(&d->shared, REGION_KEEP);
	(void)pthread_mutex_lock(&pool.lock);
	d->busy = false;
	(void)pthread_cond_signal(&pool.idle);
	(void)pthread_mutex_unlock(&pool.lock);
}

/* ---- one chunk ---- */

static void decoder_put_chain(struct decoder *d, const struct codec_chain *chain)
{
	uint8_t *at = d->shared.at;

	for (uint32_t i = 0; i < chain->n; i++) {
		const struct codec_spec *s = &chain->specs[i];
		const struct decoder_spec head = {.h5_id = s->h5_id, .n_params = s->n_params};
		const size_t params = s->n_params * sizeof(uint32_t);

		memcpy(at, &head, sizeof(head));
		if (params)
			memcpy(at + sizeof(head), s->params, params);
		at += sizeof(head) + params;
	}
}

/* decoder_take_reason - the text of a failure, after its size was checked. */
static enum child_taken decoder_take_reason(struct decoder *d, const struct child_answer *a,
					    int64_t until, int *ret_rc, struct err *e)
{
	char text[ERR_TEXT_MAX];
	enum child_taken got;

	if (a->rc > 0 || a->len >= sizeof(text))
		return CHILD_WRONG;
	got = child_take(d->child.sock, text, (size_t)a->len, until);
	if (got != CHILD_TAKEN)
		return got;
	text[a->len] = '\0';
	*ret_rc = err_set(e, child_errno(a->rc), "%s", text);
	return CHILD_TAKEN;
}

static enum child_taken decoder_talk(struct decoder *d, const struct decoder_request *q,
				     uint8_t *out, size_t *ret_len, int *ret_rc, struct err *e)
{
	const int64_t until = clock_ms() + (int64_t)limit_ms;
	struct child_answer a;
	enum child_taken got;

	*ret_rc = 0;
	child_renew(&d->child, limit_ms);
	if (!child_send(d->child.sock, q, sizeof(*q), 0))
		return CHILD_GONE;
	got = child_take(d->child.sock, &a, sizeof(a), until);
	if (got != CHILD_TAKEN)
		return got;
	if (a.rc != 0)
		return decoder_take_reason(d, &a, until, ret_rc, e);
	if (q->any ? a.len > q->out_len : a.len != q->out_len)
		return CHILD_WRONG;
	if (a.len)
		memcpy(out, d->shared.at + d->out, (size_t)a.len);
	*ret_len = (size_t)a.len;
	return CHILD_TAKEN;
}

/* unready - the child ended before it looked at a chunk. */
static bool unready(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == DECODER_UNREADY;
}

/* decoder_explain - the child ended, or was ended by us, in the middle of a chunk. */
static int decoder_explain(enum child_taken got, int status, struct err *e)
{
	int sig = child_died_of(status);
	char why[CHILD_WHY_MAX];

	if (got == CHILD_LATE)
		return err_set(e, -EIO,
			       "the decoder process did not answer within %llu s: the chunk is "
			       "damaged",
			       (unsigned long long)(limit_ms + 999) / 1000);
	if (got == CHILD_WRONG)
		return err_set(
			e, -EIO,
			"the decoder process gave an invalid answer: the chunk is damaged");
	if (unready(status))
		return err_set(e, -EIO,
			       "the decoder process cannot be sandboxed: the system may be "
			       "short of memory or file descriptors");
	if (sig == SIGKILL)
		return err_set(e, -EIO,
			       "the decoder process was killed (signal 9): the system may be "
			       "short of memory");
	if (sig)
		return err_set(e, -EIO, "the decoder process %s: the chunk is damaged",
			       child_why(sig, why));
	return err_set(e, -EIO, "the decoder process exited (status %d)", WEXITSTATUS(status));
}

static int decoder_do_run(struct decoder *d, const struct codec_chain *chain,
			  struct decoder_request *q, uint8_t *out, size_t *ret_len,
			  enum decoder_end *ret, struct err *e)
{
	const bool fresh = d->served == 0;
	enum child_taken got;
	int rc, status;

	*ret = DECODER_DONE;
	q->size = d->shared.size;
	q->in = d->in;
	q->in_len = d->in_len;
	q->out = d->out;
	q->out_len = d->out_len;
	q->n_specs = chain->n;
	decoder_put_chain(d, chain);
	got = decoder_talk(d, q, out, ret_len, &rc, e);
	if (got == CHILD_TAKEN) {
		d->served++;
		return rc;
	}
	status = decoder_do_end(d);
	if (got == CHILD_GONE && !fresh)
		*ret = DECODER_AGAIN; /* an earlier chunk may have damaged its memory */
	else if (got != CHILD_GONE || (child_died_of(status) != SIGKILL && !unready(status)))
		*ret = DECODER_FATAL; /* whoever killed it did not do so because of the chunk */
	return decoder_explain(got, status, e);
}

int decoder_run(struct decoder *d, const struct codec_chain *chain, uint32_t mask,
		size_t elem_size, uint8_t *out, enum decoder_end *ret, struct err *e)
{
	struct decoder_request q = {.mask = mask, .elem_size = elem_size};
	size_t len;

	return decoder_do_run(d, chain, &q, out, &len, ret, e);
}

/* decode_apart - codec_decode_apart. */
static int decode_apart(const struct codec_ops *ops, struct codec_scratch *s,
			const struct codec_spec *spec, size_t elem_size, const uint8_t *in,
			size_t in_len, uint8_t *out, size_t cap, size_t *ret_len, struct err *e)
{
	const struct codec_chain chain = {.n = 1, .specs = spec};
	struct decoder_request q = {.elem_size = elem_size, .any = 1};
	enum decoder_end end_of = DECODER_AGAIN;
	bool again = false;
	int rc = 0;

	if (!apart() || !strange(ops))
		return ops->decode(s, spec, elem_size, in, in_len, out, cap, ret_len, e);
	for (; end_of == DECODER_AGAIN; again = true) {
		struct decoder *d;
		uint8_t *to;

		rc = decoder_take(&chain, in_len, cap, again, &d, &to, e);
		if (rc < 0)
			return rc;
		if (in_len)
			memcpy(to, in, in_len);
		rc = decoder_do_run(d, &chain, &q, out, ret_len, &end_of, e);
		decoder_give(d);
	}
	return rc;
}

void codec_isolate(uint32_t most)
{
	long n = most ? (long)most : sysconf(_SC_NPROCESSORS_ONLN) + 1;

	pool.n = n < 2 ? 2 : n > DECODERS_MAX ? DECODERS_MAX : (uint32_t)n;
	pool.owner = getpid();
	codec_decode_apart = decode_apart;
}
