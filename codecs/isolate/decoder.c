/* SPDX-License-Identifier: BSD-3-Clause */
/* decoder.c - children that decode chunks.
 *
 * There are as many children as chunks are decoded at a time, and they are kept. A child with a
 * chunk belongs to one thread, as does the memory that both share: the server writes the stored
 * bytes, the child writes the elements, and the server copies these once. If a child dies, the next
 * thread that needs one starts another. */
#include "codecs/isolate/decoder.h"

#include <limits.h>
#include <string.h>

#include "codecs/isolate/decoder_int.h"
#include "codecs/plugin/plugin_table.h"

#define DECODER_UNREADY 75 /* exit status: it could not be confined, and read no chunk */
#define ROOM_MIN ((uint64_t)1 << 30) /* address space of a child */
#define ROOM_TIMES 8                 /* times a chunk, stored and decoded */

struct decoder_spec {
	uint32_t h5_id, n_params;
};

/* decoder - a worker with a chunk. */
struct decoder {
	struct worker *w;
	uint64_t room;            /* address space limit of its process */
	struct decoder_request q; /* the layout of the chunk */
};

void (*decoder_fault)(const struct decoder_request *q, const uint8_t *in);

static struct worker_pool pool = WORKER_POOL_INIT(0);
static struct decoder decoders[WORKER_POOL_MAX]; /* of pool.v */
static pid_t owner;                              /* the process that decodes in children; 0: none */

static uint64_t limit_ms = DECODER_MS;

void decoder_set_time(uint64_t ms)
{
	limit_ms = ms < INT_MAX ? ms : INT_MAX;
}

/* ---- a child ---- */

/* serve_one - decode one chunk. The server wrote all pointers and lengths used here. */
static void serve_one(const struct shm *r, int sock, const struct decoder_request *q,
		      struct codec_scratch *scratch)
{
	struct codec_spec specs[CODEC_CHAIN_MAX];
	const struct codec_chain chain = {.n = q->n_specs, .specs = specs};
	const uint32_t *at = (const uint32_t *)(const void *)r->at;
	size_t len = (size_t)q->out_len;
	struct err e = ERR_INIT;
	const struct codec_call c = {.scratch = scratch,
				     .spec = specs,
				     .elem_size = (size_t)q->elem_size,
				     .in = r->at + q->in,
				     .in_len = (size_t)q->in_len,
				     .out = r->at + q->out,
				     .cap = (size_t)q->out_len,
				     .ret_len = &len,
				     .e = &e};
	int rc;

	for (uint32_t i = 0; i < q->n_specs; i++, at += 2 + at[1])
		specs[i] = (struct codec_spec){
			.h5_id = at[0], .n_params = at[1], .params = at + 2, .name = ""};
	if (decoder_fault)
		decoder_fault(q, c.in);
	if (q->any)
		rc = codec_find(specs[0].h5_id)->decode(&c);
	else
		rc = codec_chain_decode(&chain, q->mask, c.elem_size, c.in, c.in_len, c.out,
					c.cap, scratch, &e);
	worker_reply(sock, rc, len, &e);
}

static void decoder_serve(const struct child_self *self)
{
	const struct sandbox_limits *limits = self->own ? self->own : self->data;
	struct codec_scratch *scratch = codec_scratch_new();
	struct shm r = {.fd = self->fds[0]};
	struct decoder_request q;
	struct err e = ERR_INIT;

	if (!scratch || sandbox_enter(0, NULL, 0, limits, &e) < 0)
		_exit(DECODER_UNREADY);
	while (worker_next(self->sock, &q, sizeof(q)) && shm_map(&r, q.size))
		serve_one(&r, self->sock, &q, scratch);
}

/* Its job is a struct sandbox_limits. */
static const struct child_kind decoder_child = {
	.name = "nczarrfs-decode",
	.who = "decoding",
	.n_fds = 1,
	.may = 0,
	.run = decoder_serve,
};

/* ---- chains that are decoded in a child ---- */

/* strange - whether a filter's decoder is third-party or complex. Checksums have no decoder. */
static bool strange(const struct codec_ops *ops)
{
	return !ops->check && ops->h5_id != CODEC_SHUFFLE;
}

static bool apart(void)
{
	return owner && owner == getpid();
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
			return false; /* a plugin has its own process */
		any |= strange(ops);
	}
	return any;
}

static uint64_t decoder_head_of(const struct codec_chain *chain)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < chain->n; i++)
		n += sizeof(struct decoder_spec) +
		     (uint64_t)chain->specs[i].n_params * sizeof(uint32_t);
	return n;
}

