/* SPDX-License-Identifier: BSD-3-Clause */
/* documents.c - the table of formats, and the files of documents. */
#include "nczarr/documents.h"

#include <stddef.h>

static const char *const files[] = {
	[ZR_DOC_ZGROUP] = ".zgroup",       [ZR_DOC_GROUP_ATTRS] = ".zattrs",
	[ZR_DOC_ZMETADATA] = ".zmetadata", [ZR_DOC_ROOT_JSON] = "zarr.json",
	[ZR_DOC_GROUP_JSON] = "zarr.json", [ZR_DOC_ZARRAY] = ".zarray",
	[ZR_DOC_ARRAY_ATTRS] = ".zattrs",  [ZR_DOC_ARRAY_JSON] = "zarr.json",
};

static const char *const names_v2[] = {".zgroup", ".zarray", ".zattrs", ".zmetadata", NULL};
static const char *const names_v3[] = {"zarr.json", NULL};

#define V2(...)                                                                                \
	{.version = 2,                                                                         \
	 .plans = PLAN_ZARR2,                                                                  \
	 .root = {__VA_ARGS__},                                                                \
	 .group = {2, {ZR_DOC_ZGROUP, ZR_DOC_GROUP_ATTRS}},                                    \
	 .array = {2, {ZR_DOC_ZARRAY, ZR_DOC_ARRAY_ATTRS}},                                    \
	 .reserved = names_v2}
#define V3(root_doc)                                                                           \
	{.version = 3,                                                                         \
	 .plans = PLAN_ZARR3,                                                                  \
	 .states_fill = true,                                                                  \
	 .root = {1, {root_doc}},                                                              \
	 .group = {1, {ZR_DOC_GROUP_JSON}},                                                    \
	 .array = {1, {ZR_DOC_ARRAY_JSON}},                                                    \
	 .reserved = names_v3}

/* By version, and whether the root has consolidated metadata. */
static const struct zr_format formats[2][2] = {
	{V2(2, {ZR_DOC_ZGROUP, ZR_DOC_GROUP_ATTRS}),
	 V2(3, {ZR_DOC_ZGROUP, ZR_DOC_GROUP_ATTRS, ZR_DOC_ZMETADATA})},
	{V3(ZR_DOC_GROUP_JSON), V3(ZR_DOC_ROOT_JSON)},
};

const struct zr_format *zr_format_of(uint32_t version, bool consolidated)
{
	return &formats[version == 3][consolidated];
}

const char *zr_doc_file(enum zr_doc doc)
{
	return files[doc];
}
