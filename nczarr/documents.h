/* SPDX-License-Identifier: BSD-3-Clause */
/* documents.h - what differs between the trees of Zarr v2 and v3 but the text of documents: which
 * documents a directory has, and what else may not be called so. One row for each format. */
#ifndef NCZARR_DOCUMENTS_H
#define NCZARR_DOCUMENTS_H

#include "base/core/util.h"
#include "translate/plan/plan.h"

#define ZR_DOCS_MAX 3 /* documents of one directory */

enum zr_doc {
	ZR_DOC_ZGROUP,
	ZR_DOC_GROUP_ATTRS,
	ZR_DOC_ZMETADATA,   /* of the root only */
	ZR_DOC_ZARRAY,
	ZR_DOC_ARRAY_ATTRS,
	ZR_DOC_ROOT_JSON,   /* Zarr v3: with all other documents in it */
	ZR_DOC_GROUP_JSON,
	ZR_DOC_ARRAY_JSON,
};

/* zr_docs - the documents of one kind of directory, in the order of a listing. */
struct zr_docs {
	uint32_t n;
	enum zr_doc doc[ZR_DOCS_MAX];
};

struct zr_format {
	uint32_t version;        /* zarr_format in documents */
	enum plan_format plans;
	bool states_fill;        /* every document of an array says what absent elements are */
	struct zr_docs root, group, array; /* those of a group are the first of the root's */
	const char *const *reserved;       /* names of the tree's own; NULL ends them */
};

/* zr_format_of - 2 or 3. Borrowed for ever. */
const struct zr_format *zr_format_of(uint32_t version);

/* zr_doc_file - of a document in its directory. */
const char *zr_doc_file(enum zr_doc doc);
/* zr_doc_of_group - whether it is a group's, not an array's. */
bool zr_doc_of_group(enum zr_doc doc);
/* zr_doc_of_all - whether it repeats the documents of the whole tree, and is kept. */
bool zr_doc_of_all(enum zr_doc doc);

#endif
