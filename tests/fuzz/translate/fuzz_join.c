/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_join.c - the index file of joined datasets (translate/concat/index.c), which is in a user's
 * cache directory and may be torn, damaged or somebody else's.
 *
 * Input: what follows the file's magic number and checksum, which are put in front.
 *
 * Properties: whatever it says, what is taken over of a member can be of one dataset: its forms are
 * in the table, ascend by path and are no longer than the member.
 *
 *   make fuzz TIME=60 FUZZ=join */
#include "translate/concat/concat_int.h"
#include "tests/fuzz/fuzz.h"

#define FORMS_MAX ((uint64_t)1 << 22)
#define MEMBERS 3

static char names[MEMBERS][12] = {"/d/a.nc", "/d/b2.nc", "/d/b10.nc"}, dim[] = "time";

/* begin - three files, whose identity is as simple as an input can hit. */
static void begin(struct concat *j, struct concat_member *v)
{
	memset(v, 0, MEMBERS * sizeof(*v));
	*j = (struct concat){
		.members = v, .n_members = MEMBERS, .dim = dim, .pattern = names[0]};
	for (int i = 0; i < MEMBERS; i++)
		v[i].path = names[i];
	concat_forms_init(&j->forms, FORMS_MAX);
}

static void end(struct concat *j)
{
	for (int i = 0; i < MEMBERS; i++) {
		free(j->members[i].forms);
		free(j->members[i].coord);
	}
	concat_forms_release(&j->forms);
}

static void look(const struct concat *j)
{
	for (int i = 0; i < MEMBERS; i++) {
		const struct concat_member *m = &j->members[i];

		require(m->path == names[i]);
		for (uint32_t k = 0; k < m->n_forms; k++) {
			const struct concat_form *f;

			require(m->forms[k] < j->forms.n);
			f = &j->forms.v[m->forms[k]];
			require(f->rank > 0 && f->axis < f->rank && f->shape[f->axis] <= m->len);
			require(k == 0 ||
				strcmp(j->forms.v[m->forms[k - 1]].path, f->path) < 0);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct concat_member v[MEMBERS];
	struct concat j;
	uint8_t *all = malloc(size + 12);
	uint32_t sum = codec_crc32c_sum(0, data, size);

	require(all != NULL);
	memcpy(all, "nczjoin\2", 8);
	for (int i = 0; i < 4; i++)
		all[8 + i] = (uint8_t)(sum >> 8 * i);
	if (size > 0)
		memcpy(all + 12, data, size);
	begin(&j, v);
	(void)concat_index_parse(&j, all, size + 12);
	look(&j);
	end(&j);
	free(all);
	return 0;
}
