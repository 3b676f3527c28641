/*
 * ops/code_common.h - shared by the four ops of user code: parameters, fields, state.
 */
#ifndef HR_OPS_CODE_COMMON_H
#define HR_OPS_CODE_COMMON_H

#include "op/code_table.h"
#include "op/op.h"

struct hr_code_params {
    const char *code;
    struct hr_names fields, outputs;
    int64_t count;
    bool keep;
    int variant;
};

extern const char *const hr__code_variants[];

#define HR_P_CODE_NAME                                                                   \
    HR_P_STRING(struct hr_code_params, code, .required = true,                           \
                .help = "name of the code; the program that defines it gives it "        \
                        "(hr_graph_code)")
#define HR_P_CODE_FIELDS(help_)                                                          \
    HR_P_FIELDS(struct hr_code_params, fields, .access = HR_ACCESS_NONE, .help = (help_))
#define HR_P_CODE_OUTPUTS                                                                \
    HR_P_STRINGS(                                                                        \
        struct hr_code_params, outputs, .required = true,                                \
        .help = "the fields that it makes, each as \"name: type\": \"label: int64\", "   \
                "\"image: float32[3, height, 224]\" (-1 or a name: known per record "    \
                "only), \"text: bytes\"")
#define HR_P_CODE_VARIANT                                                                \
    HR_P_ENUM(struct hr_code_params, variant, .fallback = "threads",                     \
              .names = hr__code_variants, .not_identity = true,                          \
              .help = "threads: in the engine's threads, several at once; inline: in "   \
                      "them, one call at a time; processes: in worker processes")

/* Parses a declaration ("image: uint8[height, width, 3]"). The field's slot is 0. */
HR_CHECK enum hr_err hr__code_declaration(const char *text, struct hr_field *ret_field,
                                          struct hr_error *error);

/* hr_op.binds: the fields read, then the outputs. */
HR_CHECK enum hr_err
hr__code_binds(const void *params, const void *state, const struct hr_schema *input,
               struct hr_bindings *bindings, struct hr_error *error);
/* hr_op.infer: adds the outputs; with `alone` all other fields are removed. */
HR_CHECK enum hr_err hr__code_infer(struct hr_infer *infer, bool alone);

/* Hooks: the state holds the user code registered under the name `code`. */
HR_CHECK enum hr_err hr__code_open(const struct hr_open *open, void **ret_state);
void hr__code_close(void *state);
void hr__code_identity(const void *params, const void *state, struct hr_hasher *hasher);
const struct hr_code_use *hr__code_use(const void *state);

#define HR_CODE_OP                                                                       \
    .traits = HR_TRAIT_RANDOM | HR_TRAIT_BATCHED,                                        \
    .params_size = sizeof(struct hr_code_params), .binds = hr__code_binds,               \
    .open = hr__code_open, .close = hr__code_close, .identity = hr__code_identity,       \
    .code = hr__code_use

#endif
