/* model_left_out.c - what an HDF4 file has besides Scientific Data Sets, for the notes. */
#include "hdf5view/hdf4/hdf4_int.h"

#ifdef NCZARRFS_HDF4
#include <hdf/mfhdf.h>
#include <stdio.h>
#include <string.h>

/* counts - of what users made; the library makes tables and groups for its own purposes. */
struct counts {
	int32 tables, groups, images, texts;
};

static int32 positive(int32 n)
{
	return n > 0 ? n : 0;
}

static void count(int32 file, struct counts *n)
{
	int32 gr, an, images = 0, attrs = 0, v[4] = {0};

	if (Vstart(file) != FAIL) {
		n->tables = positive(VSgetvdatas(file, 0, 0, NULL));
		n->groups = positive(Vgetvgroups(file, 0, 0, NULL));
		(void)Vend(file);
	}
	gr = GRstart(file);
	if (gr != FAIL) {
		if (GRfileinfo(gr, &images, &attrs) != FAIL)
			n->images = positive(images);
		(void)GRend(gr);
	}
	an = ANstart(file);
	if (an != FAIL) {
		if (ANfileinfo(an, &v[0], &v[1], &v[2], &v[3]) != FAIL)
			for (size_t i = 0; i < ARRAY_LEN(v); i++)
				n->texts += positive(v[i]);
		(void)ANend(an);
	}
}

/* say - append ", <n> <what>s" to a line. */
static void say(char *line, size_t cap, int32 n, const char *what)
{
	size_t len = strlen(line);

	if (n > 0)
		(void)snprintf(line + len, cap - len, "%s%d %s%s", len ? ", " : "", (int)n,
			       what, n > 1 ? "s" : "");
}

int h4_left_out(struct h4_build *b, struct err *e)
{
	/* the library has the file open by this name, and opens no other */
	int32 file = Hopen(b->s->opened, DFACC_READ, 0);
	struct counts n = {0};
	char line[160] = "";

	if (file == FAIL)
		return 0;
	count(file, &n);
	(void)Hclose(file);
	say(line, sizeof(line), n.images, "raster image");
	say(line, sizeof(line), n.tables, "Vdata table");
	say(line, sizeof(line), n.groups, "Vgroup");
	say(line, sizeof(line), n.texts, "annotation");
	if (!line[0])
		return 0;
	return h4_note(b, "", e, "only Scientific Data Sets are shown; left out: %s", line);
}

#endif
