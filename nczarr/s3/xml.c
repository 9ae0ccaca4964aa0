/* SPDX-License-Identifier: BSD-3-Clause */
/* xml.c - a streaming parser of XML answers. It rejects input that a service never sends: a
 * document type (and with it all custom entities), deep nesting, long strings. */
#include "nczarr/s3/xml.h"

#include <errno.h>
#include <expat.h>
#include <string.h>

#include "base/core/str.h"
#include "nczarr/s3/s3_int.h"

/* Expat 2.9 deprecates the function of older versions. */
#if XML_MAJOR_VERSION > 2 || XML_MINOR_VERSION >= 9
#define BYTE_INDEX XML_GetCurrentByteIndex64
#else
#define BYTE_INDEX XML_GetCurrentByteIndex
#endif

#define DEPTH_MAX 16
#define TEXT_MAX                                                                               \
	(4 * S3_KEY_MAX) /* bytes of one string: a key with every byte encoded, and more */

/* Strings. */

static const char *local(const char *name)
{
	const char *colon = strrchr(name, ':');

	return colon ? colon + 1 : name;
}

struct find {
	XML_Parser p;
	const char *name;
	char *ret; /* NULL: only whether it is the root */
	size_t cap, len;
	unsigned depth, inside; /* inside: depth of the element; 0: not in it */
	bool done, bad;
};

static void stop_find(struct find *f, bool bad)
{
	f->bad = bad;
	XML_StopParser(f->p, XML_FALSE);
}

static void find_type(void *arg, const XML_Char *name NZ_UNUSED, const XML_Char *sys NZ_UNUSED,
		      const XML_Char *pub NZ_UNUSED, int internal NZ_UNUSED)
{
	stop_find(arg, true);
}

static void find_begin(void *arg, const XML_Char *name, const XML_Char **atts NZ_UNUSED)
{
	struct find *f = arg;
	bool is = strcmp(local(name), f->name) == 0;

	if (!f->ret) {
		f->done = is;
		stop_find(f, false);
	} else if (++f->depth > DEPTH_MAX) {
		stop_find(f, true);
	} else if (!f->inside && is) {
		f->inside = f->depth;
	}
}

static void find_text(void *arg, const XML_Char *text, int n)
{
	struct find *f = arg;

	if (!f->inside || f->bad)
		return;
	if ((size_t)n > f->cap - 1 - f->len) {
		stop_find(f, true);
		return;
	}
	memcpy(f->ret + f->len, text, (size_t)n);
	f->len += (size_t)n;
}

static void find_end(void *arg, const XML_Char *name NZ_UNUSED)
{
	struct find *f = arg;

	if (f->inside && f->depth == f->inside) {
		f->done = true;
		stop_find(f, false);
	}
	f->depth--;
}

/* find_in - parse XML until the element is found. Returns 1, 0, or -ENOMEM. */
static int find_in(struct find *f, const void *xml, size_t n, bool last)
{
	bool starved;

	f->p = XML_ParserCreate(NULL);
	if (!f->p)
		return -ENOMEM;
	XML_SetUserData(f->p, f);
	XML_SetStartDoctypeDeclHandler(f->p, find_type);
	XML_SetElementHandler(f->p, find_begin, find_end);
	XML_SetCharacterDataHandler(f->p, find_text);
	(void)XML_Parse(f->p, xml, (int)n, last);
	starved = XML_GetErrorCode(f->p) == XML_ERROR_NO_MEMORY;
	XML_ParserFree(f->p);
	return starved ? -ENOMEM : f->done && !f->bad;
}

bool s3_xml_text(const void *xml, size_t n, const char *name, char *ret, size_t cap)
{
	struct find f = {.name = name, .ret = ret, .cap = cap};
	bool found = n <= S3_PAGE_MAX && find_in(&f, xml, n, true) > 0;

	ret[found ? f.len : 0] = '\0';
	return found && memchr(ret, '\0', f.len) == NULL;
}

