/* SPDX-License-Identifier: BSD-3-Clause */
/* scratch.c - working memory that a thread keeps from chunk to chunk.
 *
 * Chunks of one array have equal length, so that the two buffers reach their size with the first
 * chunk. They only grow; a thread that has decoded a huge chunk frees the memory when it ends. */
#include "codecs/core/codec_impl.h"

struct codec_scratch *codec_scratch_new(void)
{
	struct codec_scratch *s = alloc_array(1, sizeof(*s));

	for (size_t i = 0; s && i < ARRAY_LEN(s->turn); i++)
		buf_init(&s->turn[i], PTRDIFF_MAX);
	return s;
}

void codec_kept_free(struct codec_kept *k)
{
	if (k->p)
		k->free(k->p);
	k->p = NULL;
}

void codec_scratch_free(struct codec_scratch *s)
{
	if (!s)
		return;
	codec_kept_free(&s->inflate);
	codec_kept_free(&s->deflate);
	codec_kept_free(&s->zstd);
	codec_kept_free(&s->zstd_encoder);
	for (size_t i = 0; i < ARRAY_LEN(s->mem); i++)
		free(s->mem[i]);
	for (size_t i = 0; i < ARRAY_LEN(s->turn); i++)
		buf_release(&s->turn[i]);
	free(s);
}

uint8_t *codec_scratch_get(struct codec_scratch *s, unsigned int which, size_t cap)
{
	uint8_t *p;

	if (s->mem[which] && s->cap[which] >= cap)
		return s->mem[which];

	/* malloc, not realloc: the old content must not be copied */
	p = malloc(cap ? cap : 1);
	if (!p)
		return NULL;
	free(s->mem[which]);
	s->mem[which] = p;
	s->cap[which] = cap;
	return p;
}
