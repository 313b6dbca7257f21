/* Communicators that the program makes. Until all members are known to have one it is not
 * established: then it is rebuilt. */
#include "rtlib/ft/create.h"

#include <string.h>

#include "common/util.h"
#include "rtlib/ft/collective.h"
#include "rtlib/ft/ft.h"
#include "rtlib/ft/meet.h"
#include "rtlib/ft/rejoin.h"
#include "rtlib/ft/watch.h"

#define HASH_START UINT64_C(0xcbf29ce484222325)
#define HASH_FACTOR UINT64_C(0x100000001b3)

static uint64_t hash_more(uint64_t hash, uint64_t value) {
        hash = (hash ^ value) * HASH_FACTOR;
        return hash ^ hash >> 29;
}

int *group_processes(MPI_Group group, int *ret_n) {
        MPI_Group world;
        int n = 0, *own, *processes;

        (void) mpi.Comm_group(ft.meeting, &world);
        (void) mpi.Group_size(group, &n);
        own = xcalloc((size_t) n + 1, sizeof(*own));
        processes = xcalloc((size_t) n + 1, sizeof(*processes));
        for (int i = 0; i < n; i++)
                own[i] = i;
        (void) mpi.Group_translate_ranks(group, n, own, world, processes);
        (void) mpi.Group_free(&world);
        free(own);
        *ret_n = n;
        return processes;
}

static int *members_of(MPI_Comm comm, int *ret_n) {
        MPI_Group group;
        int *processes;

        (void) mpi.Comm_group(comm, &group);
        processes = group_processes(group, ret_n);
        (void) mpi.Group_free(&group);
        return processes;
}

/* Leaves the living ones in the list of a group's processes; `places`: where those are in it. */
static int keep_living(int *processes, int *places, int n) {
        int living = 0;

        for (int i = 0; i < n; i++)
                if (!losses_has(&ft.losses, (uint32_t) processes[i], ft.repaired)) {
                        places[living] = i;
                        processes[living++] = processes[i];
                }
        return living;
}

int *group_living_processes(MPI_Group group, int *ret_n) {
        int n, *processes = group_processes(group, &n), *places = xcalloc((size_t) n + 1, sizeof(*places));

        *ret_n = keep_living(processes, places, n);
        free(places);
        return processes;
}

static MPI_Group without_lost(MPI_Group group) {
        MPI_Group ret;
        int n, *processes = group_processes(group, &n), *places = xcalloc((size_t) n + 1, sizeof(*places));
        int living = keep_living(processes, places, n);

        if (mpi.Group_incl(group, living, places, &ret) != MPI_SUCCESS)
                ft_give_up("MPI makes no group of %d ranks", living);
        free(processes);
        free(places);
        return ret;
}

/* A topology is MPI's own, and cannot be given to a process that joins later. */
static bool is_replaceable(const struct making *m) {
        int kind = MPI_UNDEFINED;

        if (m->own || ft.ranks == ft.size || m->way >= MAKE_CART)
                return false;
        (void) mpi.Topo_test(m->made, &kind);
        return kind == MPI_UNDEFINED;
}

/* `made`: what MPI has made for the program; the library's own is made beside it. */
static int add(struct making *m, struct comm *parent, uint64_t id, uint64_t parent_id) {
        MPI_Comm shadow;
        int n, rank, *world, rc;

        if (m->made == mpi.comm_null)
                return MPI_SUCCESS;
        world = members_of(m->made, &n);
        if (n == 1) {
                free(world);
                return MPI_SUCCESS;
        }
        blocked_enter(m->made);
        rc = mpi.Comm_dup(m->made, &shadow);
        if (rc != MPI_SUCCESS) {
                (void) mpi.Comm_revoke(m->made);
                free(world);
                return rc;
        }
        (void) mpi.Comm_set_errhandler(m->made, mpi.errors_return);
        (void) mpi.Comm_set_errhandler(shadow, mpi.errors_return);
        (void) mpi.Comm_rank(m->made, &rank);
        for (int i = 0; i < n; i++)
                id = hash_more(id, (uint64_t) world[i]);
        while (parent_id == COMM_NO_PARENT && comm_by_id(id))
                id++;
        m->comm = comm_add(m->made, shadow, id, n, rank, world, parent->depth + 1);
        m->comm->parent = parent_id;
        m->comm->born = parent->done;
        m->comm->origin = parent->id;
        m->comm->way = m->way;
        m->comm->tag = m->tag;
        m->comm->replaceable = is_replaceable(m);
        m->comm->handler = parent->handler;
        m->comm->attributes = parent->attributes && (m->way == MAKE_DUP || m->way == MAKE_DUP_WITH_INFO);
        return MPI_SUCCESS;
}

