#include "daemon/capsule/init/net/filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter_arp.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>

#include <libmnl/libmnl.h>

#include "common/error.h"
#include "common/log.h"
#include "common/util.h"
#include "daemon/capsule/init/net/netlink.h"

#define CUT_TABLE "rmd_cut"
#define JOB_TABLE "rmd_job"
#define PEERS "peers"

enum {
        BATCH_BYTES = 32 * 1024,
        PEERS_A_MESSAGE = 1000, /* 16 bytes each: an attribute has 64 KiB at most */
        CUT_PRIORITY = -400,
        JOB_PRIORITY = -300, /* after the cut */
        LO_INDEX = 1,
        CRIU_MARK = 0xc114, /* SOCCR_MARK of CRIU's soccr/soccr.h */
        TYPE_IPADDR = 7, /* what nft(8) shows the set's keys as */
};

struct family {
        uint8_t family;
        uint32_t in;
        uint32_t out;
};

/* The cut drops IPv6 as well. What keeps jobs apart has rules for each packet, so it leaves out the
 * look at the protocol: IPv6 is off in a capsule, and no frame of it leaves the device. */
static const struct family cut_families[] = { { NFPROTO_INET, NF_INET_LOCAL_IN, NF_INET_LOCAL_OUT },
                                              { NFPROTO_ARP, NF_ARP_IN, NF_ARP_OUT } };
static const struct family job_families[] = { { NFPROTO_IPV4, NF_INET_LOCAL_IN, NF_INET_LOCAL_OUT },
                                              { NFPROTO_ARP, NF_ARP_IN, NF_ARP_OUT } };

/* ---- a transaction: it is there as a whole or not at all ---- */

struct batch {
        struct mnl_nlmsg_batch *mnl;
        char *buffer;
        uint8_t family; /* of the messages that follow */
        const char *table;
        unsigned messages;
};

static void put_mark(struct batch *b, uint16_t type) {
        struct nlmsghdr *h = mnl_nlmsg_put_header(mnl_nlmsg_batch_current(b->mnl));
        struct nfgenmsg *nfg = mnl_nlmsg_put_extra_header(h, sizeof(*nfg));

        h->nlmsg_type = type;
        h->nlmsg_flags = NLM_F_REQUEST;
        nfg->nfgen_family = AF_UNSPEC;
        nfg->version = NFNETLINK_V0;
        nfg->res_id = htons(NFNL_SUBSYS_NFTABLES);
        mnl_nlmsg_batch_next(b->mnl);
}

static int batch_begin(struct batch *b, const char *table, struct rm_error *error) {
        *b = (struct batch) { .table = table, .buffer = xcalloc(2, BATCH_BYTES) };
        b->mnl = mnl_nlmsg_batch_start(b->buffer, BATCH_BYTES);
        if (!b->mnl) {
                free(b->buffer);
                return error_set(error, -ENOMEM, "no memory for a netlink batch");
        }
        put_mark(b, NFNL_MSG_BATCH_BEGIN);
        return 0;
}

static int batch_end(struct batch *b, struct mnl_socket *nl) {
        int r;

        put_mark(b, NFNL_MSG_BATCH_END);
        r = netlink_talk(nl, mnl_nlmsg_batch_head(b->mnl), mnl_nlmsg_batch_size(b->mnl), b->messages);
        mnl_nlmsg_batch_stop(b->mnl);
        free(b->buffer);
        return r;
}

static struct nlmsghdr *message(struct batch *b, uint16_t type, uint16_t flags) {
        struct nlmsghdr *h =
                netlink_request(mnl_nlmsg_batch_current(b->mnl), (uint16_t) ((NFNL_SUBSYS_NFTABLES << 8) | type), flags);
        struct nfgenmsg *nfg = mnl_nlmsg_put_extra_header(h, sizeof(*nfg));

        nfg->nfgen_family = b->family;
        nfg->version = NFNETLINK_V0;
        b->messages++;
        return h;
}

