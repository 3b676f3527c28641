/*
 * core/kill_point.h - named points of the code at which a test can kill the process.
 *
 * HR_KILL_POINT("name") is nothing in the library and in the command, whatever the kind
 * of build. Only tests/e2e/headrace_killable has the files with points compiled once more
 * with HR_KILL_POINTS: there HEADRACE_KILL_AT="name:n" kills the process, as by SIGKILL,
 * when it passes the point for the n-th time. kill_points.def lists the names.
 */
#ifndef HR_CORE_KILL_POINT_H
#define HR_CORE_KILL_POINT_H

#ifdef HR_KILL_POINTS
/* tests/support/kill_point.c; thread-safe. */
void hr__kill_point(const char *name);
#define HR_KILL_POINT(name) hr__kill_point(name)
#else
#define HR_KILL_POINT(name) ((void)0)
#endif

#endif
