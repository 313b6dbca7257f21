#include "daemon/view/view.h"

bool view_may(const struct view_reader *reader, uint32_t owner) {
        return reader->admin || reader->uid == owner;
}
