/* Policies that are texts: NAME.mod in the folder of the policies, run by the policy `mathprog`. */
#ifndef RM_SCHED_POLICY_MODEL_H
#define RM_SCHED_POLICY_MODEL_H

#include <stdbool.h>

#include "common/error.h"

enum { MODEL_MAX_BYTES = 1024 * 1024 };

#define MODEL_RUNNER "mathprog"
#define MODEL_SUFFIX ".mod"

/* The field of a snapshot that carries a model for the host to run, instead of the one in its
 * folder. */
#define MODEL_FIELD "x_model"

/* Can the folder's policy `name` be read at all, be it NAME.so or a text? Any name may be asked
 * for. */
bool policy_there(const char *directory, const char *name);

/* The text of policy `name`, when it is one; NULL with 0 when it is not (there is NAME.so, or
 * neither). -EINVAL: what is there is no text of a sensible size. The caller frees it. */
int model_read(const char *directory, const char *name, char **ret_text, struct rm_error *err);

#endif
