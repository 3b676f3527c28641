/*
 * fleet/remote.h - a run whose batches come from a service: the other side of
 * hr_iter_open() with options.service.
 *
 * The client's cursor decides what was delivered; its place is the state of a run without
 * a service, so either resumes the other. A thread of its own keeps the connections to
 * the dispatcher and to all workers that it names.
 */
#ifndef HR_FLEET_REMOTE_H
#define HR_FLEET_REMOTE_H

#include "core/str.h"
#include "engine/outputs.h"
#include "headrace/engine.h"

struct hr_remote;
struct hr_parcel;

/* Freezes the graph if necessary; holds a reference. Returns before anything is
 * connected. HR_ERR_ARGUMENT, HR_ERR_UNSUPPORTED (hr__outputs_init, user code, no
 * libevent), or why the graph or the state is refused. */
HR_CHECK enum hr_err
hr__remote_open(struct hr_graph *graph, const struct hr_iter_options *options,
                struct hr_remote **ret_remote, struct hr_error *reterr);
void hr__remote_close(struct hr_remote *remote);

/*
 * The same for records as they are, from `position` of the run on: for steps that this
 * process runs (feed.h). They are taken by hr__remote_pull() from any one thread at a
 * time, and have no state of their own: options.state must be NULL.
 */
HR_CHECK enum hr_err
hr__remote_open_records(struct hr_graph *graph, const struct hr_iter_options *options,
                        uint64_t position, struct hr_remote **ret_remote,
                        struct hr_error *reterr);
/* Neighbouring records: those of a parcel, which the caller owns, from `skip` on. */
struct hr_pulled {
    struct hr_parcel *parcel;
    uint64_t position;
    uint32_t count, skip;
};
/* The next records. Waits until the clock shows `until_ns` at most; then there is no
 * parcel. HR_ERR_END after the last ones. */
HR_CHECK enum hr_err
hr__remote_pull(struct hr_remote *remote, uint64_t until_ns, struct hr_pulled *ret_pulled,
                struct hr_error *reterr);
const struct hr_outputs *hr__remote_outputs(const struct hr_remote *remote);
/* Sets ret_stats->waits_for. */
void hr__remote_waits(struct hr_remote *remote, struct hr_iter_stats *ret_stats);

/* As hr__engine_next(). */
HR_CHECK enum hr_err
hr__remote_next(struct hr_remote *remote, uint64_t until_ns, struct hr_batch **ret_batch,
                struct hr_error *reterr);
/* Signal-safe. */
void hr__remote_cancel(struct hr_remote *remote);
/*
 * A run that is one of several consumers of its job (options.service_consumer): as
 * hr_iter_committed(), hr_iter_resume(), hr_iter_commit_due() and hr_iter_commit(), which
 * wait until the clock shows `until_ns` at most, then HR_ERR_TIMEOUT. HR_ERR_STATE for
 * another run.
 */
HR_CHECK enum hr_err hr__remote_committed(struct hr_remote *remote, uint64_t until_ns,
                                          uint64_t *ret_number, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__remote_resume(struct hr_remote *remote, const char *state, struct hr_error *reterr);
HR_CHECK enum hr_err hr__remote_commit_due(struct hr_remote *remote, uint64_t until_ns,
                                           bool *ret_due, struct hr_error *reterr);
HR_CHECK enum hr_err
hr__remote_commit(struct hr_remote *remote, uint64_t until_ns, struct hr_error *reterr);

HR_CHECK enum hr_err
hr__remote_save(struct hr_remote *remote, struct hr_str *out, struct hr_error *reterr);
void hr__remote_stats(struct hr_remote *remote, struct hr_iter_stats *ret_stats);

#endif
