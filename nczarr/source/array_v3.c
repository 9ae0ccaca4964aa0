/* array_v3.c - an array's zarr.json. Whatever a document says that is not understood is an error,
 * unless it says itself that it need not be: that is Zarr v3's rule. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "nczarr/source/array_v3.h"

#define BYTES_MAX ((uint64_t)1 << 62)

/* known - members that are read, here or by others. */
static bool known(const char *member)
{
	static const char *const names[] = {
		"zarr_format",
		"node_type",
		"shape",
		"data_type",
		"chunk_grid",
		"codecs",
		"fill_value",
		"chunk_key_encoding",
		"attributes",
		"dimension_names",
		"storage_transformers",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], member) == 0)
			return true;
	return false;
}

static int check_members(const json_t *doc, struct err *e)
{
	json_t *o = (json_t *)(uintptr_t)doc; /* jansson's iterators are not const */

	for (void *it = json_object_iter(o); it; it = json_object_iter_next(o, it)) {
		const json_t *v = json_object_iter_value(it);

		if (known(json_object_iter_key(it)) || json_kind(v) == JSON_IS_NULL ||
		    json_is_false(json_get(v, "must_understand")))
			continue;
		return err_set(e, -EOPNOTSUPP, "member '%.80s' is not understood",
			       json_object_iter_key(it));
	}
	return 0;
}

static int check_kind(const json_t *doc, struct err *e)
{
	const json_t *format = json_get(doc, "zarr_format");
	const json_t *transformers = json_get(doc, "storage_transformers");
	uint64_t version;

	if (json_kind(doc) != JSON_IS_OBJECT)
		return err_set(e, -EBADMSG, "not an object");
	if (json_u64(format, &version) < 0)
		return err_set(e, -EBADMSG, "zarr_format is not a number");
	if (version != 3)
		return err_set(e, -EOPNOTSUPP, "zarr_format is %" PRIu64 ", not 3", version);
	if (!json_is(json_get(doc, "node_type"), "array"))
		return err_set(e, -EBADMSG, "node_type is not 'array'");
	if (json_kind(transformers) != JSON_IS_NULL && json_kind(transformers) != JSON_IS_LIST)
		return err_set(e, -EBADMSG, "storage_transformers are not a list");
	if (json_array_size(transformers))
		return err_set(e, -EOPNOTSUPP, "storage_transformers are not supported");
	if (!json_get(doc, "fill_value"))
		return err_set(e, -EBADMSG, "fill_value is missing");
	return check_members(doc, e);
}

static int read_shape(struct arena *a, const json_t *doc, struct zr_meta *m, struct err *e)
{
	const json_t *shape = json_get(doc, "shape");
	size_t rank = json_array_size(shape);
	uint64_t *lens = NULL;
	int rc;

	if (rank > DS_RANK_MAX)
		return err_set(e, -ERANGE, "shape has %zu dimensions, which exceeds %d", rank,
			       DS_RANK_MAX);
	rc = zr_lengths(a, shape, "shape", (uint32_t)rank, 0, &lens, e);
	m->rank = (uint32_t)rank;
	m->shape = lens;
	return rc;
}

/* countable - whether the bytes of these lengths are a number that can be calculated with. An
 * element without a fixed size takes at least its length. */
static bool countable(const struct zr_meta *m, const uint64_t *lens)
{
	uint64_t bytes = m->dtype.stored ? m->dtype.stored : 4;

	for (uint32_t i = 0; i < m->rank; i++)
		if (lens[i] == 0)
			return true;
	for (uint32_t i = 0; i < m->rank; i++)
		if (ckd_mul(&bytes, bytes, lens[i]) || bytes > BYTES_MAX)
			return false;
	return true;
}

static int read_grid(struct arena *a, const json_t *doc, struct zr_meta *m, struct err *e)
{
	struct zr_named grid;
	uint64_t *lens = NULL;
	int rc = zr_named_of(json_get(doc, "chunk_grid"), "chunk_grid", &grid, e);

	if (rc < 0)
		return rc;
	if (strcmp(grid.name, "regular") != 0)
		return err_set(e, -EOPNOTSUPP, "chunk_grid '%.80s' is not supported",
			       grid.name);
	rc = zr_lengths(a, json_get(grid.config, "chunk_shape"), "chunk_shape", m->rank, 1,
			&lens, e);
	if (rc < 0)
		return rc;
	m->chunk = lens;
	if (!countable(m, m->chunk))
		return err_set(e, -ERANGE, "a chunk has more than 2^62 bytes");
	if (!countable(m, m->shape))
		return err_set(e, -ERANGE, "the array has more than 2^62 bytes");
	return 0;
}

static int read_keys(const json_t *doc, struct zr_meta *m, struct err *e)
{
	struct zr_named keys;
	const json_t *separator;
	int rc = zr_named_of(json_get(doc, "chunk_key_encoding"), "chunk_key_encoding", &keys,
			     e);

	if (rc < 0)
		return rc;
	m->prefixed = strcmp(keys.name, "default") == 0;
	if (!m->prefixed && strcmp(keys.name, "v2") != 0)
		return err_set(e, -EOPNOTSUPP, "chunk_key_encoding '%.80s' is not supported",
			       keys.name);
	separator = json_get(keys.config, "separator");
	if (json_is(separator, "/") || json_is(separator, "."))
		m->separator = json_is(separator, "/") ? '/' : '.';
	else if (json_kind(separator) == JSON_IS_NULL)
		m->separator = m->prefixed ? '/' : '.';
	else
		return err_set(e, -EBADMSG, "separator is neither '/' nor '.'");
	return 0;
}

static int read_names(const json_t *doc, struct zr_meta *m, struct err *e)
{
	const json_t *names = json_get(doc, "dimension_names");
	size_t n = json_array_size(names);

	if (json_kind(names) == JSON_IS_NULL)
		return 0;
	if (json_kind(names) != JSON_IS_LIST || n != m->rank)
		return err_set(e, -EBADMSG, "dimension_names are not a list of %" PRIu32,
			       m->rank);
	for (size_t i = 0; i < n; i++) {
		enum json_kind kind = json_kind(json_array_get(names, i));

		if (kind != JSON_IS_NULL && kind != JSON_IS_TEXT)
			return err_set(e, -EBADMSG, "dimension_names has what is no name");
	}
	m->dim_names = names;
	return 0;
}

int zr_v3_meta(struct arena *a, const json_t *doc, struct zr_meta *ret, struct err *e)
{
	struct zr_meta m = {.format = 3, .key = ""};
	const json_t *type = json_get(doc, "data_type"), *attrs = json_get(doc, "attributes");
	int rc = check_kind(doc, e);

	if (rc < 0)
		return rc;
	if (json_kind(attrs) != JSON_IS_NULL && json_kind(attrs) != JSON_IS_OBJECT)
		return err_set(e, -EBADMSG, "attributes are not an object");
	rc = read_shape(a, doc, &m, e);
	if (rc == 0)
		rc = zr_dtype_v3(a, type, &m.dtype, e);
	if (rc == 0)
		rc = read_grid(a, doc, &m, e);
	if (rc == 0)
		rc = read_keys(doc, &m, e);
	if (rc == 0)
		rc = read_names(doc, &m, e);
	if (rc == 0)
		rc = zr_codecs_v3(a, json_get(doc, "codecs"), &m, e);
	if (rc < 0)
		return rc;
	m.fill = json_get(doc, "fill_value");
	m.attrs = json_kind(attrs) == JSON_IS_OBJECT ? attrs : NULL;
	rc = zr_bytes_meaning(a, &m, e);
	if (rc == 0)
		*ret = m;
	return rc;
}
