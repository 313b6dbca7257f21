/* The source and the reader of the views that a client is shown. */
#ifndef RM_REQUESTS_VIEW_SOURCE_H
#define RM_REQUESTS_VIEW_SOURCE_H

#include "daemon/client/client.h"
#include "daemon/view/view.h"

/* The state of this node as it is now. Valid until the loop goes on. */
struct view_source request_view_source(const struct rmd *rmd);
struct view_reader request_view_reader(const struct client *client);

#endif
