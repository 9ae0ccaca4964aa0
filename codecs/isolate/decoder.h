/* SPDX-License-Identifier: BSD-3-Clause */
/* decoder.h - decoding in child processes (-o isolate).
 *
 * Compressors process untrusted bytes. With codec_isolate, children that can do nothing else decode
 * chunks (base/process/sandbox.h): they have shared memory, with a chunk's stored bytes and room
 * for its elements, and a socket for requests. No byte of a chunk passes through the socket. The
 * server determines the length of the result; its content cannot be checked.
 *
 * Our own simple decoders (shuffle, checksums) run in the server as before, and filters of plugins
 * have processes of their own already (plugin/plugin.h). docs/dev/isolation.md. */
#ifndef CODECS_ISOLATE_DECODER_H
#define CODECS_ISOLATE_DECODER_H

#include "base/process/worker.h"
#include "codecs/core/codec.h"

struct decoder;

/* codec_isolate - from now on this process decodes chunks in children; children that it forks
 * decode in their own process. most: processes at a time, 0: the number of processors plus one.
 * After child_prepare, before threads start. */
void codec_isolate(uint32_t most);

/* codec_chain_apart - whether a chain with this mask is decoded in a child: codec_isolate was
 * called, and the chain has a third-party decoder and no plugin. */
bool codec_chain_apart(const struct codec_chain *chain, uint32_t mask);

/* decoder_take - get a process for one chunk of in_len stored bytes, which decode to out_len; waits
 * while all of them are busy. fresh: one that has decoded nothing yet, so that this chunk is the
 * cause if it dies. Returns 0 with *ret, to be given back, and *ret_in, to which the caller copies
 * the stored bytes. Any thread. */
int decoder_take(const struct codec_chain *chain, size_t in_len, size_t out_len,
		 bool fresh, struct decoder **ret, uint8_t **ret_in, struct err *e) NZ_MUST_USE;

/* decoder_run - as codec_chain_decode, from the bytes at *ret_in into out. *ret: the consequence of
 * the loss of a process; WORKER_RETRY: take a fresh one, copy the bytes again. Returns -EIO
 * then. */
int decoder_run(struct decoder *d, const struct codec_chain *chain, uint32_t mask,
		size_t elem_size, uint8_t *out, enum worker_fate *ret,
		struct err *e) NZ_MUST_USE;

void decoder_give(struct decoder *d);

/* decoder_set_time - limit the time of one chunk; a minute by default. Before threads start. */
void decoder_set_time(uint64_t ms);

/* decoder_fault - set by tests: called in a child before it decodes. Before children start. */
struct decoder_request;
extern void (*decoder_fault)(const struct decoder_request *q, const uint8_t *in);

#endif
