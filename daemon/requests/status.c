#include <stdlib.h>

#include "common/util.h"
#include "common/version.h"
#include "daemon/config/config.h"
#include "daemon/job/bodies.h"
#include "daemon/job/limits.h"
#include "daemon/job/pages_test.h"
#include "daemon/requests/requests.h"
#include "daemon/requests/view_source.h"
#include "daemon/sensor/sensors.h"
#include "daemon/state/feature_level.h"
#include "daemon/view/status.h"

/* Borrows from the sensors; the caller frees the array and its entries. */
static Rm__SensorView **sensor_views(const struct sensors *sensors, size_t *ret_n) {
        size_t n = sensors_count(sensors);
        Rm__SensorView **views = xcalloc(n, sizeof(*views));

        for (size_t i = 0; i < n; i++) {
                struct sensor_view from = sensors_view(sensors, i);
                Rm__SensorView *view = views[i] = xcalloc(1, sizeof(*view));

                rm__sensor_view__init(view);
                view->name = (char *) from.name;
                view->status = (char *) from.status;
                view->text = (char *) from.text;
                view->fault = (char *) from.fault;
                view->since_usec = from.since_usec;
        }
        *ret_n = n;
        return views;
}

static void fill_tracking(const struct rmd *rmd, struct view_own *own) {
        own->untracked = "";
        own->tracking = rmd->config->move_tracking && pages_test_passed(rmd->pages_test, &own->untracked);
        if (!rmd->config->move_tracking)
                own->untracked = "[move] tracking = no in rmd.conf";
}

/* All but the texts that the caller has to free afterwards. */
static struct view_own own_figures(const struct rmd *rmd, Rm__SensorView *const *sensors, size_t n_sensors) {
        struct view_own own = {
                .cluster = rmd->config->cluster_name,
                .node = rmd->config->node_name,
                .policy = rmd->config->policy,
                .version = RM_VERSION,
                .up_usec = now_usec() - rmd->start_usec,
                .log_usec = cluster_log_usec(rmd->cluster),
                .synced = cluster_synced(rmd->cluster),
                .log_disk_full = cluster_disk_full(rmd->cluster),
                .bodies_disk_full = bodies_disk_full(rmd->bodies),
                .sensors = sensors,
                .n_sensors = n_sensors,
                .second_key_file = rmd->config->second_key_file,
        };

        fill_tracking(rmd, &own);
        return own;
}

void request_status(struct client *client, const Rm__LocalRequest *request) {
        const struct rmd *rmd = client->rmd;
        size_t n_sensors = 0;
        Rm__SensorView **sensors = sensor_views(rmd->sensors, &n_sensors);
        cleanup_free char *missing = limits_missing(rmd);
        cleanup_free char *failures = cluster_join_failures(rmd->cluster);
        cleanup_free char *unserved = web_unserved(rmd);
        struct view_own own = own_figures(rmd, sensors, n_sensors);
        struct view_source source = request_view_source(rmd);
        struct view_reader reader = request_view_reader(client);
        Rm__Status *status;

        own.limits_missing = missing;
        own.join_failures = failures;
        own.web_unserved = unserved;
        status = view_status(&source, &reader, &own);

        client_answer(client, request->id, &status->base);
        rm__status__free_unpacked(status, NULL);
        free_all(sensors, n_sensors);
}
