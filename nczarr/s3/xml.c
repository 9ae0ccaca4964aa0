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

static const char *local(const char *name)
{
	const char *colon = strrchr(name, ':');

	return colon ? colon + 1 : name;
}

/* s3_xml - a document while it is parsed. */
struct s3_xml {
	XML_Parser p;
	struct buf text;   /* since the last tag, or since that of the element at depth `kept` */
	unsigned depth;    /* 1: the root */
	unsigned kept;     /* 0: none */
	bool stopped;      /* the rest is not needed */
	const char *wrong; /* the error that ended it; NULL */
	void (*begin)(struct s3_xml *x, const char *name);
	void (*end)(struct s3_xml *x, const char *name);
};

/* xml_stop - end the parser; wrong: NULL: the rest is not needed. */
static void xml_stop(struct s3_xml *x, const char *wrong)
{
	if (!x->wrong)
		x->wrong = wrong;
	x->stopped = true;
	XML_StopParser(x->p, XML_FALSE);
}

static void on_type(void *arg, const XML_Char *name NZ_UNUSED, const XML_Char *sys NZ_UNUSED,
		    const XML_Char *pub NZ_UNUSED, int internal NZ_UNUSED)
{
	xml_stop(arg, "has a document type");
}

static void on_begin(void *arg, const XML_Char *name, const XML_Char **atts NZ_UNUSED)
{
	struct s3_xml *x = arg;

	if (x->stopped) /* Expat may call a handler after XML_StopParser */
		return;
	if (!x->kept)
		buf_clear(&x->text);
	if (++x->depth > DEPTH_MAX)
		xml_stop(x, "is nested too deeply");
	else
		x->begin(x, local(name));
}

static void on_text(void *arg, const XML_Char *text, int n)
{
	struct s3_xml *x = arg;

	if (x->stopped)
		return;
	buf_put(&x->text, text, (size_t)n);
	if (!buf_ok(&x->text))
		xml_stop(x, "has a string that is too long");
}

static void on_end(void *arg, const XML_Char *name)
{
	struct s3_xml *x = arg;

	if (x->stopped)
		return;
	x->end(x, local(name));
	if (!x->kept)
		buf_clear(&x->text);
	x->depth--;
}

/* xml_parse - parse a document, or its beginning (last: false). Releases x. */
static int xml_parse(struct s3_xml *x, const void *xml, size_t n, bool last, struct err *e)
{
	bool whole;
	int rc = 0;

	x->p = XML_ParserCreate(NULL);
	if (!x->p)
		return err_nomem(e);
	XML_SetUserData(x->p, x);
	XML_SetStartDoctypeDeclHandler(x->p, on_type);
	XML_SetElementHandler(x->p, on_begin, on_end);
	XML_SetCharacterDataHandler(x->p, on_text);
	whole = XML_Parse(x->p, xml, (int)n, last) == XML_STATUS_OK;
	if (x->text.starved || XML_GetErrorCode(x->p) == XML_ERROR_NO_MEMORY)
		rc = err_nomem(e);
	else if (x->wrong)
		rc = err_set(e, -EBADMSG, "a listing %s", x->wrong);
	else if (!whole && !x->stopped)
		rc = err_set(e, -EBADMSG, "a listing is truncated or damaged at byte %ld",
			     (long)BYTE_INDEX(x->p));
	XML_ParserFree(x->p);
	buf_release(&x->text);
	return rc;
}

/* Strings. */

struct find {
	struct s3_xml x;
	const char *name;
	char *ret; /* NULL: only whether it is the root */
	size_t cap;
	bool found;
};

static void find_begin(struct s3_xml *x, const char *name)
{
	struct find *f = CONTAINER_OF(x, struct find, x);
	bool is = strcmp(name, f->name) == 0;

	if (f->ret) {
		x->kept = is && !x->kept ? x->depth : x->kept;
		return;
	}
	f->found = is;
	xml_stop(x, NULL);
}

static void find_end(struct s3_xml *x, const char *name NZ_UNUSED)
{
	struct find *f = CONTAINER_OF(x, struct find, x);

	if (x->depth != x->kept)
		return;
	buf_putc(&x->text, '\0');
	f->found = buf_ok(&x->text) && x->text.len <= f->cap &&
		   strlen((const char *)x->text.data) + 1 == x->text.len;
	if (f->found)
		memcpy(f->ret, x->text.data, x->text.len);
	xml_stop(x, NULL);
}

/* find_in - whether the element was found; -ENOMEM. */
static int find_in(struct find *f, const void *xml, size_t n, bool last)
{
	int rc;

	f->x = (struct s3_xml){
		.text = buf_of(S3_PAGE_MAX), .begin = find_begin, .end = find_end};
	rc = xml_parse(&f->x, xml, n, last, NULL);
	return rc == -ENOMEM ? rc : f->found;
}

