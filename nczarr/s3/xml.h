/* SPDX-License-Identifier: BSD-3-Clause */
/* xml.h - answers of Amazon's services in XML. */
#ifndef NCZARR_S3_XML_H
#define NCZARR_S3_XML_H

#include "nczarr/remote/object_service.h"

/* s3_xml_text - the text of the first element of that name, wherever it is; false: there is
 * none, it is longer than cap - 1 bytes, or this is no XML. */
bool s3_xml_text(const void *xml, size_t n, const char *name, char *ret, size_t cap);
/* s3_xml_root - 1 when the document's element has that name, 0 when not, -ENOMEM. */
int s3_xml_root(const void *xml, size_t n, const char *name);

/* s3_page - what a page of a listing ends with. */
struct s3_page {
	bool truncated;
	char token[4096];     /* where the next one begins */
	size_t entries;
	bool stopped;         /* emit said so */
};

/* s3_entry - one of a page: a key, or (is_prefix) what several have in common, with '/' at
 * its end. */
typedef bool s3_entry(void *arg, const char *key, bool is_prefix, const struct object_info *info);

/* s3_xml_list - an answer of ListObjectsV2. -EBADMSG: it is none, or too deep. */
int s3_xml_list(const void *xml, size_t n, s3_entry *emit, void *arg, struct s3_page *ret,
		struct err *e) NZ_MUST_USE;

#endif
