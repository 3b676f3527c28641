/*
 * net/version.h - the versions of the libraries that a service needs, for hr_part_info().
 */
#ifndef HR_NET_VERSION_H
#define HR_NET_VERSION_H

#include <stddef.h>

#include "headrace/base.h"

/* Write a version. HR_ERR_STATE if this build leaves it out, HR_ERR_UNSUPPORTED if it
 * cannot be loaded. */
HR_CHECK enum hr_err hr__event_version(char *text, size_t room, struct hr_error *reterr);
HR_CHECK enum hr_err hr__ssl_version(char *text, size_t room, struct hr_error *reterr);

#endif