bool s3_xml_text(const void *xml, size_t n, const char *name, char *ret, size_t cap)
{
	struct find f = {.name = name, .ret = ret, .cap = cap};

	*ret = '\0';
	return n <= S3_PAGE_MAX && find_in(&f, xml, n, true) > 0;
}

int s3_xml_root(const void *xml, size_t n, const char *name)
{
	struct find f = {.name = name};

	return find_in(&f, xml, u64_min(n, 1u << 16), false);
}

/* Listings. */

enum s3_xml_where { NOWHERE, IN_RESULT, IN_CONTENTS, IN_PREFIXES };

struct s3_xml_page {
	struct s3_xml x;
	s3_entry *emit;
	void *arg;
	struct s3_page *ret;
	enum s3_xml_where where;
	bool encoded; /* EncodingType: keys are encoded */
	char key[TEXT_MAX + 1], etag[OBJECT_ETAG_MAX], changed[64], size[32];
};

static void page_begin(struct s3_xml *x, const char *name)
{
	struct s3_xml_page *g = CONTAINER_OF(x, struct s3_xml_page, x);

	if (x->depth == 1) {
		g->where = IN_RESULT;
		if (strcmp(name, "ListBucketResult") != 0)
			xml_stop(x, "is another XML document");
	} else if (x->depth == 2 && strcmp(name, "Contents") == 0) {
		g->where = IN_CONTENTS;
		*g->key = *g->etag = *g->changed = *g->size = '\0';
	} else if (x->depth == 2 && strcmp(name, "CommonPrefixes") == 0) {
		g->where = IN_PREFIXES;
		*g->key = '\0';
	}
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
			xml_stop(&g->x, "has a key that is badly encoded");
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
	auto_buf key = buf_of(TEXT_MAX + 1);
	int64_t seconds;

	if (!is_prefix && str_u64(g->size, strlen(g->size), UINT64_MAX - 1, &info.size) < 0)
		xml_stop(&g->x, "has an object without a size");
	if (aws_time(g->changed, &seconds, &info.changed) < 0)
		info.changed = 0;
	s3_xml_quoted(g->etag, info.etag);
	info.weak = info.etag[0] == 'W';
	info.version = object_version(&info);
	if (g->x.wrong || !decode_key(g, &key))
		return;
	g->ret->entries++;
	if (!g->emit(g->arg, (const char *)key.data, is_prefix, is_prefix ? NULL : &info)) {
		g->ret->stopped = true;
		xml_stop(&g->x, NULL);
	}
}

/* s3_xml_value - store the text of an element at its end. */
static void s3_xml_value(struct s3_xml_page *g, const char *name)
{
	const size_t n = g->x.text.len;
	const char *text = n ? (const char *)g->x.text.data : "";
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
		if (g->x.depth != rows[i].depth || g->where != rows[i].where ||
		    strcmp(name, rows[i].name) != 0)
			continue;
		if (n >= rows[i].cap) {
			xml_stop(&g->x, "has a value that is too long");
			return;
		}
		memcpy(rows[i].to, text, n);
		rows[i].to[n] = '\0';
	}
	if (g->x.depth == 2 && strcmp(name, "IsTruncated") == 0)
		g->ret->truncated = str_is("true", text, n);
	else if (g->x.depth == 2 && strcmp(name, "EncodingType") == 0)
		g->encoded = str_is("url", text, n);
}

static void page_end(struct s3_xml *x, const char *name)
{
	struct s3_xml_page *g = CONTAINER_OF(x, struct s3_xml_page, x);

	s3_xml_value(g, name);
	if (x->depth == 2 && !x->wrong && g->where != IN_RESULT) {
		emit_entry(g, g->where == IN_PREFIXES);
		g->where = IN_RESULT;
	}
}

int s3_xml_list(const void *xml, size_t n, s3_entry *emit, void *arg, struct s3_page *ret,
		struct err *e)
{
	auto_free struct s3_xml_page *g = calloc(1, sizeof(*g));

	*ret = (struct s3_page){.truncated = false};
	if (!g || n > S3_PAGE_MAX)
		return err_nomem(e);
	g->x = (struct s3_xml){.text = buf_of(TEXT_MAX), .begin = page_begin, .end = page_end};
	g->emit = emit;
	g->arg = arg;
	g->ret = ret;
	/* EncodingType may follow the keys */
	g->encoded = n && memmem(xml, n, "<EncodingType>url<", 18) != NULL;
	return xml_parse(&g->x, xml, n, true, e);
}
