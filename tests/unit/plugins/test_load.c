/* SPDX-License-Identifier: BSD-3-Clause */
/* test_load.c - our plugins as the programs of others load them: their entries, the filter
 * and the codec in one library, and that a codec asks its caller about a variable.
 *
 * This program plays netCDF-C: it has functions of the names that a codec looks for. Expected JSON
 * and parameters are those of netCDF-C's own plugins (plugins/NCZstdfilters.c, 4.9.3), but for the
 * block size of blosc, which numcodecs means otherwise than the HDF5 filter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/core/util.h"
#include "codecs/core/codec.h"

#include <H5PLextern.h>
#include <cmocka.h>
#include <dlfcn.h>

#define NC_EFILTER (-132)
#define NC_EINVAL (-36)

struct ncz_codec {
	int version, sort;
	const char *id;
	unsigned int h5_id;
	void (*initialize)(void);
	void (*finalize)(void);
	int (*codec_to_hdf5)(const char *, size_t *, unsigned **);
	int (*hdf5_to_codec)(size_t, const unsigned *, char **);
	int (*modify_parameters)(int, int, size_t *, unsigned **, size_t *, unsigned **);
};

struct plugin {
	void *lib;
	const H5Z_class2_t *filter;
	const struct ncz_codec *codec; /* NULL: it has none */
};

static const uint32_t ids[] = {CODEC_BZIP2, CODEC_BLOSC,      CODEC_LZ4_HDF5,
			       CODEC_ZSTD,  CODEC_BITGROOM,   CODEC_GRANULARBR,
			       CODEC_LZF,   CODEC_BITSHUFFLE, 32032 /* bitround */};

/* ---- what netCDF-C says of a variable: doubles in chunks of 10 x 30 ---- */

#define ASKED __attribute__((visibility("default"))) int

ASKED nc_inq_vartype(int ncid, int varid, int *type);
ASKED nc_inq_varndims(int ncid, int varid, int *n);
ASKED nc_inq_type(int ncid, int type, char *name, size_t *size);
ASKED nc_inq_var_chunking(int ncid, int varid, int *storage, size_t *sizes);
ASKED nc_inq_var_endian(int ncid, int varid, int *endian);

static int storage_said;

int nc_inq_vartype(int ncid, int varid, int *type)
{
	*type = 6;
	return ncid == 65536 && varid == 3 ? 0 : -33;
}

int nc_inq_varndims(int ncid, int varid, int *n)
{
	*n = 2;
	return ncid == 65536 && varid == 3 ? 0 : -33;
}

int nc_inq_type(int ncid, int type, char *name, size_t *size)
{
	*size = 8;
	return ncid == 65536 && type == 6 && !name ? 0 : -45;
}

int nc_inq_var_chunking(int ncid, int varid, int *storage, size_t *sizes)
{
	sizes[0] = 10;
	sizes[1] = 30;
	*storage = storage_said;
	return ncid == 65536 && varid == 3 ? 0 : -33;
}

int nc_inq_var_endian(int ncid, int varid, int *endian)
{
	*endian = 1;
	return ncid == 65536 && varid == 3 ? 0 : -33;
}

/* ---- loading ---- */

static void *symbol(void *lib, const char *name)
{
	return dlsym(lib, name);
}

static struct plugin load(uint32_t id)
{
	char path[4096], dir[3000] = "";
	struct plugin p = {0};
	H5PL_type_t (*type)(void);
	const void *(*info)(void), *(*codec)(void);
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	void *entry;

	assert_true(n > 0);
	assert_non_null(strstr(dir, "/unit/"));
	*strstr(dir, "/unit/") = '\0';
	(void)snprintf(path, sizeof(path), "%s/plugins/libnczarrfs_h5%s.so", dir,
		       codec_find(id)->name);
	p.lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!p.lib)
		fail_msg("%s", dlerror());
	entry = symbol(p.lib, "H5PLget_plugin_type");
	assert_non_null(entry);
	memcpy(&type, &entry, sizeof(type));
	assert_int_equal(type(), H5PL_TYPE_FILTER);
	entry = symbol(p.lib, "H5PLget_plugin_info");
	assert_non_null(entry);
	memcpy(&info, &entry, sizeof(info));
	p.filter = info();
	entry = symbol(p.lib, "NCZ_get_codec_info");
	if (entry) {
		memcpy(&codec, &entry, sizeof(codec));
		p.codec = codec();
	}
	return p;
}

static void unload(struct plugin *p)
{
	assert_int_equal(dlclose(p->lib), 0);
}

/* ---- every plugin ---- */

/* What is a plugin is what libhdf5 lacks and has a registered id; a codec is in it when numcodecs
 * has one of that name. */
