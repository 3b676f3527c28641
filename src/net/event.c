/*
 * net/event.c - see event.h.
 */
#include "net/event.h"

#include "core/library.h"

struct hr_event hr__event;

#define SYMBOL(name_) {"event_" #name_, &hr__event.name_},
static const struct hr_symbol symbols[] = {HR_EVENT_FUNCTIONS(SYMBOL)};
#undef SYMBOL

static struct hr_library library =
    HR_LIBRARY("libevent_core-2.1.so.7", "libevent-core-2.1-7", symbols);

enum hr_err hr__event_load(struct hr_error *reterr)
{
    return hr__library_load(&library, reterr);
}
