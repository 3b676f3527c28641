/*
 * fuzz/fuzz_job.c - any text as a job: refused with a message, or a graph that can be
 * described again. It is not frozen: that would open files.
 */
#include "fleet/job.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct hr_iter_options options;
    struct hr_error error = {0};
    struct hr_job job = {0};

    struct hr_job_head head;

    if (hr__job_head((const char *)data, bytes, &head, NULL, &error) == HR_OK &&
        strlen(head.name) > HR_JOB_NAME_MAX)
        abort();
    hr_iter_options_init(&options);
    if (hr__job_parse((const char *)data, bytes, &job, &options, &error) != HR_OK) {
        if (error.message[0] == '\0' || job.graph != NULL)
            abort();
        return 0;
    }
    hr_graph_unref(job.graph);
    return 0;
}
