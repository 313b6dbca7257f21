#include "trees.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#include "daemon/image/place.h"

int trees_store(struct memory *m, const char *path, const struct image_tree_options *options, struct image_tree_figures *figures,
                struct rm_error *err) {
        int fd = open(path, O_RDONLY | O_DIRECTORY);
        struct image_writer *w = NULL;
        int r;

        memory_init(m);
        assert_int_equal(image_writer_create(&m->sink, NULL, NULL, &w, NULL), 0);
        r = image_tree_write(w, "tmp", fd, options, figures, err);
        if (r == 0)
                assert_int_equal(image_writer_end(w, NULL), 0);
        image_writer_destroy(w);
        (void) close(fd);
        return r;
}

int trees_place(struct memory *m, const char *to, struct rm_error *err) {
        struct image_place *p = image_place_create();
        struct image_reader *reader = NULL;
        int r;

        image_place_tree(p, "tmp", to);
        assert_int_equal(image_reader_create(&m->source, image_place_target(p), NULL, &reader, NULL), 0);
        r = image_reader_run(reader, err);
        image_reader_destroy(reader);
        image_place_destroy(p);
        return r;
}
