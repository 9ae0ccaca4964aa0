/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_parquet.c - Parquet files of references, Thrift's compact protocol, runs of bits, snappy.
 *
 * Input: a byte that says which, then the bytes.
 *
 * Properties: what is refused has a message; memory stays near what is allowed; values lie in
 * their column and end in a NUL; nothing is read behind the bytes or written behind the room; rows
 * that were written are read as the same; text that was written as Thrift is skipped whole.
 *
 *   make fuzz TIME=60 FUZZ=parquet */
#include <sys/stat.h>

#include "nczarr/parquet/parquet_int.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory.h"

#define MEMORY ((uint64_t)4 << 20)
#define ROWS 64
#define VALUES 512

static const struct pq_want want[] = {
	{"path", false}, {"offset", true}, {"size", true}, {"raw", false}};

static const struct pq_field fields[] = {{"path", PQ_TEXT, true, false},
					 {"offset", PQ_INT, false, false},
					 {"size", PQ_INT, false, false},
					 {"raw", PQ_RAW, true, false}};

static bool refused(int rc, const struct err *e)
{
	return (rc == -EBADMSG || rc == -EOPNOTSUPP || rc == -ERANGE || rc == -ENOMEM) &&
	       e->code == rc && e->msg[0];
}

static void columns(const struct pq_table *t)
{
	for (size_t c = 0; c < ARRAY_LEN(want); c++) {
		const struct pq_column *col = &t->columns[c];

		for (uint64_t i = 0; col->there && i < t->n; i++) {
			if ((col->nulls && col->nulls[i]) || want[c].is_int)
				continue;
			require(col->len[i] < col->bytes.len &&
				col->at[i] <= col->bytes.len - col->len[i] - 1);
			require(col->bytes.data[col->at[i] + col->len[i]] == '\0');
		}
	}
}

static void as_file(const uint8_t *p, size_t n)
{
	struct err e = ERR_INIT;
	struct pq_table t;
	int rc;

	memory_watch();
	rc = pq_read(p, n, want, ARRAY_LEN(want), MEMORY, &t, &e);
	require(rc == 0 || refused(rc, &e));
	require(memory_most() <= 3 * MEMORY);
	if (rc == 0)
		columns(&t);
	pq_table_release(&t);
}

struct row {
	char *path; /* owned; NULL */
	uint64_t off, size;
	struct slice raw;
	bool has_raw;
};

static void compare(const struct pq_table *t, const struct row *rows, size_t n)
{
	const struct pq_column *path = &t->columns[0], *raw = &t->columns[3];

	require(t->n == n);
	for (size_t i = 0; i < n; i++) {
		bool no_path = !path->there || (path->nulls && path->nulls[i]);
		bool no_raw = !raw->there || (raw->nulls && raw->nulls[i]);

		require(no_path == (rows[i].path == NULL || rows[i].has_raw) ||
			rows[i].has_raw);
		if (!no_path)
			require(strcmp((const char *)path->bytes.data + path->at[i],
				       rows[i].path) == 0);
		require(no_raw == !rows[i].has_raw);
		if (!no_raw)
			require(raw->len[i] == rows[i].raw.len &&
				memcmp(raw->bytes.data + raw->at[i], rows[i].raw.p,
				       rows[i].raw.len) == 0);
		require((uint64_t)t->columns[1].ints[i] == rows[i].off &&
			(uint64_t)t->columns[2].ints[i] == rows[i].size);
	}
}