static bool has_topology(const struct comm *c) {
        int kind = MPI_UNDEFINED;

        (void) mpi.Topo_test(c->user, &kind);
        return kind != MPI_UNDEFINED;
}

/* On the library's own, which is revoked once a loss is heard of: on the program's, a rank that
 * waits for one that has given up would wait indefinitely. Attributes are on the program's alone,
 * and so is a topology once the other was rebuilt. */
static MPI_Comm made_on(const struct making *m, const struct comm *c) {
        bool copies = m->way == MAKE_DUP || m->way == MAKE_DUP_WITH_INFO, spares = c == ft.world && ft.ranks < ft.size;
        bool own = copies ? c->attributes || has_topology(c) : m->way == MAKE_CART_SUB;

        return own && !comm_has_lost(c) && !spares && !c->peers ? c->user : c->shadow;
}

static int call_graph(struct making *m, const struct comm *c, MPI_Comm on) {
        const struct edges *e = m->edges;
        const char *call = m->way == MAKE_GRAPH ? "MPI_Graph_create" : "MPI_Dist_graph_create";

        if (comm_has_lost(c))
                ft_give_up("%s: a rank of the communicator was lost", call);
        if (m->way == MAKE_GRAPH)
                return mpi.Graph_create(on, e->n, e->degrees, e->to, e->reorder, &m->made);
        if (m->way == MAKE_DIST_GRAPH)
                return mpi.Dist_graph_create(on, e->n, e->from, e->degrees, e->to, e->weights, m->info, e->reorder, &m->made);
        return mpi.Dist_graph_create_adjacent(on, e->n, e->from, e->weights, e->m, e->to, e->to_weights, m->info, e->reorder,
                                              &m->made);
}

static int call(struct making *m, struct comm *c) {
        MPI_Comm on = made_on(m, c);
        MPI_Group group;
        int rc;

        switch (m->way) {
        case MAKE_DUP:
                return mpi.Comm_dup(on, &m->made);
        case MAKE_DUP_WITH_INFO:
                return mpi.Comm_dup_with_info(on, m->info, &m->made);
        case MAKE_SPLIT:
                return mpi.Comm_split(on, m->color, m->key, &m->made);
        case MAKE_SPLIT_TYPE:
                return mpi.Comm_split_type(on, m->color, m->key, m->info, &m->made);
        case MAKE_OF_GROUP:
                group = without_lost(m->group);
                rc = mpi.Comm_create(on, group, &m->made);
                (void) mpi.Group_free(&group);
                return rc;
        case MAKE_CART:
                return mpi.Cart_create(on, m->key, m->dims, m->periods, m->color, &m->made);
        case MAKE_CART_SUB:
                if (comm_has_lost(c))
                        ft_give_up("MPI_Cart_sub: a rank of the topology was lost");
                return mpi.Cart_sub(on, m->dims, &m->made);
        case MAKE_GRAPH:
        case MAKE_DIST_GRAPH:
        case MAKE_DIST_GRAPH_ADJACENT:
                return call_graph(m, c, on);
        }
        return MPI_ERR_INTERN;
}

static void forget(struct making *m) {
        if (m->comm)
                comm_remove(m->comm);
        m->comm = NULL;
        m->made = mpi.comm_null;
}

int making_run(struct making *m, struct comm *c) {
        int rc;

        forget(m);
        rc = mpi.Barrier(c->shadow);
        watch_call("the making of a communicator");
        if (rc == MPI_SUCCESS && !ft_was_hit(c->shadow, ft.repaired))
                rc = call(m, c);
        else
                rc = MPI_ERR_PROC_FAILED;
        if (rc == MPI_SUCCESS)
                rc = add(m, c, hash_more(hash_more(HASH_START, c->id), c->done), c->id);
        watch_call(NULL);
        blocked_enter(c->shadow);
        return rc;
}

/* Open MPI 5.0 makes communicators of a parent with a lower index first, and does not take back
 * that one is being made when it fails: all others would wait for it. One that is made of
 * MPI_COMM_SELF, which has the lowest index but for MPI_COMM_WORLD, does not wait, and takes it
 * back. */
