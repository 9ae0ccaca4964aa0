/* SPDX-License-Identifier: BSD-3-Clause */
/* decoder_serve.c - the main function of a child that only decodes chunks. */
#include "codecs/isolate/decoder_int.h"

void (*decoder_fault)(const struct decoder_request *q, const uint8_t *in);

/* decoder_serve_handle - decode one chunk. The server wrote all pointers and lengths used here. */
static void decoder_serve_handle(const struct shm *r, int sock, const struct decoder_request *q,
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

static void decoder_serve_serve(const struct child_self *self)
{
	const struct sandbox_limits *limits = self->own ? self->own : self->data;
	struct codec_scratch *scratch = codec_scratch_new();
	struct shm r = {.fd = self->fds[0]};
	struct decoder_request q;
	struct err e = ERR_INIT;

	if (!scratch || sandbox_enter(decoder_child.may, NULL, 0, limits, &e) < 0)
		_exit(DECODER_UNREADY);
	while (worker_next(self->sock, &q, sizeof(q)) && shm_map(&r, q.size))
		decoder_serve_handle(&r, self->sock, &q, scratch);
}

const struct child_kind decoder_child = {
	.name = DECODER_PROCESS,
	.who = "decoding",
	.n_fds = 1,
	.may = 0,
	.run = decoder_serve_serve,
};
