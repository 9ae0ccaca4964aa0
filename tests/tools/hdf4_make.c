/* SPDX-License-Identifier: BSD-3-Clause */
/* hdf4_make - HDF4 files that pyhdf cannot write: hdf4_make KIND FILE.
 *
 *   types      every number type, in the standard, native and little-endian form
 *   chunks     chunked, with every coder; edge chunks; chunks never written
 *   rewritten  compressed arrays whose elements were written twice
 *   records    arrays that can grow, of different lengths, on one dimension
 *   scales     dimension scales, attributes of dimensions, every predefined attribute
 *   names      names that are there twice, that no file system has, very long ones
 *   external   an array in the file FILE.data, and what else must not be opened
 *   crash      what the library does not survive
 *   groups     Vgroups within each other, tables, an image, annotations
 *   large      an array of a MiB in chunks, one compressed in one piece, one plain
 *
 * hdf4_make values FILE INDEX: the elements of an SDS as libhdf4 reads them, to standard output. */
#include <stdio.h>
#include <string.h>

#ifndef NCZARRFS_HDF4
int main(void)
{
	(void)fprintf(stderr, "HDF4 is not built in\n");
	return 2;
}
#else
#include "hdf5view/hdf4/hdf4_library.h"
#include <stdint.h>
#include <stdlib.h>

