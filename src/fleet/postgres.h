/*
 * fleet/postgres.h - libpq's functions, which are loaded when a journal needs them.
 */
#ifndef HR_FLEET_POSTGRES_H
#define HR_FLEET_POSTGRES_H

#include <libpq-fe.h>

#include "headrace/base.h"

/* Of a function F(name): one member for each that is used, named without `PQ`. */
#define HR_POSTGRES_FUNCTIONS(F)                                                         \
    F(clear)                                                                             \
    F(connectPoll)                                                                       \
    F(connectStartParams)                                                                \
    F(conninfoFree)                                                                      \
    F(conninfoParse)                                                                     \
    F(consumeInput)                                                                      \
    F(errorMessage)                                                                      \
    F(finish)                                                                            \
    F(freemem)                                                                           \
    F(ftype)                                                                             \
    F(getResult)                                                                         \
    F(getisnull)                                                                         \
    F(getvalue)                                                                          \
    F(isBusy)                                                                            \
    F(libVersion)                                                                        \
    F(nfields)                                                                           \
    F(ntuples)                                                                           \
    F(resultErrorField)                                                                  \
    F(resultErrorMessage)                                                                \
    F(resultStatus)                                                                      \
    F(sendPrepare)                                                                       \
    F(sendQuery)                                                                         \
    F(sendQueryPrepared)                                                                 \
    F(setNoticeProcessor)                                                                \
    F(socket)                                                                            \
    F(status)

#define HR_POSTGRES_MEMBER(name_) __typeof__(PQ##name_) *name_;
struct hr_postgres {
    HR_POSTGRES_FUNCTIONS(HR_POSTGRES_MEMBER)
};
#undef HR_POSTGRES_MEMBER

extern struct hr_postgres hr__postgres;

/* Fills hr__postgres. HR_ERR_UNSUPPORTED if there is no libpq. Thread-safe. */
HR_CHECK enum hr_err hr__postgres_load(struct hr_error *reterr);

#endif
