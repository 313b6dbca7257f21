#include "daemon/state/owner.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

static bool is_member(const struct owner_today *today, uint32_t group) {
        for (size_t i = 0; i < today->n_groups; i++)
                if (today->groups[i] == group)
                        return true;
        return false;
}

static void add_number(char **text, uint32_t number) {
        char *longer = xasprintf("%s%s%u", *text ? *text : "", *text ? " " : "", number);

        free(*text);
        *text = longer;
}

int owner_check(const Rm__JobSpec *spec, const struct owner_today *today, struct rm_error *err) {
        cleanup_free char *lost = NULL;

        if (spec->uid == 0)
                return 0;
        if (strcmp(spec->user, today->name) != 0)
                return error_set(err, -EPERM, "it is of uid %u, which was %s when it was submitted, and is %s today", spec->uid,
                                 spec->user, today->name);
        if (!is_member(today, spec->gid))
                add_number(&lost, spec->gid);
        for (size_t i = 0; i < spec->n_groups; i++)
                if (spec->groups[i] != spec->gid && !is_member(today, spec->groups[i]))
                        add_number(&lost, spec->groups[i]);
        if (!lost)
                return 0;
        return error_set(err, -EPERM, "it has the rights of groups that %s is not a member of any more (%s)", spec->user, lost);
}
