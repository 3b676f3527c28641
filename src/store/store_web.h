/*
 * store/store_web.h - what the stores over HTTP share: objects, reads, channels.
 */
#ifndef HR_STORE_STORE_WEB_H
#define HR_STORE_STORE_WEB_H

#include "store/store_internal.h"
#include "store/web.h"

/* The hooks of struct hr_store, for a store whose requests are of `kind`. */
enum hr_err hr__web_open(const struct hr_web_kind *kind, struct hr_object *object,
                         struct hr_error *reterr);
void hr__web_close(struct hr_object *object);
enum hr_err
hr__web_read(const struct hr_web_kind *kind, struct hr_object *object, uint64_t offset,
             void *data, size_t bytes, size_t *ret_got, struct hr_error *reterr);
enum hr_err
hr__web_fetch_range(const struct hr_web_kind *kind, struct hr_store_read *read);
enum hr_err hr__web_start(const struct hr_web_kind *kind, struct hr_channel *channel,
                          struct hr_error *reterr);

/* Appends bytes, percent-encoded unless they are letters, digits or in `keep`. */
void hr__web_encode(struct hr_str *str, const char *bytes, size_t count,
                    const char *keep);

#endif
