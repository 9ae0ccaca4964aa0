/* SPDX-License-Identifier: BSD-3-Clause */
/* decoder.h - decoding in processes of its own (-o isolate).
 *
 * Compressors meet bytes of strangers. With codec_isolate chunks are decoded by children that can
 * do nothing else (base/process/sandbox.h): they have a piece of memory, in which a chunk's stored
 * bytes are and into which they write its elements, and the socket over which they are told to. No
 * byte of a chunk crosses that. How long the result is the server says; what it is nobody can
 * check.
 *
 * What is our own and simple (shuffle, checksums) is decoded in the server as before, and filters
 * of plugins are in their own processes already (plugin/plugin.h). docs/dev/isolation.md. */
#ifndef CODECS_ISOLATE_DECODER_H
#define CODECS_ISOLATE_DECODER_H

#include "base/process/worker.h"
#include "codecs/core/codec.h"

struct decoder;

/* codec_isolate - from now on chunks are decoded apart, by this process: children that it forks do
 * so themselves. most: processes at a time, 0: as many as there are processors, and one. After
 * child_prepare, before there are threads. */
void codec_isolate(uint32_t most);

/* codec_chain_apart - whether that is so, and a chain with this mask is one for it: with a filter
 * that is not our own, and none of a plugin. */
bool codec_chain_apart(const struct codec_chain *chain, uint32_t mask);

/* decoder_take - a process for one chunk of in_len stored bytes, which decode to out_len; waits
 * while all of them are busy. fresh: one that has decoded nothing yet, so that its death is of this
 * chunk. Returns 0 with *ret, to be given back, and *ret_in: where the stored
 * bytes are to be put. Any thread. */
int decoder_take(const struct codec_chain *chain, size_t in_len, size_t out_len,
		 bool fresh, struct decoder **ret, uint8_t **ret_in, struct err *e) NZ_MUST_USE;

/* decoder_run - as codec_chain_decode, of what was put there, into out. *ret: what follows from a
 * process that was lost; WORKER_RETRY: take a fresh one, put the bytes there again. Returns -EIO
 * then. */
int decoder_run(struct decoder *d, const struct codec_chain *chain, uint32_t mask,
		size_t elem_size, uint8_t *out, enum worker_fate *ret,
		struct err *e) NZ_MUST_USE;

void decoder_give(struct decoder *d);

/* decoder_set_time - how long one chunk may take; a minute by default. Before threads start. */
void decoder_set_time(uint64_t ms);

/* decoder_fault - NULL but in tests: called in a child before it decodes. Before children start. */
struct decoder_request;
extern void (*decoder_fault)(const struct decoder_request *q, const uint8_t *in);

#endif