/* decoder_ready - have a live process with sufficient memory, and lay the memory out. */
static int decoder_ready(struct decoder *d, uint64_t head, struct err *e)
{
	const uint64_t both = d->q.in_len + d->q.out_len; /* cannot overflow */
	const uint64_t room = u64_max(
		ROOM_MIN, both < UINT64_MAX / ROOM_TIMES ? both * ROOM_TIMES : UINT64_MAX / 2);
	struct sandbox_limits job = {.memory = room, .cpu_ms = limit_ms};
	int rc = 0;

	if (d->room < room)
		(void)worker_end(d->w);
	if (!worker_alive(d->w)) {
		rc = worker_start(d->w, &decoder_child, &job, sizeof(job), e);
		d->room = room;
	}
	d->q.in = worker_place(&head, d->q.in_len);
	d->q.out = worker_place(&head, d->q.out_len);
	rc = rc ? rc : shm_grow(&d->w->shared, head, e);
	d->q.size = d->w->shared.size;
	return rc;
}

int decoder_take(const struct codec_chain *chain, size_t in_len, size_t out_len,
		 bool fresh, struct decoder **ret, uint8_t **ret_in, struct err *e)
{
	struct worker *w = worker_take(&pool, NULL, NULL);
	struct decoder *d = &decoders[w - pool.v];
	int rc;

	d->w = w;
	d->q = (struct decoder_request){
		.in_len = in_len, .out_len = out_len, .n_specs = chain->n};
	if (fresh && w->served)
		(void)worker_end(w);
	rc = decoder_ready(d, decoder_head_of(chain), e);
	if (rc < 0) {
		decoder_give(d);
		return rc;
	}
	*ret = d;
	*ret_in = w->shared.at + d->q.in;
	return 0;
}

void decoder_give(struct decoder *d)
{
	worker_give(&pool, d->w);
}

/* ---- one chunk ---- */

static void decoder_put_chain(struct decoder *d, const struct codec_chain *chain)
{
	uint8_t *at = d->w->shared.at;

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

static const struct worker_words words = {
	.late = ": the chunk is damaged",
	.invalid = " gave an invalid answer: the chunk is damaged",
	.killed = " was killed (signal 9): the system may be short of memory",
	.crashed = ": the chunk is damaged",
	.ended = " exited",
	.ended_of = "",
	.blameless = {{" cannot be sandboxed: the system may be short of memory or file "
		       "descriptors",
		       DECODER_UNREADY}},
};

static int decoder_do_run(struct decoder *d, const struct codec_chain *chain, uint8_t *out,
			  size_t *ret_len, enum worker_fate *ret, struct err *e)
{
	const struct decoder_request *q = &d->q;
	struct worker_call c = {.request = q, .size = sizeof(*q), .ms = limit_ms};
	enum child_taken got;

	*ret = WORKER_FAILED;
	decoder_put_chain(d, chain);
	got = worker_call(d->w, &c, e);
	if (got == CHILD_TAKEN && c.rc == 0 &&
	    (q->any ? c.len > q->out_len : c.len != q->out_len))
		got = CHILD_WRONG;
	if (got != CHILD_TAKEN)
		return worker_lost(d->w, &words, "the decoder process", got, limit_ms, ret, e);
	if (c.rc == 0 && c.len)
		memcpy(out, d->w->shared.at + q->out, (size_t)c.len);
	*ret_len = (size_t)c.len;
	return c.rc;
}

int decoder_run(struct decoder *d, const struct codec_chain *chain, uint32_t mask,
		size_t elem_size, uint8_t *out, enum worker_fate *ret, struct err *e)
{
	size_t len;

	d->q.mask = mask;
	d->q.elem_size = elem_size;
	return decoder_do_run(d, chain, out, &len, ret, e);
}

/* decode_apart - the value of codec_decode_apart. */
static int decode_apart(const struct codec_ops *ops, const struct codec_call *c)
{
	const struct codec_chain chain = {.n = 1, .specs = c->spec};
	enum worker_fate fate = WORKER_RETRY;
	bool again = false;
	int rc = 0;

	if (!apart() || !strange(ops))
		return ops->decode(c);
	for (; fate == WORKER_RETRY; again = true) {
		struct decoder *d;
		uint8_t *to;

		rc = decoder_take(&chain, c->in_len, c->cap, again, &d, &to, c->e);
		if (rc < 0)
			return rc;
		if (c->in_len)
			memcpy(to, c->in, c->in_len);
		d->q.elem_size = c->elem_size;
		d->q.any = 1;
		rc = decoder_do_run(d, &chain, c->out, c->ret_len, &fate, c->e);
		decoder_give(d);
	}
	return rc;
}

void codec_isolate(uint32_t most)
{
	long n = most ? (long)most : sysconf(_SC_NPROCESSORS_ONLN) + 1;

	pool.n = n < 2 ? 2 : n > WORKER_POOL_MAX ? WORKER_POOL_MAX : (uint32_t)n;
	owner = getpid();
	codec_decode_apart = decode_apart;
}