#define CHECK(x)                                                                               \
	do {                                                                                   \
		if ((x) == FAIL) {                                                             \
			(void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);          \
			HEprint(stderr, 0);                                                    \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

static uint32_t seed = 1;

/* numbers - n bytes that are finite numbers in any type: small ones in runs. */
static void *numbers(size_t n)
{
	uint8_t *p = calloc(n ? n : 1, 1);

	for (size_t i = 0; p && i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		p[i] = (uint8_t)(i / 16 % 3 == 0 ? 7 : seed >> 26);
	}
	if (!p)
		exit(1);
	return p;
}

static size_t size_of(int32 nt)
{
	return (size_t)DFKNTsize((nt & DFNT_MASK) | DFNT_NATIVE);
}

static void write_part(int32 sds, int32 nt, int32 rank, int32 *start, int32 *count)
{
	size_t n = size_of(nt);
	void *v;

	for (int32 i = 0; i < rank; i++)
		n *= (size_t)count[i];
	v = numbers(n);
	CHECK(SDwritedata(sds, start, NULL, count, v));
	free(v);
}

static void simple(int32 sd, const char *name, int32 nt, int32 len)
{
	int32 start = 0, sds = SDcreate(sd, name, nt, 1, &len);

	CHECK(sds);
	write_part(sds, nt, 1, &start, &len);
	CHECK(SDendaccess(sds));
}

static const int32 all_types[] = {DFNT_CHAR8,   DFNT_UCHAR8, DFNT_INT8,  DFNT_UINT8,
				  DFNT_INT16,   DFNT_UINT16, DFNT_INT32, DFNT_UINT32,
				  DFNT_FLOAT32, DFNT_FLOAT64};

static void types(int32 sd)
{
	static const int32 forms[] = {DFNT_HDF, DFNT_NATIVE, DFNT_LITEND};
	char name[40];

	for (size_t f = 0; f < 3; f++)
		for (size_t i = 0; i < sizeof(all_types) / sizeof(*all_types); i++) {
			(void)snprintf(name, sizeof(name), "t%d_%d", (int)all_types[i],
				       (int)forms[f]);
			simple(sd, name, all_types[i] | forms[f], 37);
		}
	for (size_t i = 0; i < sizeof(all_types) / sizeof(*all_types); i++) {
		int32 len = 5, sds;
		double fill = 0;

		(void)snprintf(name, sizeof(name), "never_%d", (int)all_types[i]);
		sds = SDcreate(sd, name, all_types[i], 1, &len);
		CHECK(sds);
		CHECK(SDendaccess(sds));
		(void)snprintf(name, sizeof(name), "filled_%d", (int)all_types[i]);
		sds = SDcreate(sd, name, all_types[i], 1, &len);
		CHECK(sds);
		memset(&fill, 65, sizeof(fill));
		CHECK(SDsetfillvalue(sds, &fill));
		CHECK(SDendaccess(sds));
	}
}

static void chunked(int32 sd, const char *name, int32 nt, comp_coder_t coder, int parts)
{
	int32 lens[3] = {7, 10, 5}, start[3] = {0}, count[3] = {7, 10, 5}, sds;
	HDF_CHUNK_DEF def;
	double fill = 0;

	memset(&def, 0, sizeof(def));
	def.chunk_lengths[0] = 3;
	def.chunk_lengths[1] = 4;
	def.chunk_lengths[2] = 5;
	sds = SDcreate(sd, name, nt, 3, lens);
	CHECK(sds);
	memset(&fill, 66, sizeof(fill));
	if (parts & 2)
		CHECK(SDsetfillvalue(sds, &fill));
	if (coder == COMP_CODE_NBIT) {
		def.nbit.start_bit = 6;
		def.nbit.bit_len = 7;
		CHECK(SDsetchunk(sds, def, HDF_CHUNK | HDF_NBIT));
	} else if (coder == COMP_CODE_NONE) {
		CHECK(SDsetchunk(sds, def, HDF_CHUNK));
	} else {
		def.comp.comp_type = coder;
		if (coder == COMP_CODE_DEFLATE)
			def.comp.cinfo.deflate.level = 6;
		if (coder == COMP_CODE_SKPHUFF)
			def.comp.cinfo.skphuff.skp_size = (intn)size_of(nt);
		CHECK(SDsetchunk(sds, def, HDF_CHUNK | HDF_COMP));
	}
	if (parts & 1) {
		count[0] = 3;
		count[1] = 4;
		start[0] = 3;
		start[1] = 4;
	}
	write_part(sds, nt, 3, start, count);
	CHECK(SDendaccess(sds));
}

static void chunks(int32 sd)
{
	static const comp_coder_t coders[] = {COMP_CODE_NONE, COMP_CODE_RLE, COMP_CODE_NBIT,
					      COMP_CODE_SKPHUFF, COMP_CODE_DEFLATE};
	char name[40];

	for (size_t c = 0; c < 5; c++)
		for (size_t i = 2; i < 10; i++)
			for (int parts = 0; parts < 4; parts++) {
				if (coders[c] == COMP_CODE_NBIT &&
				    (i > 7 || (parts != 0 && i != 4)))
					continue;
				if (i != 4 && parts > 1)
					continue;
				(void)snprintf(name, sizeof(name), "c%d_%d_%d", (int)coders[c],
					       (int)all_types[i], parts);
				chunked(sd, name, all_types[i], coders[c], parts);
			}
	for (size_t c = 1; c < 5; c++) { /* without chunks */
		int32 lens[2] = {40, 30}, start[2] = {0}, sds;
		comp_info info;

		memset(&info, 0, sizeof(info));
		info.deflate.level = 5;
		if (coders[c] == COMP_CODE_SKPHUFF)
			info.skphuff.skp_size = 4;
		(void)snprintf(name, sizeof(name), "whole%d", (int)coders[c]);
		sds = SDcreate(sd, name, DFNT_INT32, 2, lens);
		CHECK(sds);
		if (coders[c] == COMP_CODE_NBIT)
			CHECK(SDsetnbitdataset(sds, 9, 10, TRUE, FALSE));
		else
			CHECK(SDsetcompress(sds, coders[c], &info));
		write_part(sds, DFNT_INT32, 2, start, lens);
		CHECK(SDendaccess(sds));
	}
}

/* fill_all - constant elements, or noise: what deflate makes short, or long. */
static void fill_all(int32 sd, const char *name, int noise)
{
	int32 sds = SDselect(sd, SDnametoindex(sd, name)), start[2] = {0}, count[2] = {40, 40};
	static int32_t v[1600];

	CHECK(sds);
	for (int i = 0; i < 1600; i++) {
		seed = seed * 1664525 + 1013904223;
		v[i] = noise ? (int32_t)(seed >> 4) : 3;
	}
	CHECK(SDwritedata(sds, start, NULL, count, v));
	CHECK(SDendaccess(sds));
}

/* rewritten - compressed elements that became shorter, and longer, than they were. */
static void rewritten(int32 sd, const char *path)
{
	static const char *const names[] = {"chunks_shrink", "chunks_grow", "whole_shrink",
					    "whole_grow"};
	int32 lens[2] = {40, 40};
	HDF_CHUNK_DEF def;
	comp_info info;

	memset(&info, 0, sizeof(info));
	info.deflate.level = 6;
	memset(&def, 0, sizeof(def));
	def.comp.chunk_lengths[0] = def.comp.chunk_lengths[1] = 20;
	def.comp.comp_type = COMP_CODE_DEFLATE;
	def.comp.cinfo = info;
	for (int i = 0; i < 4; i++) {
		int32 sds = SDcreate(sd, names[i], DFNT_INT32, 2, lens);

		CHECK(sds);
		if (i < 2)
			CHECK(SDsetchunk(sds, def, HDF_CHUNK | HDF_COMP));
		else
			CHECK(SDsetcompress(sds, COMP_CODE_DEFLATE, &info));
		CHECK(SDendaccess(sds));
		fill_all(sd, names[i], i % 2 == 0);
	}
	CHECK(SDend(sd));
	sd = SDstart(path, DFACC_RDWR);
	CHECK(sd);
	for (int i = 0; i < 4; i++)
		fill_all(sd, names[i], i % 2);
	CHECK(SDend(sd));
}

static void records(int32 sd)
{
	static const int32 n[] = {9, 3, 0, 12};
	char name[40];

	for (int i = 0; i < 4; i++) {
		int32 lens[2] = {SD_UNLIMITED, 6}, start[2] = {0}, count[2] = {n[i], 6}, sds;
		int16 fill = 77;

		(void)snprintf(name, sizeof(name), "r%d", i);
		sds = SDcreate(sd, name, DFNT_INT16, 2, lens);
		CHECK(sds);
		CHECK(SDsetdimname(SDgetdimid(sds, 0), "time"));
		CHECK(SDsetdimname(SDgetdimid(sds, 1), "x"));
		if (i == 1)
			CHECK(SDsetfillvalue(sds, &fill));
		if (n[i])
			write_part(sds, DFNT_INT16, 2, start, count);
		CHECK(SDendaccess(sds));
	}
}

static void scales(int32 sd)
{
	int32 lens[2] = {4, 3}, start[2] = {0}, sds = SDcreate(sd, "v", DFNT_FLOAT32, 2, lens);
	float64 ys[4] = {1.5, 2.5, 3.5, 4.5};
	int16 range[2] = {-5, 5};
	float32 max = 10, min = -10;
	int32 dim;

	CHECK(sds);
	write_part(sds, DFNT_FLOAT32, 2, start, lens);
	CHECK(SDsetdatastrs(sds, "a long name", "kelvin", "F7.2", "cartesian"));
	CHECK(SDsetcal(sds, 0.5, 0.1, 3.0, 0.2, DFNT_INT16));
	CHECK(SDsetrange(sds, &max, &min));
	CHECK(SDsetattr(sds, "two", DFNT_INT16, 2, range));
	CHECK(SDsetattr(sds, "latin", DFNT_CHAR8, 4,
			"gr\xfc"
			"n"));
	dim = SDgetdimid(sds, 0);
	CHECK(SDsetdimname(dim, "y"));
	CHECK(SDsetdimscale(dim, 4, DFNT_FLOAT64, ys));
	CHECK(SDsetdimstrs(dim, "northing", "m", "F5.1"));
	dim = SDgetdimid(sds, 1);
	CHECK(SDsetdimname(dim, "x"));
	CHECK(SDsetattr(dim, "only", DFNT_CHAR8, 10, "attributes"));
	CHECK(SDendaccess(sds));
	CHECK(SDsetattr(sd, "title", DFNT_CHAR8, 11, "all of them"));
	CHECK(SDsetattr(sd, "bytes", DFNT_UINT8, 3, "abc"));
	CHECK(SDsetattr(sd, "y", DFNT_FLOAT64, 4, ys));
}

static void names(int32 sd)
{
	static const char *const odd[] = {"same", "same",    "same",       "a/b", "a_b",   ".",
					  "..",   "gr\xfcn", "with blank", "x:y", "same_4"};
	char text[400];

	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
		simple(sd, odd[i], DFNT_INT32, (int32)i + 2);
	memset(text, 'n', 250);
	text[250] = '\0';
	simple(sd, text, DFNT_INT8, 3);
	text[249] = 'm';
	simple(sd, text, DFNT_INT8, 3);
}

/* crash - a name that the library writes, and does not survive reading. */
static void crash(int32 sd)
{
	char text[400];

	memset(text, 'n', 256);
	text[256] = '\0';
	simple(sd, text, DFNT_INT8, 3);
	text[255] = 'm';
	simple(sd, text, DFNT_INT8, 3);
}

static void external(int32 sd, const char *path)
{
	int32 len = 16, start = 0, sds = SDcreate(sd, "outside", DFNT_INT32, 1, &len);
	char name[4096];

	(void)snprintf(name, sizeof(name), "%s.data", path);
	CHECK(sds);
	CHECK(SDsetexternalfile(sds, name, 0));
	write_part(sds, DFNT_INT32, 1, &start, &len);
	CHECK(SDendaccess(sds));
	simple(sd, "inside", DFNT_INT32, 16);
	chunked(sd, "hidden", DFNT_INT32, COMP_CODE_NONE, 0);
}

/* hide - chunks move to the file FILE.hidden: the SD interface does not tell. */
static void hide(const char *path)
{
	int32 file = Hopen(path, DFACC_RDWR, 0), aid, len = 0, at = 0;
	uint16 ref = 0, refs[100] = {0};
	char name[4096];
	int n = 0;

	CHECK(file);
	(void)snprintf(name, sizeof(name), "%s.hidden", path);
	aid = Hstartread(file, DFTAG_CHUNK, DFREF_WILDCARD);
	CHECK(aid);
	do {
		CHECK(Hinquire(aid, NULL, NULL, &ref, NULL, NULL, NULL, NULL, NULL));
		refs[n++] = ref;
	} while (n < 100 && Hnextread(aid, DFTAG_CHUNK, DFREF_WILDCARD, DF_CURRENT) != FAIL);
	CHECK(Hendaccess(aid));
	for (int i = 0; i < n; i++) {
		len = Hlength(file, DFTAG_CHUNK, refs[i]);
		CHECK(len);
		aid = HXcreate(file, DFTAG_CHUNK, refs[i], name, at, len);
		CHECK(aid);
		CHECK(Hendaccess(aid));
		at += len;
	}
	CHECK(Hclose(file));
}

static void groups(int32 sd, const char *path)
{
	int32 file, a, b, vs, gr, ri, lens[2] = {4, 4}, start[2] = {0};
	uint8 image[16] = {1, 2, 3};
	int32 table[3] = {1, 2, 3};

	simple(sd, "v", DFNT_INT32, 4);
	CHECK(SDend(sd));
	file = Hopen(path, DFACC_RDWR, 0);
	CHECK(file);
	CHECK(Vstart(file));
	a = Vattach(file, -1, "w");
	b = Vattach(file, -1, "w");
	CHECK(Vsetname(a, "a"));
	CHECK(Vsetname(b, "b"));
	CHECK(Vinsert(a, b));
	CHECK(Vaddtagref(b, DFTAG_VG, VQueryref(a))); /* a circle */
	CHECK(Vdetach(a));
	CHECK(Vdetach(b));
	vs = VSattach(file, -1, "w");
	CHECK(VSsetname(vs, "table"));
	CHECK(VSfdefine(vs, "n", DFNT_INT32, 1));
	CHECK(VSsetfields(vs, "n"));
	CHECK(VSwrite(vs, (uint8 *)table, 3, FULL_INTERLACE));
	CHECK(VSdetach(vs));
	CHECK(Vend(file));
	gr = GRstart(file);
	CHECK(gr);
	ri = GRcreate(gr, "image", 1, DFNT_UINT8, MFGR_INTERLACE_PIXEL, lens);
	CHECK(ri);
	CHECK(GRwriteimage(ri, start, NULL, lens, image));
	CHECK(GRendaccess(ri));
	CHECK(GRend(gr));
	CHECK(Hclose(file));
}

static void large(int32 sd)
{
	int32 lens[2] = {512, 600}, start[2] = {0}, sds;
	HDF_CHUNK_DEF def;
	comp_info info;

	memset(&def, 0, sizeof(def));
	memset(&info, 0, sizeof(info));
	def.comp.chunk_lengths[0] = 100;
	def.comp.chunk_lengths[1] = 500;
	def.comp.comp_type = COMP_CODE_DEFLATE;
	def.comp.cinfo.deflate.level = 1;
	sds = SDcreate(sd, "chunked", DFNT_INT32, 2, lens);
	CHECK(sds);
	CHECK(SDsetchunk(sds, def, HDF_CHUNK | HDF_COMP));
	write_part(sds, DFNT_INT32, 2, start, lens);
	CHECK(SDendaccess(sds));
	info.deflate.level = 1;
	sds = SDcreate(sd, "whole", DFNT_INT32, 2, lens);
	CHECK(sds);
	CHECK(SDsetcompress(sds, COMP_CODE_DEFLATE, &info));
	write_part(sds, DFNT_INT32, 2, start, lens);
	CHECK(SDendaccess(sds));
	sds = SDcreate(sd, "plain", DFNT_INT32, 2, lens);
	CHECK(sds);
	write_part(sds, DFNT_INT32, 2, start, lens);
	CHECK(SDendaccess(sds));
}

static int values(const char *path, const char *index)
{
	int32 sd = SDstart(path, DFACC_READ), sds, rank, nt, n_attrs, lens[32], start[32] = {0};
	size_t n, done;
	void *v;

	CHECK(sd);
	sds = SDselect(sd, (int32)strtol(index, NULL, 10));
	CHECK(sds);
	CHECK(SDgetinfo(sds, NULL, &rank, lens, &nt, &n_attrs));
	n = size_of(nt);
	for (int32 i = 0; i < rank; i++)
		n *= (size_t)lens[i];
	v = calloc(n ? n : 1, 1);
	if (!v)
		return 1;
	CHECK(SDreaddata(sds, start, NULL, lens, v));
	done = fwrite(v, 1, n, stdout);
	free(v);
	CHECK(SDendaccess(sds));
	CHECK(SDend(sd));
	return done == n && fflush(stdout) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	int32 sd;

	if (argc == 4 && strcmp(argv[1], "values") == 0)
		return values(argv[2], argv[3]);
	if (argc != 3)
		return 2;
	sd = SDstart(argv[2], DFACC_CREATE);
	CHECK(sd);
	if (strcmp(argv[1], "types") == 0)
		types(sd);
	else if (strcmp(argv[1], "chunks") == 0)
		chunks(sd);
	else if (strcmp(argv[1], "records") == 0)
		records(sd);
	else if (strcmp(argv[1], "scales") == 0)
		scales(sd);
	else if (strcmp(argv[1], "names") == 0)
		names(sd);
	else if (strcmp(argv[1], "crash") == 0)
		crash(sd);
	else if (strcmp(argv[1], "external") == 0)
		external(sd, argv[2]);
	else if (strcmp(argv[1], "large") == 0)
		large(sd);
	else if (strcmp(argv[1], "groups") == 0) {
		groups(sd, argv[2]);
		return 0;
	} else if (strcmp(argv[1], "rewritten") == 0) {
		rewritten(sd, argv[2]);
		return 0;
	} else {
		return 2;
	}
	CHECK(SDend(sd));
	if (strcmp(argv[1], "external") == 0)
		hide(argv[2]);
	return 0;
}
#endif
