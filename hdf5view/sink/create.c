/* create.c - an empty netCDF-4 file, as netCDF-C makes it. */
#include "hdf5view/hdf5view.h"
#include "hdf5view/netcdf4/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* create_make - the file is there, empty, and ours. */
static int create_make(const char *path)
{
	auto_hid hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), fapl = H5Pcreate(H5P_FILE_ACCESS),
		       file = -1, root = -1;

	if (fapl < 0 || fcpl < 0 || nc_h5_gcpl(fcpl) < 0 ||
	    H5Pset_fclose_degree(fapl, H5F_CLOSE_SEMI) < 0 ||
	    H5Pset_libver_bounds(fapl, H5F_LIBVER_V18, H5F_LIBVER_V18) < 0)
		return -1;
	file = H5Fcreate(path, H5F_ACC_TRUNC, fcpl, fapl);
	root = file < 0 ? -1 : H5Gopen2(file, "/", H5P_DEFAULT);
	if (root < 0 || nc_h5_properties(root) < 0)
		return -1;
	h5_id_close(&root);
	root = -1;
	if (H5Fflush(file, H5F_SCOPE_GLOBAL) < 0 || H5Fclose(file) < 0)
		return -1;
	file = -1;
	return 0;
}

int hdf5_create(const char *path, struct err *e)
{
	auto_fd int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	char own[32];
	int rc = 0;

	if (fd < 0)
		return err_sys(e, errno, "'%.200s'", path);
	/* not by its name, which leads to another file when somebody wants it to */
	(void)snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
	h5_enter();
	if (create_make(own) < 0)
		rc = h5_error(e, -EIO, "the HDF5 library cannot make the file");
	h5_leave();
	if (!rc && fsync(fd) < 0)
		rc = err_sys(e, errno, "'%.200s'", path);
	if (rc)
		(void)unlink(path); /* what is half made is nothing */
	return rc;
}
