/* file.c - the file that is changed, and how that becomes a file. */
#include "hdf5view/journal/journal.h"
#include "hdf5view/sink/sink_int.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* check_same - whether what was opened is the file that `real` was made of. */
static int check_same(const struct h5_sink *s, struct err *e)
{
	const struct stat *was = &s->real->g.base.ds.st;
	struct stat st;

	if (fstat(h5_journal_fd(s->journal), &st) < 0)
		return err_sys(e, errno, "'%.200s'", s->path);
	if (st.st_dev != was->st_dev || st.st_ino != was->st_ino)
		return err_set(e, -ESTALE, "'%.200s' is not the file that was opened", s->path);
	if (st.st_size != was->st_size || st.st_mtim.tv_sec != was->st_mtim.tv_sec ||
	    st.st_mtim.tv_nsec != was->st_mtim.tv_nsec)
		return err_set(e, -ESTALE, "'%.200s' was changed after it was opened", s->path);
	return 0;
}

/* access_list - the journal's, and that no chunk is written through the library's cache. */
static hid_t access_list(struct h5_sink *s)
{
	hid_t fapl = h5_journal_fapl(s->journal);

	if (fapl >= 0 && (H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG) < 0 ||
			  H5Pset_cache(fapl, 0, 0, 0, 0) < 0)) {
		h5_id_close(&fapl);
		return -1;
	}
	return fapl;
}

int h5s_file_open(struct h5_sink *s, struct err *e)
{
	const struct h5_journal_options o = {.dir_fd = s->opts.dir_fd,
					     .no_journal = s->opts.no_journal};
	auto_hid hid_t fapl = -1;
	int rc = h5_journal_open(s->path, &o, &s->journal, e);

	if (!rc)
		rc = check_same(s, e);
	if (rc)
		return rc;
	fapl = access_list(s);
	s->file = fapl < 0 ? -1 : H5Fopen(s->path, H5F_ACC_RDWR, fapl);
	if (s->file >= 0)
		return 0;
	rc = h5s_file_reason(s, e);
	return rc ? rc : h5s_library(e, "the HDF5 library cannot open the file for writing");
}

int h5s_file_commit(struct h5_sink *s, int (*gate)(void *arg, struct err *e), void *arg,
		    struct err *e)
{
	int rc = 0;

	if (H5Fclose(s->file) < 0) {
		rc = h5s_file_reason(s, e);
		if (!rc)
			rc = h5s_library(e, "the HDF5 library cannot write the file");
	}
	s->file = 0;
	return rc ? rc : h5_journal_commit(s->journal, gate, arg, e);
}

void h5s_file_close(struct h5_sink *s)
{
	h5_id_close(&s->file);
	s->file = 0;
	h5_journal_close(s->journal);
	s->journal = NULL;
}

int h5s_file_reason(const struct h5_sink *s, struct err *e)
{
	return s->journal ? h5_journal_failure(s->journal, e) : 0;
}
