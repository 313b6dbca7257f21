/* The files of a store in its directory, by name. Nothing is followed, and nothing is believed that
 * another user could have put there. */
#ifndef RM_STORE_DIRECTORY_H
#define RM_STORE_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

#define DIRECTORY_NAME_BYTES 40U

/* Numbers of packs and manifests, ascending, malloc'ed. */
struct directory_names {
        uint64_t *packs;
        size_t n_packs;
        uint64_t *manifests;
        size_t n_manifests;
};

/* Opens the directory, and makes it if there is none. -EPERM: it is another user's, or others may
 * write there; or another negative errno. */
int directory_open(const char *path, int *ret_fd, struct rm_error *err);

void directory_pack_name(uint64_t number, char ret[static DIRECTORY_NAME_BYTES]);
void directory_manifest_name(uint64_t number, char ret[static DIRECTORY_NAME_BYTES]);
/* The name of a file while it is written. */
/* The number in such a name, exactly as it is written; 0: it is another name. */
uint64_t directory_pack_number(const char *name);
uint64_t directory_manifest_number(const char *name);
/* Is it the name of the manifest of that checkpoint, or of a pack that it may need? */
bool directory_name_valid(const char *name, uint64_t checkpoint);
/* DIR/head, DIR/g0: where the store of a capsule (below 0: mpirun's) is in the directory of its
 * job; malloc'ed. */
char *directory_of_capsule(const char *dir, int32_t capsule);
void directory_new_manifest_name(uint64_t number, char ret[static DIRECTORY_NAME_BYTES]);

/* Lists the packs and manifests. 0 or negative errno. */
int directory_names_read(int dir_fd, struct directory_names *ret, struct rm_error *err);
void directory_names_finish(struct directory_names *names);

/* Removes manifests that were not finished. 0 or negative errno. */
int directory_remove_new(int dir_fd, struct rm_error *err);
/* The sum of the sizes of all files in the directory. */
uint64_t directory_bytes(int dir_fd);

/* Opens a regular file of ours for reading; -EPERM: it is not one. -ENOENT without a text when
 * there is none. */
int directory_file_open(int dir_fd, const char *name, int *ret_fd, struct rm_error *err);
/* Creates a file for reading and writing. -EEXIST: it is there already; or another negative
 * errno. */
int directory_file_create(int dir_fd, const char *name, int *ret_fd, struct rm_error *err);
/* Removes a file. 0 also when there is none, or negative errno. */
int directory_file_remove(int dir_fd, const char *name, struct rm_error *err);

#endif