int s3_xml_root(const void *xml, size_t n, const char *name)
{
	struct find f = {.name = name};

	return find_in(&f, xml, u64_min(n, 1u << 16), false);
}

/* Listings. */

enum s3_xml_where { NOWHERE, IN_RESULT, IN_CONTENTS, IN_PREFIXES };

struct s3_xml_page {
	XML_Parser p;
	s3_entry *emit;
	void *arg;
	struct s3_page *ret;
	unsigned depth;
	enum s3_xml_where where;
	bool encoded; /* EncodingType: keys are encoded */
	char text[TEXT_MAX + 1];
	size_t len;
	char key[TEXT_MAX + 1], etag[OBJECT_ETAG_MAX], changed[64], size[32];
	struct err e;
};

static void fail_page(struct s3_xml_page *g, const char *what)
{
	if (!g->e.code)
		err_set(&g->e, -EBADMSG, "a listing %s", what);
	XML_StopParser(g->p, XML_FALSE);
}

static void page_type(void *arg, const XML_Char *name NZ_UNUSED, const XML_Char *sys NZ_UNUSED,
		      const XML_Char *pub NZ_UNUSED, int internal NZ_UNUSED)
{
	fail_page(arg, "has a document type");
}

static void page_begin(void *arg, const XML_Char *name, const XML_Char **atts NZ_UNUSED)
{
	struct s3_xml_page *g = arg;

	name = local(name);
	g->len = 0;
	if (++g->depth > DEPTH_MAX) {
		fail_page(g, "is nested too deeply");
	} else if (g->depth == 1) {
		g->where = IN_RESULT;
		if (strcmp(name, "ListBucketResult") != 0)
			fail_page(g, "is another XML document");
	} else if (g->depth == 2 && strcmp(name, "Contents") == 0) {
		g->where = IN_CONTENTS;
		*g->key = *g->etag = *g->changed = *g->size = '\0';
	} else if (g->depth == 2 && strcmp(name, "CommonPrefixes") == 0) {
		g->where = IN_PREFIXES;
		*g->key = '\0';
	}
}

static void page_text(void *arg, const XML_Char *text, int n)
{
	struct s3_xml_page *g = arg;

	if (g->e.code)
		return;
	if ((size_t)n > TEXT_MAX - g->len) {
		fail_page(g, "has a string that is too long");
		return;
	}
	memcpy(g->text + g->len, text, (size_t)n);
	g->len += (size_t)n;
}

/* decode_key - some services send '+' for a space; '+' itself is always encoded. */
static bool decode_key(struct s3_xml_page *g, struct buf *out)
{
	if (!g->encoded) {
		buf_puts(out, g->key);
	} else {
		for (char *c = g->key; *c; c++)
			if (*c == '+')
				*c = ' ';
		if (url_decode(out, g->key, strlen(g->key), NULL) < 0) {
			fail_page(g, "has a key that is badly encoded");
			return false;
		}
	}
	buf_putc(out, '\0');
	return buf_ok(out);
}

/* s3_xml_quoted - an ETag as in the header, with quotes. */
static void s3_xml_quoted(const char *etag, char ret[OBJECT_ETAG_MAX])
{
	size_t n = strlen(etag);

	if (n == 0 || n + 3 > OBJECT_ETAG_MAX)
		*ret = '\0';
	else if (*etag == '"' || (etag[0] == 'W' && etag[1] == '/'))
		memcpy(ret, etag, n + 1);
	else
		snprintf(ret, OBJECT_ETAG_MAX, "\"%.*s\"", OBJECT_ETAG_MAX - 3, etag);
}

