/*
 * fleet/control.h - the bodies of the control port's requests and answers: JSON that
 * others wrote.
 */
#ifndef HR_FLEET_CONTROL_H
#define HR_FLEET_CONTROL_H

#include "headrace/control.h"
#include "net/net.h"

/* The body of a drain: {"worker": "host:port"}. HR_ERR_FORMAT, HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__control_read_drain(const char *text, size_t bytes,
                       char ret_worker[HR_NET_ADDRESS_MAX], struct hr_error *reterr);

/* The answer to /v1/status; free it with hr_control_status_free(). HR_ERR_FORMAT,
 * HR_ERR_MEMORY. */
HR_CHECK enum hr_err
hr__control_read_status(const char *text, size_t bytes,
                        struct hr_control_status **ret_status, struct hr_error *reterr);
void hr__control_status_free(struct hr_control_status *status);

#endif
