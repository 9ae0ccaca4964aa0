/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_s3xml.c - answers of S3 and STS in XML: listings, errors, the first text of a name.
 *
 * Properties: what is refused has a message; a page gives no entry after it was stopped; keys are
 * as long as they may be; a text that is found is in the document and fits; the same document gives
 * the same page twice.
 *
 *   make fuzz TIME=60 FUZZ=s3xml */
#include "nczarr/s3/s3_int.h"
#include "tests/fuzz/fuzz.h"

struct seen {
	uint64_t n, sum, stop_at;
	bool stopped;
};

static bool entry(void *arg, const char *key, bool is_prefix, const struct object_info *info)
{
	struct seen *s = arg;

	require(!s->stopped && strlen(key) <= 3 * S3_KEY_MAX);
	require(is_prefix == (info == NULL));
	if (info) {
		require(info->size < UINT64_MAX &&
			memchr(info->etag, '\0', sizeof(info->etag)));
		require(info->weak == (info->etag[0] == 'W'));
		s->sum += info->size + info->version;
	}
	for (const char *c = key; *c; c++)
		s->sum = s->sum * 31 + (uint8_t)*c;
	s->stopped = ++s->n == s->stop_at;
	return !s->stopped;
}

static void list(const uint8_t *data, size_t n)
{
	struct s3_page *page = calloc(2, sizeof(*page));
	struct seen all = {.stop_at = UINT64_MAX}, again = all, first = {.stop_at = 1};
	struct err e = ERR_INIT;
	int rc;

	require(page != NULL);
	rc = s3_xml_list(data, n, entry, &all, &page[0], &e);
	require(rc == 0 || rc == -EBADMSG);
	if (rc)
		failed_well(rc, &e);
	require(page[0].entries == all.n && !page[0].stopped);
	require(s3_xml_list(data, n, entry, &again, &page[1], NULL) == rc);
	require(again.n == all.n && again.sum == all.sum);
	require(page[0].truncated == page[1].truncated &&
		strcmp(page[0].token, page[1].token) == 0);
	rc = s3_xml_list(data, n, entry, &first, &page[1], NULL);
	require(all.n == 0 || (rc == 0 && first.n == 1 && page[1].stopped));
	free(page);
}

static void texts(const uint8_t *data, size_t n)
{
	static const char *const names[] = {"Code", "Message", "Region", "UploadId", "ETag"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char small[8], large[256];
		bool fits = s3_xml_text(data, n, names[i], small, sizeof(small));
		bool found = s3_xml_text(data, n, names[i], large, sizeof(large));

		require(memchr(small, '\0', sizeof(small)) &&
			memchr(large, '\0', sizeof(large)));
		require(!fits || (found && strcmp(small, large) == 0));
		require(found || !*large);
	}
	(void)s3_xml_root(data, n, "Error");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	list(data, size);
	texts(data, size);
	return 0;
}
