/*
 * opt/control.h - how many threads a running plan gets: the fewest that meet a demand.
 * Pure: what was observed goes in, a number of threads and a reason come out.
 *
 * A thread's rate is the records it makes per second of work, whatever limits it: CPU,
 * files, other programs. It can be measured while threads are idle part of the time, so
 * the first decision, and that after a demand has changed, goes straight to the number
 * that the demand needs. Threads wait for cores as a queueing network predicts
 * (opt/cores.h); in all else they slow each other down by a factor that is learnt from
 * changes. Rates are means of windows that agree. Threads are added at once, and removed,
 * while the demand stays, only after fewer would have been enough for a while; that while
 * grows each time a removal proves wrong.
 *
 * A thread that runs steps in worker processes has processes of its own, and its rate
 * includes theirs, so the number of threads is also that of processes with work. Those of
 * the other threads stay for a while, since starting them again costs what they hold.
 */
#ifndef HR_OPT_CONTROL_H
#define HR_OPT_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#define HR_CONTROL_REASON_MAX 120

/* What happened since the run began; all numbers only grow. */
struct hr_control_sums {
    uint64_t now_ns;
    uint64_t busy_ns;          /* of all threads: not idle */
    uint64_t watched_ns;       /* of it, in work whose use of cores was measured */
    uint64_t cpu_ns, delay_ns; /* of watched_ns: computing; ready to run without a core */
    double made;       /* records, those of batches that are not complete included */
    uint64_t batches;  /* that the consumer took */
    uint64_t taken;    /* and their records */
    uint64_t waits_ns; /* the consumer waited for a batch */
};

struct hr_control_rates {
    double made, taken; /* records per second: of a thread in its work, of the consumer in
                           its own */
    double cpu, delay;  /* parts of its work in which it computes, or has no core */
    double busy;        /* threads at work */
    unsigned windows;   /* that this is the mean of */
};

struct hr_control {
    int threads_max;
    double cores;  /* that the threads may use; 0: not known */
    double demand; /* records per second; 0: what the consumer takes when it need not
                      wait */
    int threads;   /* that may work now */
    int kept;      /* threads whose worker processes stay: see hr__control_keep */
    uint32_t changes;
    char reason[HR_CONTROL_REASON_MAX]; /* of the last change; "" before the first */

    /* Private. */
    struct hr_control_sums from;       /* where the window began; now_ns 0: not yet */
    struct hr_control_rates mean, odd; /* of windows that agree; of the last one if it
                                          does not */
    uint64_t batches;                  /* at the last step */
    bool told;             /* the demand has changed, and threads may go at once */
    unsigned told_windows; /* windows since then */
    double others;         /* as in struct hr_cores_load */
    int other_threads;  /* before the last change, as long as nothing is learnt from it */
    double other_rate;  /* of a thread then, if it need not wait for a core */
    double crowd;       /* part of that rate that a thread loses by each further one */
    uint64_t enough_ns; /* since when fewer threads would be enough; 0: they are not */
    uint64_t patience_ns;            /* that this must last */
    uint64_t fewer_ns;               /* when threads were taken away last; 0: never,
                                        or some were given back too soon */
    double fewer_rate, fewer_demand; /* and what a thread would make, and was wanted, */
    double fewer_others;             /* and how many others there were */
    int falls;                       /* removals for that demand */
    int peak;                        /* most threads since `peak_ns` */
    uint64_t peak_ns;                /* since when fewer than `kept` are enough */
    uint64_t keep_ns;                /* that this must last until processes end */
};

/* All threads may work until enough is known. `cores` and `demand` as in struct
 * hr_control. */
void hr__control_init(struct hr_control *control, int threads_max, double cores,
                      double demand);

/* Another demand, from now on. */
void hr__control_demand(struct hr_control *control, double demand);

/* Call it several times per second, and more often at will. True if control->threads
 * changed. */
bool hr__control_step(struct hr_control *control, const struct hr_control_sums *sums);

/* Threads whose worker processes stay, at least `threads`: the others have not been
 * needed for a while, which doubles each time that processes which ended are needed
 * again. */
int hr__control_keep(struct hr_control *control, uint64_t now_ns);

#endif
