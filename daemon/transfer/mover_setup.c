#include "daemon/transfer/mover_setup.h"

void mover_receive_init(Rm__MoverReceive *ret, const struct config *config, const void *token, size_t token_bytes) {
        rm__mover_receive__init(ret);
        ret->address = config->address;
        ret->port_min = config->move_port_first;
        ret->port_max = config->move_port_last;
        ret->token.data = (uint8_t *) token;
        ret->token.len = token_bytes;
        ret->key_file = config->key_file;
        ret->second_key_file = config->second_key_file;
        ret->cluster = config->cluster_name;
}

void mover_store_init(Rm__MoverStore *ret, const struct config *config, const char *dir) {
        rm__mover_store__init(ret);
        ret->dir = (char *) dir;
        ret->key_file = config->key_file;
        ret->second_key_file = config->second_key_file;
        ret->cluster = config->cluster_name;
}

void mover_load_init(Rm__MoverLoad *ret, Rm__MoverStore *store, const char *host, uint32_t port, const ProtobufCBinaryData *token) {
        rm__mover_load__init(ret);
        ret->store = store;
        ret->host = (char *) host;
        ret->port = port;
        ret->token = *token;
}