void making_clear(void) {
        MPI_Comm copy;

        if (mpi.Comm_dup(mpi.comm_self, &copy) == MPI_SUCCESS)
                (void) mpi.Comm_free(&copy);
}

/* All members of the parent take part. */
static int make(struct making *m, const char *name, struct comm *c, MPI_Comm *ret) {
        const struct op o = { .kind = OP_CREATE, .name = name, .making = m, .root = -1 };
        int rc;

        if (rejoin_claim(m, name, c, ret))
                return MPI_SUCCESS;
        rc = collective(c, &o);
        if (rc != MPI_SUCCESS)
                return error_raise(c, rc);
        if (m->comm)
                m->comm->established = true;
        *ret = m->made;
        return rc;
}

int comm_copy(struct comm *c, const char *call, struct comm **ret) {
        struct making m = { .way = MAKE_DUP, .own = true };
        const struct op o = { .kind = OP_CREATE, .name = call, .making = &m, .root = -1 };
        int rc = collective(c, &o);

        if (rc != MPI_SUCCESS)
                return rc;
        if (m.comm)
                m.comm->established = true;
        else if (m.made != mpi.comm_null)
                (void) mpi.Comm_free(&m.made);
        *ret = m.comm;
        return MPI_SUCCESS;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *ret) {
        struct making m = { .way = MAKE_DUP };
        struct comm *c = ft_comm(comm);

        return c ? make(&m, "MPI_Comm_dup", c, ret) : REAL(Comm_dup)(comm, ret);
}
FT_WRAPS(Comm_dup);

int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *ret) {
        struct making m = { .way = MAKE_DUP_WITH_INFO, .info = info };
        struct comm *c = ft_comm(comm);

        return c ? make(&m, "MPI_Comm_dup_with_info", c, ret) : REAL(Comm_dup_with_info)(comm, info, ret);
}
FT_WRAPS(Comm_dup_with_info);

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *ret) {
        struct making m = { .way = MAKE_SPLIT, .color = color, .key = key };
        struct comm *c = ft_comm(comm);

        return c ? make(&m, "MPI_Comm_split", c, ret) : REAL(Comm_split)(comm, color, key, ret);
}
FT_WRAPS(Comm_split);

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *ret) {
        struct making m = { .way = MAKE_SPLIT_TYPE, .color = type, .key = key, .info = info };
        struct comm *c = ft_comm(comm);

        return c ? make(&m, "MPI_Comm_split_type", c, ret) : REAL(Comm_split_type)(comm, type, key, info, ret);
}
FT_WRAPS(Comm_split_type);

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *ret) {
        struct making m = { .way = MAKE_OF_GROUP, .group = group };
        struct comm *c = ft_comm(comm);

        return c ? make(&m, "MPI_Comm_create", c, ret) : REAL(Comm_create)(comm, group, ret);
}
FT_WRAPS(Comm_create);

int MPI_Cart_create(MPI_Comm comm, int n, const int dims[], const int periods[], int reorder, MPI_Comm *ret) {
        struct making m = { .way = MAKE_CART, .key = n, .dims = dims, .periods = periods, .color = reorder };
        struct comm *c = ft_comm(comm);

        return c ? make(&m, "MPI_Cart_create", c, ret) : REAL(Cart_create)(comm, n, dims, periods, reorder, ret);
}
FT_WRAPS(Cart_create);

int MPI_Cart_sub(MPI_Comm comm, const int remains[], MPI_Comm *ret) {
        struct making m = { .way = MAKE_CART_SUB, .dims = remains };
        struct comm *c = ft_comm(comm);

        return c ? make(&m, "MPI_Cart_sub", c, ret) : REAL(Cart_sub)(comm, remains, ret);
}
FT_WRAPS(Cart_sub);

int MPI_Graph_create(MPI_Comm comm, int n, const int index[], const int edges[], int reorder, MPI_Comm *ret) {
        const struct edges e = { .n = n, .degrees = index, .to = edges, .reorder = reorder };
        struct making m = { .way = MAKE_GRAPH, .edges = &e };
        struct comm *c = ft_comm(comm);

        return c ? make(&m, "MPI_Graph_create", c, ret) : REAL(Graph_create)(comm, n, index, edges, reorder, ret);
}
FT_WRAPS(Graph_create);

