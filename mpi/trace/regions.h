/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Included once for each kind of COUNT: reading and writing files, where the file's own pointer is and at a given place. */

#define READS(ROW, name)                                                                                                                \
	ROW(NAME(File_read##name), (MPI_File file, void *data, COUNT count, MPI_Datatype type, MPI_Status *status),                     \
	    (file, data, count, type, status))
#define READS_AT(ROW, name)                                                                                                             \
	ROW(NAME(File_read##name), (MPI_File file, MPI_Offset at, void *data, COUNT count, MPI_Datatype type, MPI_Status *status),      \
	    (file, at, data, count, type, status))
#define WRITES(ROW, name)                                                                                                               \
	ROW(NAME(File_write##name), (MPI_File file, const void *data, COUNT count, MPI_Datatype type, MPI_Status *status),              \
	    (file, data, count, type, status))
#define WRITES_AT(ROW, name)                                                                                                            \
	ROW(NAME(File_write##name), (MPI_File file, MPI_Offset at, const void *data, COUNT count, MPI_Datatype type, MPI_Status *status), \
	    (file, at, data, count, type, status))
READS(ROW, )
READS(ROW, _shared)
READS(ALL, _all)
READS(ALL, _ordered)
READS_AT(ROW, _at)
READS_AT(ALL, _at_all)
WRITES(ROW, )
WRITES(ROW, _shared)
WRITES(ALL, _all)
WRITES(ALL, _ordered)
WRITES_AT(ROW, _at)
WRITES_AT(ALL, _at_all)
#undef READS
#undef READS_AT
#undef WRITES
#undef WRITES_AT

/* The request's completion is not recorded: it is no message's. */
#define BEGINS(name, DATA)                                                                                                     \
	ROW(NAME(File_##name), (MPI_File file, DATA data, COUNT count, MPI_Datatype type PENDING), (file, data, count, type WITH))
#define BEGINS_AT(name, DATA)                                                                                                  \
	ROW(NAME(File_##name), (MPI_File file, MPI_Offset at, DATA data, COUNT count, MPI_Datatype type PENDING),                       \
	    (file, at, data, count, type WITH))
#define PENDING , MPI_Request *request
#define WITH , request
BEGINS(iread, void *)
BEGINS(iread_all, void *)
BEGINS(iread_shared, void *)
BEGINS_AT(iread_at, void *)
BEGINS_AT(iread_at_all, void *)
BEGINS(iwrite, const void *)
BEGINS(iwrite_all, const void *)
BEGINS(iwrite_shared, const void *)
BEGINS_AT(iwrite_at, const void *)
BEGINS_AT(iwrite_at_all, const void *)
#undef PENDING
#undef WITH
#define PENDING
#define WITH
BEGINS(read_all_begin, void *)
BEGINS(read_ordered_begin, void *)
BEGINS_AT(read_at_all_begin, void *)
BEGINS(write_all_begin, const void *)
BEGINS(write_ordered_begin, const void *)
BEGINS_AT(write_at_all_begin, const void *)
#undef PENDING
#undef WITH
#undef BEGINS
#undef BEGINS_AT
