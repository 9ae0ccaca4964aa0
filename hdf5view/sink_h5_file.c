/* sink_h5_file.c - the file that is changed, and how that becomes a file. */
#include "hdf5view/sink_h5_int.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* check_same - whether the path still leads to the file that `real` was made of. */
static int check_same(const struct h5_sink *s, struct err *e)
{
	const struct stat *was = &s->real->g.base.ds.st;
	struct stat st;

	if (stat(s->path, &st) < 0)
		return err_sys(e, errno, "'%.200s'", s->path);
	if (st.st_dev != was->st_dev || st.st_ino != was->st_ino)
		return err_set(e, -ESTALE, "'%.200s' is not the file that was opened", s->path);
	if (st.st_size != was->st_size || st.st_mtim.tv_sec != was->st_mtim.tv_sec ||
	    st.st_mtim.tv_nsec != was->st_mtim.tv_nsec)
		return err_set(e, -ESTALE, "'%.200s' was changed after it was opened", s->path);
	return 0;
}

static hid_t access_list(struct h5_sink *s)
{
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);

	(void)s;
	/* no chunk is written through the library's cache */
	if (fapl >= 0 && (H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG) < 0 ||
			  H5Pset_cache(fapl, 0, 0, 0, 0) < 0)) {
		h5_id_close(&fapl);
		return -1;
	}
	return fapl;
}

int h5s_file_open(struct h5_sink *s, struct err *e)
{
	auto_hid hid_t fapl = -1;
	int rc = check_same(s, e);

	if (rc)
		return rc;
	fapl = access_list(s);
	s->file = fapl < 0 ? -1 : H5Fopen(s->path, H5F_ACC_RDWR, fapl);
	if (s->file < 0)
		return h5_error(e, -EIO, "the HDF5 library cannot open the file for writing");
	return 0;
}

int h5s_file_commit(struct h5_sink *s, int (*gate)(void *arg, struct err *e), void *arg,
		    struct err *e)
{
	int rc = gate ? gate(arg, e) : 0;

	if (rc)
		return rc;
	if (H5Fclose(s->file) < 0)
		rc = h5_error(e, -EIO, "the HDF5 library cannot write the file");
	s->file = 0;
	return rc;
}

void h5s_file_close(struct h5_sink *s)
{
	h5_id_close(&s->file);
	s->file = 0;
}

int h5s_file_reason(const struct h5_sink *s, struct err *e)
{
	(void)s;
	(void)e;
	return 0;
}