static void put_table(struct batch *b, bool on) {
        struct nlmsghdr *h = message(b, on ? NFT_MSG_NEWTABLE : NFT_MSG_DELTABLE, on ? NLM_F_CREATE : 0);

        mnl_attr_put_strz(h, NFTA_TABLE_NAME, b->table);
        mnl_nlmsg_batch_next(b->mnl);
}

/* A base chain whose policy is to drop. `device` is only for the family netdev. */
static void put_chain(struct batch *b, const char *name, uint32_t hook, const char *device, int priority) {
        struct nlmsghdr *h = message(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
        struct nlattr *nest;

        mnl_attr_put_strz(h, NFTA_CHAIN_TABLE, b->table);
        mnl_attr_put_strz(h, NFTA_CHAIN_NAME, name);
        nest = mnl_attr_nest_start(h, NFTA_CHAIN_HOOK);
        mnl_attr_put_u32(h, NFTA_HOOK_HOOKNUM, htonl(hook));
        mnl_attr_put_u32(h, NFTA_HOOK_PRIORITY, htonl((uint32_t) priority));
        if (device)
                mnl_attr_put_strz(h, NFTA_HOOK_DEV, device);
        mnl_attr_nest_end(h, nest);
        mnl_attr_put_u32(h, NFTA_CHAIN_POLICY, htonl(NF_DROP));
        mnl_attr_put_strz(h, NFTA_CHAIN_TYPE, "filter");
        mnl_nlmsg_batch_next(b->mnl);
}

static void put_set(struct batch *b, size_t size) {
        struct nlmsghdr *h = message(b, NFT_MSG_NEWSET, NLM_F_CREATE);
        struct nlattr *nest;

        mnl_attr_put_strz(h, NFTA_SET_TABLE, b->table);
        mnl_attr_put_strz(h, NFTA_SET_NAME, PEERS);
        mnl_attr_put_u32(h, NFTA_SET_FLAGS, 0);
        mnl_attr_put_u32(h, NFTA_SET_KEY_TYPE, htonl(TYPE_IPADDR));
        mnl_attr_put_u32(h, NFTA_SET_KEY_LEN, htonl(sizeof(uint32_t)));
        mnl_attr_put_u32(h, NFTA_SET_ID, htonl(1));
        nest = mnl_attr_nest_start(h, NFTA_SET_DESC); /* a size known ahead gives the fastest kind of hash table */
        mnl_attr_put_u32(h, NFTA_SET_DESC_SIZE, htonl((uint32_t) size));
        mnl_attr_nest_end(h, nest);
        mnl_nlmsg_batch_next(b->mnl);
}

static void put_elements(struct batch *b, const uint32_t *addresses, size_t n) {
        struct nlmsghdr *h = message(b, NFT_MSG_NEWSETELEM, NLM_F_CREATE);
        struct nlattr *list;

        mnl_attr_put_strz(h, NFTA_SET_ELEM_LIST_TABLE, b->table);
        mnl_attr_put_strz(h, NFTA_SET_ELEM_LIST_SET, PEERS);
        list = mnl_attr_nest_start(h, NFTA_SET_ELEM_LIST_ELEMENTS);
        for (size_t i = 0; i < n; i++) {
                struct nlattr *element = mnl_attr_nest_start(h, NFTA_LIST_ELEM);
                struct nlattr *key = mnl_attr_nest_start(h, NFTA_SET_ELEM_KEY);

                mnl_attr_put_u32(h, NFTA_DATA_VALUE, addresses[i]);
                mnl_attr_nest_end(h, key);
                mnl_attr_nest_end(h, element);
        }
        mnl_attr_nest_end(h, list);
        mnl_nlmsg_batch_next(b->mnl);
}

/* ---- a rule: expressions, each of which may end it, and the verdict ---- */

struct rule {
        struct batch *batch;
        struct nlmsghdr *h;
        struct nlattr *expressions, *element, *data;
};

static struct rule rule_begin(struct batch *b, const char *chain) {
        struct rule rule = { .batch = b, .h = message(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND) };

        mnl_attr_put_strz(rule.h, NFTA_RULE_TABLE, b->table);
        mnl_attr_put_strz(rule.h, NFTA_RULE_CHAIN, chain);
        rule.expressions = mnl_attr_nest_start(rule.h, NFTA_RULE_EXPRESSIONS);
        return rule;
}

static void expression_begin(struct rule *rule, const char *name) {
        rule->element = mnl_attr_nest_start(rule->h, NFTA_LIST_ELEM);
        mnl_attr_put_strz(rule->h, NFTA_EXPR_NAME, name);
        rule->data = mnl_attr_nest_start(rule->h, NFTA_EXPR_DATA);
}

static void expression_end(struct rule *rule) {
        mnl_attr_nest_end(rule->h, rule->data);
        mnl_attr_nest_end(rule->h, rule->element);
}

static void put_value(struct rule *rule, uint16_t attribute, const void *data, size_t size) {
        struct nlattr *nest = mnl_attr_nest_start(rule->h, attribute);

        mnl_attr_put(rule->h, NFTA_DATA_VALUE, size, data);
        mnl_attr_nest_end(rule->h, nest);
}

static void load_meta(struct rule *rule, enum nft_meta_keys key) {
        expression_begin(rule, "meta");
        mnl_attr_put_u32(rule->h, NFTA_META_KEY, htonl((uint32_t) key));
        mnl_attr_put_u32(rule->h, NFTA_META_DREG, htonl(NFT_REG_1));
        expression_end(rule);
}

static void load_payload(struct rule *rule, enum nft_payload_bases base, uint32_t offset, uint32_t size) {
        expression_begin(rule, "payload");
        mnl_attr_put_u32(rule->h, NFTA_PAYLOAD_DREG, htonl(NFT_REG_1));
        mnl_attr_put_u32(rule->h, NFTA_PAYLOAD_BASE, htonl((uint32_t) base));
        mnl_attr_put_u32(rule->h, NFTA_PAYLOAD_OFFSET, htonl(offset));
        mnl_attr_put_u32(rule->h, NFTA_PAYLOAD_LEN, htonl(size));
        expression_end(rule);
}

static void compare(struct rule *rule, enum nft_cmp_ops op, const void *data, size_t size) {
        expression_begin(rule, "cmp");
        mnl_attr_put_u32(rule->h, NFTA_CMP_SREG, htonl(NFT_REG_1));
        mnl_attr_put_u32(rule->h, NFTA_CMP_OP, htonl((uint32_t) op));
        put_value(rule, NFTA_CMP_DATA, data, size);
        expression_end(rule);
}

static void mask(struct rule *rule, uint32_t bits) {
        uint32_t zero = 0;

        expression_begin(rule, "bitwise");
        mnl_attr_put_u32(rule->h, NFTA_BITWISE_SREG, htonl(NFT_REG_1));
        mnl_attr_put_u32(rule->h, NFTA_BITWISE_DREG, htonl(NFT_REG_1));
        mnl_attr_put_u32(rule->h, NFTA_BITWISE_LEN, htonl(sizeof(bits)));
        put_value(rule, NFTA_BITWISE_MASK, &bits, sizeof(bits));
        put_value(rule, NFTA_BITWISE_XOR, &zero, sizeof(zero));
        expression_end(rule);
}

static void is_peer(struct rule *rule) {
        expression_begin(rule, "lookup");
        mnl_attr_put_strz(rule->h, NFTA_LOOKUP_SET, PEERS);
        mnl_attr_put_u32(rule->h, NFTA_LOOKUP_SREG, htonl(NFT_REG_1));
        mnl_attr_put_u32(rule->h, NFTA_LOOKUP_SET_ID, htonl(1));
        expression_end(rule);
}

static void rule_accept(struct rule *rule) {
        struct nlattr *value, *verdict;

        expression_begin(rule, "immediate");
        mnl_attr_put_u32(rule->h, NFTA_IMMEDIATE_DREG, htonl(NFT_REG_VERDICT));
        value = mnl_attr_nest_start(rule->h, NFTA_IMMEDIATE_DATA);
        verdict = mnl_attr_nest_start(rule->h, NFTA_DATA_VERDICT);
        mnl_attr_put_u32(rule->h, NFTA_VERDICT_CODE, htonl(NF_ACCEPT));
        mnl_attr_nest_end(rule->h, verdict);
        mnl_attr_nest_end(rule->h, value);
        expression_end(rule);
        mnl_attr_nest_end(rule->h, rule->expressions);
        mnl_nlmsg_batch_next(rule->batch->mnl);
}

/* ---- the job's table ---- */

/* Offsets of fields from the start of the header that `base` names. */
enum { IP_SOURCE = 12, IP_TARGET = 16, ARP_SENDER_MAC = 8, ARP_SENDER = 14, ARP_TARGET = 24, ETH_SOURCE = 6 };

static void ip_lo_rule(struct batch *b, const char *chain, enum nft_meta_keys key) {
        const uint32_t lo = LO_INDEX;
        struct rule rule = rule_begin(b, chain);

        load_meta(&rule, key);
        compare(&rule, NFT_CMP_EQ, &lo, sizeof(lo));
        rule_accept(&rule);
}

static void from_us(struct rule *rule, const struct filter_job *job) {
        load_payload(rule, NFT_PAYLOAD_NETWORK_HEADER, IP_SOURCE, 4);
        compare(rule, NFT_CMP_EQ, &job->address, 4);
}

static void elsewhere(struct rule *rule, const struct filter_job *job, uint32_t field) {
        uint32_t bits = htonl(~0U << (32 - job->prefix));
        uint32_t network = job->address & bits;

        load_payload(rule, NFT_PAYLOAD_NETWORK_HEADER, field, 4);
        mask(rule, bits);
        compare(rule, NFT_CMP_NEQ, &network, 4);
}

/* A packet without a header of the link layer is not of this epoch either. */
static void of_this_epoch(struct rule *rule, const struct filter_job *job) {
        load_payload(rule, NFT_PAYLOAD_LL_HEADER, ETH_SOURCE, FILTER_EPOCH_BYTES);
        compare(rule, NFT_CMP_EQ, job->mac, FILTER_EPOCH_BYTES);
}

/* The gateway is no capsule, and has a MAC of its own. `field`: where the sender's address is. */
static void gateway_rule(struct batch *b, const struct filter_job *job, uint32_t field) {
        struct rule rule;

        if (job->gateway == 0)
                return;
        rule = rule_begin(b, "in");
        load_payload(&rule, NFT_PAYLOAD_NETWORK_HEADER, field, 4);
        compare(&rule, NFT_CMP_EQ, &job->gateway, 4);
        rule_accept(&rule);
}

static void put_ip_rules(struct batch *b, const struct filter_job *job) {
        struct rule rule = rule_begin(b, "in");

        of_this_epoch(&rule, job);
        load_payload(&rule, NFT_PAYLOAD_NETWORK_HEADER, IP_SOURCE, 4);
        is_peer(&rule);
        rule_accept(&rule);
        rule = rule_begin(b, "out");
        from_us(&rule, job);
        load_payload(&rule, NFT_PAYLOAD_NETWORK_HEADER, IP_TARGET, 4);
        is_peer(&rule);
        rule_accept(&rule);
        gateway_rule(b, job, IP_SOURCE);
        /* Last, as ranks in one capsule talk through shared memory. */
        ip_lo_rule(b, "in", NFT_META_IIF);
        ip_lo_rule(b, "out", NFT_META_OIF);
        if (job->gateway == 0)
                return;
        rule = rule_begin(b, "in");
        elsewhere(&rule, job, IP_SOURCE);
        rule_accept(&rule);
        rule = rule_begin(b, "out");
        from_us(&rule, job);
        elsewhere(&rule, job, IP_TARGET);
        rule_accept(&rule);
}

static void put_arp_rules(struct batch *b, const struct filter_job *job) {
        struct rule rule = rule_begin(b, "in");

        of_this_epoch(&rule, job);
        load_payload(&rule, NFT_PAYLOAD_NETWORK_HEADER, ARP_SENDER, 4);
        is_peer(&rule);
        rule_accept(&rule);
        rule = rule_begin(b, "out");
        load_payload(&rule, NFT_PAYLOAD_NETWORK_HEADER, ARP_SENDER, 4);
        compare(&rule, NFT_CMP_EQ, &job->address, 4);
        load_payload(&rule, NFT_PAYLOAD_NETWORK_HEADER, ARP_TARGET, 4);
        is_peer(&rule);
        rule_accept(&rule);
        gateway_rule(b, job, ARP_SENDER);
}

static int put_peers(struct mnl_socket *nl, const uint32_t *peers, size_t n, struct rm_error *error) {
        for (size_t done = 0; done < n; done += PEERS_A_MESSAGE) {
                size_t more = n - done < PEERS_A_MESSAGE ? n - done : PEERS_A_MESSAGE;

                for (size_t i = 0; i < ARRAY_SIZE(job_families); i++) {
                        struct batch b;
                        int r = batch_begin(&b, JOB_TABLE, error);

                        if (r < 0)
                                return r;
                        b.family = job_families[i].family;
                        put_elements(&b, peers + done, more);
                        r = batch_end(&b, nl);
                        if (r < 0)
                                return error_sys(error, r, "cannot set the job's addresses in the packet filter (nf_tables)");
                }
        }
        return 0;
}

/* Chooses the peers: without our own address, which nobody else may use, and with the gateway's.
 * Returns how many. */
static size_t choose_peers(const struct filter_job *job, uint32_t **ret) {
        uint32_t *peers = xcalloc(job->n_peers + 1, sizeof(*peers));
        size_t n = 0;

        for (size_t i = 0; i < job->n_peers; i++)
                if (job->peers[i] != job->address)
                        peers[n++] = job->peers[i];
        if (job->gateway)
                peers[n++] = job->gateway;
        *ret = peers;
        return n;
}

/* Frames written raw (AF_PACKET, by a set-user-id tool) pass none of the hooks above. */
static int put_device_rules(struct mnl_socket *nl, const struct filter_job *job, struct rm_error *error) {
        struct {
                uint8_t mac[6];
                uint16_t type;
        } __attribute__((packed)) header;
        struct {
                uint8_t mac[6];
                uint32_t address;
        } __attribute__((packed)) sender = { .address = job->address };
        struct batch b;
        struct rule rule;
        int r = batch_begin(&b, JOB_TABLE, error);

        if (r < 0)
                return r;
        memcpy(header.mac, job->mac, 6);
        memcpy(sender.mac, job->mac, 6);
        b.family = NFPROTO_NETDEV;
        put_table(&b, true);
        put_chain(&b, "out", NF_NETDEV_EGRESS, job->device, JOB_PRIORITY);
        header.type = htons(ETH_P_IP);
        rule = rule_begin(&b, "out");
        load_payload(&rule, NFT_PAYLOAD_LL_HEADER, ETH_SOURCE, sizeof(header));
        compare(&rule, NFT_CMP_EQ, &header, sizeof(header));
        load_payload(&rule, NFT_PAYLOAD_LL_HEADER, ETH_HLEN + IP_SOURCE, 4);
        compare(&rule, NFT_CMP_EQ, &job->address, 4);
        rule_accept(&rule);
        header.type = htons(ETH_P_ARP);
        rule = rule_begin(&b, "out");
        load_payload(&rule, NFT_PAYLOAD_LL_HEADER, ETH_SOURCE, sizeof(header));
        compare(&rule, NFT_CMP_EQ, &header, sizeof(header));
        load_payload(&rule, NFT_PAYLOAD_LL_HEADER, ETH_HLEN + ARP_SENDER_MAC, sizeof(sender));
        compare(&rule, NFT_CMP_EQ, &sender, sizeof(sender));
        rule_accept(&rule);
        return batch_end(&b, nl);
}

static int put_tables(struct mnl_socket *nl, const struct filter_job *job, size_t n_peers, struct rm_error *error) {
        struct batch b;
        int r = batch_begin(&b, JOB_TABLE, error);

        if (r < 0)
                return r;
        for (size_t i = 0; i < ARRAY_SIZE(job_families); i++) {
                b.family = job_families[i].family;
                put_table(&b, true);
                put_set(&b, n_peers > 0 ? n_peers : 1);
                put_chain(&b, "in", job_families[i].in, NULL, JOB_PRIORITY);
                put_chain(&b, "out", job_families[i].out, NULL, JOB_PRIORITY);
                if (b.family == NFPROTO_ARP)
                        put_arp_rules(&b, job);
                else
                        put_ip_rules(&b, job);
        }
        r = batch_end(&b, nl);
        return r < 0 ? error_sys(error, r, "cannot set the job's packet filter (nf_tables)") : 0;
}

static int set_job(struct mnl_socket *nl, const struct filter_job *job, struct rm_error *error) {
        cleanup_free uint32_t *peers = NULL;
        size_t n = choose_peers(job, &peers);
        int r = put_tables(nl, job, n, error);

        if (r == 0)
                r = put_peers(nl, peers, n, error);
        if (r < 0)
                return r;
        r = put_device_rules(nl, job, error);
        if (r == -EOPNOTSUPP) {
                log_warn("this kernel cannot filter what leaves %s: raw frames of set-user-id programs are not looked at",
                         job->device);
                return 0;
        }
        return r < 0 ? error_sys(error, r, "cannot filter what leaves %s (nf_tables, egress)", job->device) : 0;
}

int filter_set_job(const struct filter_job *job, struct rm_error *error) {
        /* The socket is not the one of the cut: what the kernel says after an error would be taken
         * for an answer to that. */
        struct mnl_socket *nl = netlink_open(NETLINK_NETFILTER, error);
        int r = nl ? set_job(nl, job, error) : -EIO;

        if (nl)
                mnl_socket_close(nl);
        return r;
}

/* CRIU restores a connection that is being closed by sending the peer's last packets itself, over
 * lo, with this mark, which only root can set. */
static void put_criu_rule(struct batch *b, const char *chain, enum nft_meta_keys key) {
        const uint32_t lo = LO_INDEX;
        const uint32_t mark = CRIU_MARK;
        struct rule rule = rule_begin(b, chain);

        load_meta(&rule, NFT_META_MARK);
        compare(&rule, NFT_CMP_EQ, &mark, sizeof(mark));
        load_meta(&rule, key);
        compare(&rule, NFT_CMP_EQ, &lo, sizeof(lo));
        rule_accept(&rule);
}

int filter_set_cut(struct mnl_socket *nl, bool on, struct rm_error *error) {
        struct batch b;
        int r = batch_begin(&b, CUT_TABLE, error);

        if (r < 0)
                return r;
        for (size_t i = 0; i < ARRAY_SIZE(cut_families); i++) {
                b.family = cut_families[i].family;
                put_table(&b, on);
                if (on) {
                        put_chain(&b, "in", cut_families[i].in, NULL, CUT_PRIORITY);
                        put_chain(&b, "out", cut_families[i].out, NULL, CUT_PRIORITY);
                }
                if (on && b.family == NFPROTO_INET) {
                        put_criu_rule(&b, "in", NFT_META_IIF);
                        put_criu_rule(&b, "out", NFT_META_OIF);
                }
        }
        r = batch_end(&b, nl);
        return r < 0 ? error_sys(error, r, "cannot %s the capsule's packet filter (nf_tables)", on ? "set" : "remove") : 0;
}