static void emit_entry(struct s3_xml_page *g, bool is_prefix)
{
	struct object_info info = {.size = 0};
	int64_t seconds;
	struct buf key;

	buf_init(&key, TEXT_MAX + 1);
	if (!is_prefix && str_u64(g->size, strlen(g->size), UINT64_MAX - 1, &info.size) < 0)
		fail_page(g, "has an object without a size");
	if (aws_time(g->changed, &seconds, &info.changed) < 0)
		info.changed = 0;
	s3_xml_quoted(g->etag, info.etag);
	info.weak = info.etag[0] == 'W';
	info.version = object_version(&info);
	if (!g->e.code && decode_key(g, &key)) {
		g->ret->entries++;
		if (!g->emit(g->arg, (const char *)key.data, is_prefix,
			     is_prefix ? NULL : &info)) {
			g->ret->stopped = true;
			XML_StopParser(g->p, XML_FALSE);
		}
	}
	buf_release(&key);
}

/* s3_xml_value - store the text of an element at its end. */
static void s3_xml_value(struct s3_xml_page *g, const char *name)
{
	const struct {
		unsigned depth;
		enum s3_xml_where where;
		const char *name;
		char *to;
		size_t cap;
	} rows[] = {
		{3, IN_CONTENTS, "Key", g->key, sizeof(g->key)},
		{3, IN_CONTENTS, "Size", g->size, sizeof(g->size)},
		{3, IN_CONTENTS, "ETag", g->etag, sizeof(g->etag)},
		{3, IN_CONTENTS, "LastModified", g->changed, sizeof(g->changed)},
		{3, IN_PREFIXES, "Prefix", g->key, sizeof(g->key)},
		{2, g->where, "NextContinuationToken", g->ret->token, sizeof(g->ret->token)},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (g->depth != rows[i].depth || g->where != rows[i].where ||
		    strcmp(name, rows[i].name) != 0)
			continue;
		if (g->len >= rows[i].cap) {
			fail_page(g, "has a value that is too long");
			return;
		}
		memcpy(rows[i].to, g->text, g->len);
		rows[i].to[g->len] = '\0';
	}
	if (g->depth == 2 && strcmp(name, "IsTruncated") == 0)
		g->ret->truncated = str_is("true", g->text, g->len);
	else if (g->depth == 2 && strcmp(name, "EncodingType") == 0)
		g->encoded = str_is("url", g->text, g->len);
}

static void page_end(void *arg, const XML_Char *name)
{
	struct s3_xml_page *g = arg;

	if (!g->e.code)
		s3_xml_value(g, local(name));
	if (g->depth == 2 && !g->e.code && g->where != IN_RESULT) {
		emit_entry(g, g->where == IN_PREFIXES);
		g->where = IN_RESULT;
	}
	g->len = 0;
	g->depth--;
}

int s3_xml_list(const void *xml, size_t n, s3_entry *emit, void *arg, struct s3_page *ret,
		struct err *e)
{
	struct s3_xml_page *g = calloc(1, sizeof(*g));
	bool whole;
	int rc = 0;

	*ret = (struct s3_page){.truncated = false};
	if (!g || n > S3_PAGE_MAX) {
		free(g);
		return err_nomem(e);
	}
	*g = (struct s3_xml_page){
		.p = XML_ParserCreate(NULL), .emit = emit, .arg = arg, .ret = ret};
	if (!g->p) {
		free(g);
		return err_nomem(e);
	}
	/* EncodingType may follow the keys */
	g->encoded = n && memmem(xml, n, "<EncodingType>url<", 18) != NULL;
	XML_SetUserData(g->p, g);
	XML_SetStartDoctypeDeclHandler(g->p, page_type);
	XML_SetElementHandler(g->p, page_begin, page_end);
	XML_SetCharacterDataHandler(g->p, page_text);
	whole = XML_Parse(g->p, xml, (int)n, 1) == XML_STATUS_OK;
	if (g->e.code)
		rc = err_set(e, g->e.code, "%s", g->e.msg);
	else if (!whole && XML_GetErrorCode(g->p) == XML_ERROR_NO_MEMORY)
		rc = err_nomem(e);
	else if (!whole && !ret->stopped)
		rc = err_set(e, -EBADMSG, "a listing is truncated or damaged at byte %ld",
			     (long)BYTE_INDEX(g->p));
	XML_ParserFree(g->p);
	free(g);
	return rc;
}
