/* SPDX-License-Identifier: BSD-3-Clause */
/* xml.h - a parser of XML answers of Amazon's services. */
#ifndef NCZARR_S3_XML_H
#define NCZARR_S3_XML_H

#include "nczarr/remote/object_service.h"

/* s3_xml_text - text of the first element of that name, at any depth; false: none, longer than cap
 * - 1 bytes, or no XML. */
bool s3_xml_text(const void *xml, size_t n, const char *name, char *ret, size_t cap);
/* s3_xml_root - 1 if the root element has that name, 0 if not, -ENOMEM. */
int s3_xml_root(const void *xml, size_t n, const char *name);

/* s3_page - the end of a page of a listing. */
struct s3_page {
	bool truncated;
	char token[4096];     /* start of the next page */
	size_t entries;
	bool stopped;         /* emit returned false */
};

/* s3_entry - an entry of a page: a key, or (is_prefix) a common prefix with '/' at its end. */
typedef bool s3_entry(void *arg, const char *key, bool is_prefix, const struct object_info *info);

/* s3_xml_list - parse an answer of ListObjectsV2. -EBADMSG: not one, or nested too deeply. */
int s3_xml_list(const void *xml, size_t n, s3_entry *emit, void *arg, struct s3_page *ret,
		struct err *e) NZ_MUST_USE;

#endif
