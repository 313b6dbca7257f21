#include "daemon/trim.h"

#include <elf.h>
#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* The object's code was written to when it was loaded, so the file has other code. */
static bool has_text_relocations(const struct dl_phdr_info *info) {
        for (int i = 0; i < info->dlpi_phnum; i++) {
                const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

                if (segment->p_type != PT_DYNAMIC)
                        continue;
                /* NOLINTNEXTLINE(performance-no-int-to-ptr): the linker's map has addresses. */
                for (const ElfW(Dyn) *entry = (const void *) (info->dlpi_addr + segment->p_vaddr); entry->d_tag != DT_NULL; entry++)
                        if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL)))
                                return true;
        }
        return false;
}

static int trim_object(struct dl_phdr_info *info, size_t size_bytes, void *userdata) {
        const uintptr_t page = *(const uintptr_t *) userdata;

        if (has_text_relocations(info))
                return 0;
        for (int i = 0; i < info->dlpi_phnum; i++) {
                const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
                uintptr_t begin = (info->dlpi_addr + segment->p_vaddr) & ~(page - 1);
                uintptr_t end = (info->dlpi_addr + segment->p_vaddr + segment->p_filesz) & ~(page - 1);

                if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W) && end > begin)
                        (void) madvise((void *) begin, end - begin, MADV_DONTNEED); // NOLINT(performance-no-int-to-ptr)
        }
        return 0;
}

void trim_memory(void) {
        uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE);

        (void) malloc_trim(0);
        (void) dl_iterate_phdr(trim_object, &page);
}