int MPI_Dist_graph_create(MPI_Comm comm, int n, const int from[], const int degrees[], const int to[], const int weights[],
                          MPI_Info info, int reorder, MPI_Comm *ret) {
        const struct edges e = { .n = n, .from = from, .degrees = degrees, .to = to, .weights = weights, .reorder = reorder };
        struct making m = { .way = MAKE_DIST_GRAPH, .edges = &e, .info = info };
        struct comm *c = ft_comm(comm);

        return c ? make(&m, "MPI_Dist_graph_create", c, ret)
                 : REAL(Dist_graph_create)(comm, n, from, degrees, to, weights, info, reorder, ret);
}
FT_WRAPS(Dist_graph_create);

int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int n, const int from[], const int weights[], int m, const int to[],
                                   const int to_weights[], MPI_Info info, int reorder, MPI_Comm *ret) {
        const struct edges e = {
                .n = n, .m = m, .from = from, .to = to, .weights = weights, .to_weights = to_weights, .reorder = reorder
        };
        struct making making = { .way = MAKE_DIST_GRAPH_ADJACENT, .edges = &e, .info = info };
        struct comm *c = ft_comm(comm);

        return c ? make(&making, "MPI_Dist_graph_create_adjacent", c, ret)
                 : REAL(Dist_graph_create_adjacent)(comm, n, from, weights, m, to, to_weights, info, reorder, ret);
}
FT_WRAPS(Dist_graph_create_adjacent);

/* Only members of the group take part, and so they alone see that all have it. */
static int try_group(struct making *m, struct comm *c, int tag) {
        MPI_Group group = without_lost(m->group);
        int rc;

        forget(m);
        if (!meet_group(group, hash_more(c->id, (uint64_t) tag))) {
                (void) mpi.Group_free(&group);
                return MPI_ERR_PROC_FAILED;
        }
        watch_call("MPI_Comm_create_group");
        blocked_enter(c->shadow);
        rc = mpi.Comm_create_group(c->shadow, group, tag, &m->made);
        (void) mpi.Group_free(&group);
        if (rc == MPI_SUCCESS)
                rc = add(m, c, hash_more(hash_more(HASH_START, c->id), (uint64_t) tag), COMM_NO_PARENT);
        blocked_leave();
        watch_call(NULL);
        if (rc == MPI_SUCCESS && m->comm) {
                blocked_enter(m->comm->shadow);
                rc = mpi.Barrier(m->comm->shadow);
                blocked_leave();
                if (rc != MPI_SUCCESS)
                        (void) mpi.Comm_revoke(m->comm->shadow);
        }
        return rc;
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *ret) {
        struct making m = { .way = MAKE_OF_GROUP, .group = group, .tag = tag };
        struct comm *c = ft_comm(comm);
        int rc;

        if (!c)
                return REAL(Comm_create_group)(comm, group, tag, ret);
        if (rejoin_claim_group(&m, c, tag, ret))
                return MPI_SUCCESS;
        for (;;) {
                if (ft_is_behind())
                        ft_repair();
                rc = try_group(&m, c, tag);
                if (rc == MPI_SUCCESS || !error_is_loss(rc))
                        break;
                if (!ft_is_behind())
                        ft_await_loss();
                ft_repair();
                if (m.comm && m.comm->established)
                        break;
        }
        if (rc != MPI_SUCCESS && !(m.comm && m.comm->established))
                return error_raise(c, rc);
        if (m.comm)
                m.comm->established = true;
        *ret = m.made;
        return MPI_SUCCESS;
}
FT_WRAPS(Comm_create_group);

/* Other ranks may need the operations that this rank has kept, until all have come so far. */
int MPI_Comm_free(MPI_Comm *comm) {
        const struct op barrier = { .kind = OP_BARRIER, .name = "MPI_Comm_free", .root = -1 };
        struct comm *c = ft_comm(*comm);
        MPI_Comm shadow;
        bool leave_it;

        if (!c || c == ft.world)
                return REAL(Comm_free)(comm);
        (void) collective(c, &barrier);
        shadow = c->shadow;
        leave_it = ft.losses.count > 0 || shadow == mpi.comm_self;
        comm_remove(c);
        if (!leave_it)
                (void) mpi.Comm_free(&shadow);
        return mpi.Comm_free(comm);
}
FT_WRAPS(Comm_free);

int MPI_Comm_disconnect(MPI_Comm *comm) {
        return ft_comm(*comm) ? MPI_Comm_free(comm) : REAL(Comm_disconnect)(comm);
}
FT_WRAPS(Comm_disconnect);