static void test_entries(void **state)
{
	const struct codec_ops *ops;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; (ops = codec_at(i)) && !ops->origin; i++)
		n += ops->h5_id > 255 && ops->h5_id < CODEC_PRIVATE;
	assert_int_equal(n, ARRAY_LEN(ids));
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		struct plugin p = load(ids[i]);

		ops = codec_find(ids[i]);
		assert_int_equal(p.filter->version, H5Z_CLASS_T_VERS);
		assert_int_equal(p.filter->id, ids[i]);
		assert_string_equal(p.filter->name, ops->name);
		assert_int_equal(p.filter->encoder_present, ops->encode != NULL);
		assert_true(p.filter->decoder_present);
		assert_non_null(p.filter->filter);
		assert_int_equal(p.filter->set_local != NULL, ops->prepare != NULL);
		assert_int_equal(p.filter->can_apply != NULL, ops->prepare != NULL);
		assert_int_equal(p.codec != NULL, ops->zarr2_id != NULL);
		if (p.codec) {
			assert_int_equal(p.codec->version, 1);
			assert_int_equal(p.codec->sort, 1);
			assert_int_equal(p.codec->h5_id, ids[i]);
			assert_string_equal(p.codec->id, ops->zarr2_id);
			assert_int_equal(p.codec->modify_parameters != NULL,
					 ops->prepare != NULL);
		}
		unload(&p);
	}
}

/* round_trip - n floats through a filter as libhdf5 calls it. Returns the bytes when stored. */
static size_t round_trip(const struct plugin *p, const struct codec_spec *spec, float *v,
			 size_t n)
{
	size_t bytes = n * sizeof(*v), size = bytes, stored, len;
	void *buf = malloc(size);

	assert_non_null(buf);
	memcpy(buf, v, bytes);
	stored = p->filter->filter(0, spec->n_params, spec->params, bytes, &size, &buf);
	assert_true(stored > 0 && stored <= bytes && size >= stored);
	len = p->filter->filter(H5Z_FLAG_REVERSE, spec->n_params, spec->params, stored, &size,
				&buf);
	assert_int_equal(len, bytes);
	memcpy(v, buf, bytes);
	free(buf);
	return stored;
}

/* Twice, and again after the library was unloaded. What lossy ones leave stays as it is. */
static void test_filter(void **state)
{
	enum { N = 30000 };
	static float want[N], got[N];
	const uint64_t chunk = N;
	const struct codec_array a = {
		.class = CODEC_FLOAT, .elem_size = sizeof(float), .rank = 1, .chunk = &chunk};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(ids); i++) {
		const struct codec_ops *ops = codec_find(ids[i / 2]);
		struct plugin p = load(ids[i / 2]);
		uint32_t params[CODEC_PARAMS_MAX];
		struct codec_spec spec = {.h5_id = ops->h5_id, .params = params};
		struct codec_spec none = {.h5_id = ops->h5_id};
		static const uint32_t packed[] = {0, 2}; /* without, bitshuffle is no shorter */

		if (ops->h5_id == CODEC_BITSHUFFLE)
			none = (struct codec_spec){ops->h5_id, 2, packed, ""};

		for (size_t k = 0; k < N; k++)
			want[k] = (float)(k / 70) / 3;
		if (ops->prepare)
			assert_int_equal(ops->prepare(&none, &a, params, &spec.n_params, NULL),
					 0);
		memcpy(got, want, sizeof(want));
		if (ops->encode) {
			size_t stored = round_trip(&p, &spec, got, N);

			assert_int_equal(stored < sizeof(want), !ops->lossy);
			assert_int_equal(memcmp(got, want, sizeof(want)) != 0, ops->lossy);
			memcpy(want, got, sizeof(want));
			(void)round_trip(&p, &spec, got, N);
			assert_memory_equal(got, want, sizeof(want));
		}
		unload(&p);
	}
}

/* ---- codecs ---- */

struct text {
	uint32_t id;
	const char *in;
	size_t n;
	unsigned params[7];
	const char *out;
};

