/* rmd serves over HTTP a page that shows the cluster, and the metrics of this node and, while it
 * leads, of the cluster. rmd-web(7) is the contract. */
#ifndef RM_WEB_WEB_H
#define RM_WEB_WEB_H

#include "common/error.h"
#include "daemon/context.h"

/* Listens where [web] listen says. A place that cannot be had is told in the log, and is no reason
 * for rmd not to run. -ENOMEM: the server does not start. NULL: it is to listen nowhere. */
int web_create(struct rmd *rmd, struct web **ret, struct rm_error *err);
void web_destroy(struct web *web); /* NULL ok */

/* The state changed, or who leads: who looks at the page is told soon. NULL ok. */
void web_wake(struct web *web);

#endif
