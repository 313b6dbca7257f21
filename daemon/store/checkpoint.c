#include "daemon/store/checkpoint.h"

#include <string.h>

#include "common/util.h"

struct checkpoint *checkpoint_create(uint64_t number) {
        struct checkpoint *c = xcalloc(1, sizeof(*c));

        c->number = number;
        return c;
}

void checkpoint_destroy(struct checkpoint *c) {
        if (!c)
                return;
        for (size_t i = 0; i < c->n_objects; i++)
                checkpoint_object_destroy(c->objects[i]);
        for (size_t i = 0; i < c->n_metas; i++) {
                free(c->metas[i].name);
                free(c->metas[i].data);
        }
        free(c->objects);
        free(c->packs);
        free(c);
}

struct checkpoint_object *checkpoint_object_create(const struct image_object *o) {
        struct checkpoint_object *object = xcalloc(1, sizeof(*object));

        object->o = *o;
        object->o.role = xstrdup(o->role);
        object->o.path = xstrdup(o->path);
        object->o.target = xstrdup(o->target);
        object->o.ahead = 0; /* its contents are its own here */
        image_attributes_copy(o->attributes, o->n_attributes, &object->attributes);
        object->o.attributes = object->attributes.list;
        if (image_kind_has_data(o->kind))
                object->map = blockmap_create();
        if (o->kind == RM__IMAGE_KIND__IMAGE_KIND_PAGES)
                object->present = pageset_create();
        return object;
}

void checkpoint_object_destroy(struct checkpoint_object *object) {
        if (!object)
                return;
        free((char *) object->o.role);
        free((char *) object->o.path);
        free((char *) object->o.target);
        image_attributes_finish(&object->attributes);
        blockmap_destroy(object->map);
        pageset_destroy(object->present);
        free(object);
}

int checkpoint_add(struct checkpoint *c, struct checkpoint_object *object, struct rm_error *err) {
        if (c->n_objects >= IMAGE_OBJECTS_MAX) {
                checkpoint_object_destroy(object);
                return error_set(err, -EFBIG, "more than %u files and directories", IMAGE_OBJECTS_MAX);
        }
        if (c->n_objects == c->space) {
                c->space = c->space > 0 ? 2 * c->space : 64;
                c->objects = xrealloc(c->objects, c->space * sizeof(*c->objects));
        }
        c->objects[c->n_objects++] = object;
        return 0;
}

int checkpoint_add_meta(struct checkpoint *c, const char *name, const void *data, size_t size_bytes, struct rm_error *err) {
        size_t left_bytes = STORE_META_MAX_BYTES;

        if (!name_valid(name))
                return error_set(err, -EINVAL, "invalid name of a part: '%.80s'", name);
        for (size_t i = 0; i < c->n_metas; i++) {
                if (strcmp(c->metas[i].name, name) == 0)
                        return error_set(err, -EINVAL, "a second part '%s'", name);
                left_bytes -= c->metas[i].size_bytes;
        }
        if (c->n_metas == CHECKPOINT_METAS_MAX || size_bytes > left_bytes)
                return error_set(err, -EFBIG, "part '%s' does not fit: at most %u, of %u bytes in all", name, CHECKPOINT_METAS_MAX,
                                 STORE_META_MAX_BYTES);
        c->metas[c->n_metas] = (struct checkpoint_meta) { xstrdup(name), xcalloc(1, size_bytes + 1), size_bytes };
        if (size_bytes > 0)
                memcpy(c->metas[c->n_metas].data, data, size_bytes);
        c->n_metas++;
        return 0;
}

void checkpoint_add_pack(struct checkpoint *c, uint64_t number, uint64_t size_bytes) {
        c->packs = xrealloc(c->packs, (c->n_packs + 1) * sizeof(*c->packs));
        c->packs[c->n_packs++] = (struct checkpoint_pack) { number, size_bytes };
}

char *checkpoint_object_label(const struct checkpoint_object *object) {
        const struct image_object *o = &object->o;

        if (image_kind_is_memory(o->kind))
                return xasprintf("memory of process %s", o->path);
        return xasprintf("%s%s%.300s", o->role, *o->role && *o->path ? ":" : "", o->path);
}

void checkpoint_close_up(struct checkpoint *c) {
        size_t n = 0;

        for (size_t i = 0; i < c->n_objects; i++)
                if (c->objects[i]->dropped)
                        checkpoint_object_destroy(c->objects[i]);
                else
                        c->objects[n++] = c->objects[i];
        c->n_objects = n;
}