static void test_json(void **state)
{
	static const struct text texts[] = {
		{CODEC_BZIP2,
		 "{\"id\": \"bz2\", \"level\": 5}",
		 1,
		 {5},
		 "{\"id\": \"bz2\", \"level\": 5}"},
		{CODEC_BZIP2,
		 "{\"id\":\"bz2\",\"level\":\"9\"}",
		 1,
		 {9},
		 "{\"id\": \"bz2\", \"level\": 9}"},
		{CODEC_ZSTD,
		 "{\"id\": \"zstd\", \"level\": 3}",
		 1,
		 {3},
		 "{\"id\": \"zstd\", \"level\": 3}"},
		{CODEC_ZSTD,
		 "{\"id\": \"zstd\", \"level\": -5, \"checksum\": true}",
		 1,
		 {(unsigned)-5},
		 "{\"id\": \"zstd\", \"level\": -5}"},
		{CODEC_BLOSC,
		 "{\"id\": \"blosc\", \"clevel\": 4, \"blocksize\": 0, \"cname\": \"zstd\", "
		 "\"shuffle\": 2}",
		 7,
		 {2, 2, 1, 0, 4, 2, 5},
		 "{\"id\": \"blosc\", \"cname\": \"zstd\", \"clevel\": 4, \"shuffle\": 2, "
		 "\"blocksize\": 0}"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const struct text *t = &texts[i];
		struct plugin p = load(t->id);
		unsigned *params = NULL;
		char *json = NULL;
		size_t n = 0;

		assert_int_equal(p.codec->codec_to_hdf5(t->in, &n, &params), 0);
		assert_int_equal(n, t->n);
		assert_memory_equal(params, t->params, n * sizeof(*params));
		assert_int_equal(p.codec->hdf5_to_codec(n, params, &json), 0);
		assert_string_equal(json, t->out);
		free(json);
		free(params);
		unload(&p);
	}
}

static void test_bad_json(void **state)
{
	static const struct text texts[] = {
		{.id = CODEC_BZIP2, .in = ""},
		{.id = CODEC_BZIP2, .in = "{\"level\": 5}"},
		{.id = CODEC_BZIP2, .in = "{\"id\": \"zstd\", \"level\": 5}"},
		{.id = CODEC_ZSTD, .in = "{\"id\": \"zstd\", \"level\": \"x\"}"},
		{.id = CODEC_ZSTD, .in = "{\"id\": \"zstd\", \"level\": 5"},
		{.id = CODEC_BLOSC, .in = "{\"id\": \"blosc\", \"cname\": \"lz5\"}"},
		{.id = CODEC_BLOSC, .in = "{\"id\": \"blosc\", \"shuffle\": 3}"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct plugin p = load(texts[i].id);
		unsigned mark = 0, *params = &mark;
		size_t n = 77;

		assert_int_equal(p.codec->codec_to_hdf5(texts[i].in, &n, &params), NC_EFILTER);
		assert_ptr_equal(params, &mark);
		assert_int_equal(n, 77);
		assert_int_equal(p.codec->codec_to_hdf5(NULL, &n, &params), NC_EINVAL);
		assert_int_equal(p.codec->hdf5_to_codec(0, NULL, NULL), NC_EINVAL);
		unload(&p);
	}
}

/* Without parameters a codec has its defaults. */
static void test_defaults(void **state)
{
	struct plugin p = load(CODEC_ZSTD);
	char *json = NULL;

	(void)state;
	assert_int_equal(p.codec->hdf5_to_codec(0, NULL, &json), 0);
	assert_string_equal(json, "{\"id\": \"zstd\", \"level\": 1}");
	free(json);
	unload(&p);
}

static unsigned *copy(const unsigned *v, size_t n)
{
	unsigned *p = malloc(n * sizeof(*p));

	assert_non_null(p);
	memcpy(p, v, n * sizeof(*p));
	return p;
}

/* The size of an element and of a chunk come from the variable. */
static void test_variable(void **state)
{
	static const unsigned visible[7] = {0, 0, 0, 0, 4, 1, 5},
			      working[7] = {2, 2, 8, 2400, 4, 1, 5},
			      wrong[7] = {0, 0, 0, 0, 4, 1, 77};
	struct plugin p = load(CODEC_BLOSC);
	unsigned *v = copy(visible, 7), *w = NULL;
	size_t nv = 7, nw = 0;
	int rc;

	(void)state;
	assert_non_null(p.codec->modify_parameters);
	rc = p.codec->modify_parameters(65536, 3, &nv, &v, &nw, &w);
	assert_int_equal(rc, 0);
	assert_int_equal(nw, 7);
	assert_memory_equal(w, working, sizeof(working));
	assert_memory_equal(v, visible, sizeof(visible));

	/* again, over what is there; and of a variable that nobody knows: as the user gave them */
	rc = p.codec->modify_parameters(65536, 4, &nv, &v, &nw, &w);
	assert_int_equal(rc, 0);
	assert_int_equal(nw, 7);
	assert_memory_equal(w, visible, sizeof(visible));
	storage_said = 1; /* not chunked */
	rc = p.codec->modify_parameters(65536, 3, &nv, &v, &nw, &w);
	storage_said = 0;
	assert_int_equal(rc, 0);
	assert_memory_equal(w, visible, sizeof(visible));

	memcpy(v, wrong, sizeof(wrong));
	rc = p.codec->modify_parameters(65536, 3, &nv, &v, &nw, &w);
	assert_int_equal(rc, NC_EFILTER);
	assert_memory_equal(w, visible, sizeof(visible));
	assert_int_equal(p.codec->modify_parameters(65536, 3, NULL, &v, &nw, &w), NC_EINVAL);
	free(v);
	free(w);
	unload(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries),  cmocka_unit_test(test_filter),
		cmocka_unit_test(test_json),     cmocka_unit_test(test_bad_json),
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_variable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
