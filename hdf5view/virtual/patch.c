/* SPDX-License-Identifier: BSD-3-Clause */
/* patch.c - writes addresses into the structure that libhdf5 made: the data address of a dataset,
 * the end of the file. The process that made the structure is not trusted: a header that leads
 * outside of the image, in circles, or into another header is an error.
 *
 * Spec: HDF5 File Format 3.0, II.A superblock, IV.A.1 object headers, IV.A.2.i layout. */
#include "base/core/cursor.h"
#include "base/core/endian.h"
#include "hdf5view/virtual/file_layout.h"

#include <errno.h>
#include <string.h>

/* patched - the image as a file, whose headers are read, and the new address. */
struct patched {
	struct blob blob;
	uint8_t *image;
	size_t *left;
	uint64_t addr;
};

static int patched_read(struct blob *b, uint64_t off, uint8_t *out, size_t len, struct err *e)
{
	struct patched *p = CONTAINER_OF(b, struct patched, blob);

	if (len > *p->left)
		return err_set(e, -ERANGE, "it shares its bytes with others");
	*p->left -= len;
	memcpy(out, p->image + off, len); /* the reader has checked the range */
	return 0;
}

/* patch_layout - write the address, if it is the layout message. Returns 1 if it was. */
static int patch_layout(void *arg, const struct h5_message *m, struct err *e)
{
	struct patched *p = arg;
	const uint8_t *body = m->body.p;
	size_t at;

	if (m->type != HDF5_MSG_LAYOUT)
		return 0;
	if (m->shared)
		return err_set(e, -EBADMSG, "it has its layout elsewhere");
	if (m->body.len < 2 || body[0] != 3)
		return err_set(e, -EBADMSG, "it has a layout message of an unknown version");
	if (body[1] != HDF5_LAYOUT_CONTIGUOUS && body[1] != HDF5_LAYOUT_CHUNKED)
		return err_set(e, -EBADMSG, "it has a layout without an address");
	at = body[1] == HDF5_LAYOUT_CHUNKED ? 3 : 2;
	if (m->body.len < at + 8)
		return err_set(e, -EBADMSG, "it has a truncated layout message");
	put_le64(p->image + m->addr + at, p->addr);
	if (m->sum)
		put_le32(p->image + m->sum,
			 h5_lookup3(p->image + m->block, (size_t)(m->sum - m->block)));
	return 1;
}

int nc_patch_address(uint8_t *image, size_t len, size_t *left, uint64_t header, uint64_t addr,
		     struct err *e)
{
	static const struct blob_ops ops = {.read = patched_read};
	struct patched p = {.blob = {.ops = &ops, .fd = -1, .size = len},
			    .image = image,
			    .left = left,
			    .addr = addr};
	const struct h5_file f = {
		.blob = &p.blob, .size = len, .offset_size = 8, .length_size = 8};
	int rc = h5_header_walk(&f, header, patch_layout, &p, e);

	rc = rc ? rc : err_set(e, -EBADMSG, "it has no layout message");
	if (rc < 0 && rc != -ENOMEM)
		rc = err_wrap(e, -EBADMSG, "structure: object header at %llu",
			      (unsigned long long)header);
	return rc < 0 ? rc : 0;
}

int nc_patch_eof(uint8_t *image, size_t len, uint64_t eof, struct err *e)
{
	size_t sizes, at;
	unsigned version;

	if (len < 48 || memcmp(image, HDF5_SIGNATURE, HDF5_SIGNATURE_LEN) != 0)
		return err_set(e, -EBADMSG, "structure: no superblock");
	version = image[8];
	/* version 1 may state another NC_BTREE_K, and the library writes it only then */
	if (version != 0 && version != 2 && version != 3)
		return err_set(e, -EBADMSG, "structure: superblock version %u", version);
	sizes = version == 0 ? 13 : 9;
	at = version == 0 ? 40 : 28;
	if (image[sizes] != 8 || image[sizes + 1] != 8)
		return err_set(e, -EBADMSG, "structure: addresses of %u bytes", image[sizes]);
	put_le64(image + at, eof);
	if (version != 0)
		put_le32(image + 44, h5_lookup3(image, 44));
	return 0;
}
