/* SPDX-License-Identifier: BSD-3-Clause */
/* documents.h - the metadata documents of Zarr v2 and v3 stores: the names in each directory, and
 * the names that are reserved. One row for each format. */
#ifndef NCZARR_DOCUMENTS_H
#define NCZARR_DOCUMENTS_H

#include "base/core/util.h"
#include "translate/plan/plan.h"

#define ZR_DOCS_MAX 3 /* documents of one directory at most */

enum zr_doc {
	ZR_DOC_ZGROUP,
	ZR_DOC_GROUP_ATTRS,
	ZR_DOC_ZMETADATA,   /* in the root only */
	ZR_DOC_ROOT_JSON,   /* Zarr v3: zarr.json of the root with consolidated metadata */
	ZR_DOC_GROUP_JSON,
	ZR_DOC_ZARRAY,      /* the first of an array; those before belong to groups */
	ZR_DOC_ARRAY_ATTRS,
	ZR_DOC_ARRAY_JSON,
};

/* zr_docs - the documents of one kind of directory, in the order of a listing. */
struct zr_docs {
	uint32_t n;
	enum zr_doc doc[ZR_DOCS_MAX];
};

struct zr_format {
	uint32_t version;        /* zarr_format of the documents */
	enum plan_format plans;
	bool states_fill;        /* each array document has a fill value */
	struct zr_docs root, group, array; /* the documents of a group are the first ones of the
					    * root */
	const char *const *reserved;       /* reserved names; NULL ends them */
};

/* zr_format_of - the row of version 2 or 3, with or without consolidated metadata. Static. */
const struct zr_format *zr_format_of(uint32_t version, bool consolidated);

/* zr_doc_file - file name of a document. */
const char *zr_doc_file(enum zr_doc doc);
/* zr_doc_of_group - whether it belongs to a group, not to an array. */
static inline bool zr_doc_of_group(enum zr_doc doc)
{
	return doc < ZR_DOC_ZARRAY;
}
/* zr_doc_of_all - whether it repeats the documents of the whole store (consolidated metadata), and
 * is cached. */
static inline bool zr_doc_of_all(enum zr_doc doc)
{
	return doc == ZR_DOC_ZMETADATA || doc == ZR_DOC_ROOT_JSON;
}

#endif