/* as_rows - written, and read again. */
static void as_rows(struct slice *s)
{
	int fd = memory_file("", 0);
	struct row rows[ROWS];
	struct pq_writer *w = NULL;
	struct pq_table t;
	struct stat st;
	uint8_t *file;
	size_t n = 0;

	require(pq_writer_new(fields, ARRAY_LEN(fields), &w, NULL) == 0);
	for (; n < ROWS && more_of(s); n++) {
		uint8_t kind = rd_u8(s);
		struct row *x = &rows[n];

		*x = (struct row){.has_raw = kind % 3 == 1};
		x->off = x->has_raw || kind % 3 == 2 ? 0 : rd_le32(s);
		x->size = x->has_raw || kind % 3 == 2 ? 0 : rd_le16(s);
		if (x->has_raw)
			x->raw = piece_of(s);
		else if (kind % 3 == 0)
			x->path = piece_text(s);
		if (x->has_raw && !x->raw.p)
			x->raw.p = (const uint8_t *)"";
		require((x->path ? pq_writer_bytes(w, 0, x->path, strlen(x->path), NULL)
				 : pq_writer_null(w, 0, NULL)) == 0);
		require(pq_writer_int(w, 1, x->off, NULL) == 0 &&
			pq_writer_int(w, 2, x->size, NULL) == 0);
		require((x->has_raw ? pq_writer_bytes(w, 3, x->raw.p, x->raw.len, NULL)
				    : pq_writer_null(w, 3, NULL)) == 0);
		if (kind % 7 == 6)
			require(pq_writer_flush(w, fd, NULL) == 0);
	}
	require(pq_writer_end(w, fd, NULL) == 0 && fstat(fd, &st) == 0);
	file = malloc((size_t)st.st_size);
	require(file && io_pread(fd, file, (size_t)st.st_size, 0, NULL) == 0);
	require(pq_read(file, (size_t)st.st_size, want, ARRAY_LEN(want), MEMORY, &t, NULL) ==
		0);
	columns(&t);
	compare(&t, rows, n);
	pq_table_release(&t);
	pq_writer_free(w);
	for (size_t i = 0; i < n; i++)
		free(rows[i].path);
	free(file);
	(void)close(fd); /* of memory */
}

/* as_thrift - anything is read or skipped, within its bytes. */
static void as_thrift(const uint8_t *p, size_t n)
{
	struct thrift_reader t = {.p = p, .end = p + n}, in = {.p = p, .bad = true};
	int64_t number = 0;
	uint64_t natural = 0;
	const struct thrift_field of[] = {{1, .n = &number},
					  {2, .u = &natural},
					  {3, .at = &in, .type = THRIFT_LIST},
					  {4, .at = &in, .type = THRIFT_STRUCT}};

	thrift_read_struct(&t, of, ARRAY_LEN(of));
	require(t.p >= p && t.p <= p + n && in.p >= p && in.p <= p + n);
	thrift_read_struct(&in, of, ARRAY_LEN(of));
	require(in.p >= p && in.p <= p + n);
}

static void as_bits(struct slice *s)
{
	uint32_t width = rd_u8(s) % 33;
	uint64_t n = rd_le16(s) % VALUES;
	uint32_t *out = malloc(n ? n * sizeof(*out) : 1);
	size_t took;

	require(out != NULL);
	took = rle_bitpacked_hybrid(s->p, s->len, width, out, n);
	require(took == SIZE_MAX || took <= s->len);
	for (uint64_t i = 0; took != SIZE_MAX && i < n; i++)
		require(width == 32 || out[i] >> width == 0);
	free(out);
}

static void as_snappy(struct slice *s)
{
	size_t n = rd_le16(s) % 5000;
	uint8_t *out = malloc(n ? n : 1);
	struct err e = ERR_INIT;
	int rc;

	require(out != NULL);
	rc = pq_snappy(s->p, s->len, out, n, &e);
	require(rc == 0 || refused(rc, &e));
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice s = slice_of(data, size);

	switch (rd_u8(&s) % 5) {
	case 0:
		as_file(s.p, s.len);
		break;
	case 1:
		as_rows(&s);
		break;
	case 2:
		as_thrift(s.p, s.len);
		break;
	case 3:
		as_bits(&s);
		break;
	default:
		as_snappy(&s);
	}
	return 0;
}
