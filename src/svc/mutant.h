/*
 * svc/mutant.h - protocols that were found wrong, kept so that the simulation can show
 * that it finds them (tests/svc). The library is built without: HR_MUTANT is then 0.
 */
#ifndef HR_SVC_MUTANT_H
#define HR_SVC_MUTANT_H

enum hr_mutant {
    HR_MUTANT_NONE,
    HR_MUTANT_DONE_WHEN_LEASED,       /* F1 */
    HR_MUTANT_DONE_WHEN_FINISHED,     /* F2 */
    HR_MUTANT_ACK_ON_RECEIPT,         /* F3: and the acknowledged cursor restarts */
    HR_MUTANT_NO_FILTER,              /* F4 */
    HR_MUTANT_RESTART_FROM_ACK,       /* F5 */
    HR_MUTANT_FILTER_BY_SPLIT,        /* F6 */
    HR_MUTANT_OTHER_ORDER_IN_SPLIT,   /* F7 */
    HR_MUTANT_CLIENT_COUNTS,          /* F8 */
    HR_MUTANT_BIND_AFTER_LEASE,       /* F9 */
    HR_MUTANT_EVICT_SAME_GENERATION,  /* F10 */
    HR_MUTANT_REJOIN_SAME_GENERATION, /* F11 */
    HR_MUTANT_CHECKPOINT_FIRST,       /* F12 */
    HR_MUTANT_JOURNAL_TAIL_LOST,      /* F13 */
    HR_MUTANTS
};

#ifdef HR_SVC_MUTANTS
extern enum hr_mutant hr__mutant;
#define HR_MUTANT(name) (hr__mutant == HR_MUTANT_##name)
#else
#define HR_MUTANT(name) 0
#endif

#endif
