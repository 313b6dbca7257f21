#include "daemon/setup/uplink.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "common/util.h"

#define ROUTES_PATH "/proc/net/route"
#define ROUTES_MAX_BYTES (1024U * 1024U)
#define ROUTE_IS_UP 1U /* RTF_UP */

/* Each line: interface, destination, gateway, flags, two counters, metric, mask and more. */
void uplink_of_routes(const char *routes, char ret_name[static 16]) {
        cleanup_free char *text = xstrdup(routes);
        unsigned best = UINT32_MAX;
        char *saved = NULL;

        ret_name[0] = '\0';
        for (char *line = strtok_r(text, "\n", &saved); line; line = strtok_r(NULL, "\n", &saved)) {
                unsigned destination, gateway, flags, counters[2], metric, mask;
                char name[16];

                if (sscanf(line, "%15s %x %x %x %u %u %u %x", name, &destination, &gateway, &flags, &counters[0], &counters[1],
                           &metric, &mask) != 8)
                        continue;
                if (destination != 0 || mask != 0 || !(flags & ROUTE_IS_UP) || metric >= best)
                        continue;
                best = metric;
                memcpy(ret_name, name, sizeof(name));
        }
}

static bool has_address(const struct ifaddrs *i) {
        return i->ifa_addr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK);
}

static const struct ifaddrs *find_name(const struct ifaddrs *list, const char *name) {
        for (const struct ifaddrs *i = list; i; i = i->ifa_next)
                if (has_address(i) && strcmp(i->ifa_name, name) == 0)
                        return i;
        return NULL;
}

/* NULL: there is none, or more than one; `*ret_names` has them all. */
static const struct ifaddrs *find_only(const struct ifaddrs *list, char **ret_names) {
        const struct ifaddrs *found = NULL;
        char *names = xstrdup("");
        size_t n = 0;

        for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
                /* An interface may have several addresses. */
                if (!has_address(i) || find_name(list, i->ifa_name) != i)
                        continue;
                found = i;
                names = text_add_word(names, " ", i->ifa_name);
                n++;
        }
        *ret_names = names;
        return n == 1 ? found : NULL;
}

static const struct ifaddrs *choose(const struct ifaddrs *list, const char *requested, char **ret_names) {
        cleanup_free char *routes = NULL;
        const struct ifaddrs *only = find_only(list, ret_names);
        char name[16] = "";
        size_t size;

        if (requested)
                return find_name(list, requested);
        if (read_file(ROUTES_PATH, ROUTES_MAX_BYTES, &routes, &size) == 0)
                uplink_of_routes(routes, name);
        return name[0] && find_name(list, name) ? find_name(list, name) : only;
}

int uplink_find(const char *requested, char **ret_name, char **ret_address, struct rm_error *err) {
        cleanup_free char *names = NULL;
        struct ifaddrs *list = NULL;
        const struct ifaddrs *chosen;
        char number[INET_ADDRSTRLEN];
        int r = 0;

        if (getifaddrs(&list) < 0)
                return error_sys(err, -errno, "reading the interfaces");
        chosen = choose(list, requested, &names);
        if (chosen) {
                (void) inet_ntop(AF_INET, &((struct sockaddr_in *) (void *) chosen->ifa_addr)->sin_addr, number, sizeof(number));
                *ret_name = xstrdup(chosen->ifa_name);
                *ret_address = xstrdup(number);
        } else if (requested) {
                r = error_set(err, -EADDRNOTAVAIL, "no interface '%s' is up with an IPv4 address (there are: %s)", requested,
                              *names ? names : "none");
        } else if (*names) {
                r = error_set(err, -EADDRNOTAVAIL,
                              "several interfaces have an IPv4 address, and none has the default route: say which one connects the "
                              "nodes by --uplink (%s)",
                              names);
        } else {
                r = error_set(err, -EADDRNOTAVAIL, "no interface is up with an IPv4 address: connect this node first");
        }
        freeifaddrs(list);
        return r;
}
