/*
 * flow.zip - joins one record of each input into one, position by position.
 *
 * The inputs' fields are already in the same row; only their names must differ.
 */
#include "ops/joined.h"

struct zip {
    struct hr_names prefix;
    bool paired;
};

static const struct hr_param zip_params[] = {
    HR_P_JOINED_PREFIX(struct zip),
    HR_P_BOOL(
        struct zip, paired, .fallback = "true", .not_identity = true,
        .help = "refuse inputs whose random orders or names of files differ; false joins "
                "them as they come, to pair records at random"),
};

static enum hr_err zip_infer(struct hr_infer *infer)
{
    const struct zip *p = infer->params;
    struct hr_schema *out = infer->output;
    int64_t records = infer->inputs[0].records;

    HR_TRY(hr__joined_begin(infer, &p->prefix));
    for (size_t i = 0; i < infer->input_count; i++) {
        const struct hr_schema *in = &infer->inputs[i];

        if (in->batch_rank != infer->inputs[0].batch_rank)
            return hr__infer_fail(infer, NULL, HR_ERR_GRAPH,
                                  "an input of batches cannot be joined with one of "
                                  "records");
        if (in->records < 0 || (records >= 0 && in->records < records))
            records = in->records;
        for (size_t k = 0; k < in->count; k++)
            HR_TRY(hr__joined_add(infer, &in->fields[k], &p->prefix, i));
    }
    out->records = records;
    return HR_OK;
}

static enum hr_err zip_apply(struct hr_op_ctx *ctx)
{
    (void)ctx;
    return HR_OK;
}

static bool zip_unpaired(const void *params)
{
    return !((const struct zip *)params)->paired;
}

const struct hr_op hr_op_flow_zip = {
    .name = "flow.zip",
    .summary = "join the records of several inputs, position by position",
    .doc =
        "All inputs must have the same number of records, known beforehand: filters, "
        "expansions and batches come after it. A shuffle belongs after it, too: it moves "
        "the joined records, and costs the same. Shuffles before it must all have the "
        "same `seed`, and shards, splits and merges that alternate equal parameters, "
        "else the records would be mispaired and the graph is refused. So it is where "
        "the files of two folders have like names, such as img1.jpg and img1_mask.png, "
        "and one would be paired with the file of another. "
        "Field names must differ; see `prefix`.",
    .version = 1,
    .kind = HR_OP_ZIP,
    .traits = HR_TRAIT_PURE | HR_TRAIT_ZERO_COPY | HR_TRAIT_DEFERS,
    .inputs_min = 2,
    .inputs_max = 8,
    HR_PARAMS(zip_params, struct zip),
    .infer = zip_infer,
    .apply = zip_apply,
    .zip.unpaired = zip_unpaired,
};
