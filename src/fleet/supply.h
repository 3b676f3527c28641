/*
 * fleet/supply.h - records that a service's workers make, for a run in this process that
 * begins with them (engine/feed.h).
 */
#ifndef HR_FLEET_SUPPLY_H
#define HR_FLEET_SUPPLY_H

#include "engine/feed.h"
#include "headrace/engine.h"

struct hr_supply;

/* Cuts the frozen graph (hr__cut_find). Nothing is connected before the engine that is
 * fed begins; until then the options must live. HR_ERR_UNSUPPORTED, or why the first part
 * cannot be frozen. */
HR_CHECK enum hr_err
hr__supply_open(const struct hr_graph *graph, uint32_t after,
                const struct hr_iter_options *options, struct hr_supply **ret_supply,
                struct hr_error *reterr);
/* Disconnects. Call it after the engine was closed; what the engine's last threads need
 * stays until they leave it. */
void hr__supply_close(struct hr_supply *supply);

/* For the engine, which calls its close(). */
const struct hr_feed *hr__supply_feed(struct hr_supply *supply);
/* The options of that engine: those of the run, less what the service does. */
const struct hr_iter_options *hr__supply_options(const struct hr_supply *supply);
/* Sets ret_stats->waits_for and cut. */
void hr__supply_stats(struct hr_supply *supply, struct hr_iter_stats *ret_stats);

#endif
