/* SPDX-License-Identifier: BSD-3-Clause */
/* Every dataset of every file of a corpus: good files are compared with libhdf5 chunk by chunk,
 * files from the "bad" folder only must not do harm. Skips when there is no corpus. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fts.h>

#include "tests/unit/hdf5view/hdf5/h5_oracle.h"

static const char *corpus(void)
{
	const char *dir = getenv("NCZARRFS_CORPUS");

	return dir ? dir : "../shared/corpus";
}

static void walk(const char *sub, bool hostile)
{
	struct oracle sum = {0};
	char top[4096];
	char *roots[] = {top, NULL};
	unsigned files = 0, refused = 0;
	FTSENT *ent;
	FTS *fts;

	snprintf(top, sizeof(top), "%s/%s", corpus(), sub);
	if (access(top, R_OK) < 0) {
		print_message("no corpus at %s\n", top);
		skip();
	}
	fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	assert_non_null(fts);
	while ((ent = fts_read(fts))) {
		struct oracle o = {0};
		struct err e = ERR_INIT;

		if (ent->fts_info != FTS_F)
			continue;
		files++;
		if (hostile) {
			sum.datasets += oracle_hostile(ent->fts_path);
			continue;
		}
		refused += oracle_file(&o, ent->fts_path, &e) != 0;
		sum.datasets += o.datasets;
		sum.chunked += o.chunked;
		sum.unsupported += o.unsupported;
		sum.mismatches += o.mismatches;
		sum.chunks += o.chunks;
		sum.absent += o.absent;
		sum.unread += o.unread;
		for (size_t i = 0; i < ARRAY_LEN(sum.kinds); i++)
			sum.kinds[i] += o.kinds[i];
	}
	fts_close(fts);
	print_message("%s: %u files (%u refused), %u datasets (%u unsupported), %u chunked, "
		      "%llu chunks (%llu absent, %llu not readable by the library), by index "
		      "%u %u %u %u %u %u\n",
		      sub, files, refused, sum.datasets, sum.unsupported, sum.chunked,
		      (unsigned long long)sum.chunks, (unsigned long long)sum.absent,
		      (unsigned long long)sum.unread, sum.kinds[0], sum.kinds[1], sum.kinds[2],
		      sum.kinds[3], sum.kinds[4], sum.kinds[5]);
	assert_int_equal(sum.mismatches, 0);
}

static void test_hdf5(void **state)
{
	(void)state;
	walk("hdf5", false);
}

static void test_netcdf4(void **state)
{
	(void)state;
	walk("netcdf4", false);
}

static void test_bad(void **state)
{
	(void)state;
	walk("bad", true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hdf5),
		cmocka_unit_test(test_netcdf4),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
