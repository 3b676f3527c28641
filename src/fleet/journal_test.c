/*
 * fleet/journal_test.c - the journal against the binder that it follows, on files that
 * fail, and on files that are no journals.
 */
#include "fleet/journal_test_util.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "fleet/sqlite.h"

static const char *new_folder(void)
{
    static char path[4096];
    static int count;

    snprintf(path, sizeof path, "%s/journal%d", check_temp_dir(), count++);
    return path;
}

static const char *file_in(const char *folder, const char *suffix)
{
    static char path[4200];

    snprintf(path, sizeof path, "%s/" HR_JOURNAL_FILE "%s", folder, suffix);
    return path;
}

TEST(a_restored_binder_is_the_one_that_was_journalled)
{
    check_restored(new_folder, 10);
}

TEST(jobs_are_found_and_forgotten_when_nobody_uses_them)
{
    check_jobs(new_folder);
}

/* ---- files that fail ---- */

static sqlite3_vfs *plain, faulty;
static sqlite3_io_methods methods;
static int left, result; /* calls until one fails; with what. 0: none does */

struct file {
    sqlite3_file base;
    sqlite3_file *inner;
};

static bool fails(void)
{
    return left > 0 && --left == 0;
}

#define INNER(file) (((struct file *)(file))->inner)
#define PASS(name, ...) INNER(file)->pMethods->name(INNER(file), __VA_ARGS__)

static int f_close(sqlite3_file *file)
{
    int code = INNER(file)->pMethods->xClose(INNER(file));

    hr__free(INNER(file));
    return code;
}

static int f_read(sqlite3_file *file, void *to, int bytes, sqlite3_int64 at)
{
    return PASS(xRead, to, bytes, at);
}

static int f_write(sqlite3_file *file, const void *from, int bytes, sqlite3_int64 at)
{
    return fails() ? result : PASS(xWrite, from, bytes, at);
}

static int f_truncate(sqlite3_file *file, sqlite3_int64 bytes)
{
    return fails() ? SQLITE_IOERR_TRUNCATE : PASS(xTruncate, bytes);
}

static int f_sync(sqlite3_file *file, int flags)
{
    return fails() ? SQLITE_IOERR_FSYNC : PASS(xSync, flags);
}

static int f_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    return PASS(xFileSize, ret);
}

static int f_lock(sqlite3_file *file, int how)
{
    return PASS(xLock, how);
}

static int f_unlock(sqlite3_file *file, int how)
{
    return PASS(xUnlock, how);
}

static int f_reserved(sqlite3_file *file, int *ret)
{
    return PASS(xCheckReservedLock, ret);
}

static int f_control(sqlite3_file *file, int what, void *more)
{
    return PASS(xFileControl, what, more);
}

static int f_sector(sqlite3_file *file)
{
    return INNER(file)->pMethods->xSectorSize(INNER(file));
}

static int f_traits(sqlite3_file *file)
{
    return INNER(file)->pMethods->xDeviceCharacteristics(INNER(file));
}

static int
f_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *ret)
{
    struct file *f = (struct file *)file;
    int code;

    (void)vfs;
    f->inner = hr__calloc(1, (size_t)plain->szOsFile);
    CHECK(f->inner != NULL);
    code = fails() ? SQLITE_CANTOPEN : plain->xOpen(plain, path, f->inner, flags, ret);
    f->base.pMethods = code == SQLITE_OK ? &methods : NULL;
    if (code != SQLITE_OK)
        hr__free(f->inner);
    return code;
}

/* From here on journals use files that fail. */
static void make_faulty(void)
{
    void *library = dlopen("libsqlite3.so.0", RTLD_NOW);
    sqlite3_vfs *(*find)(const char *) = NULL;
    int (*add)(sqlite3_vfs *, int) = NULL;
    void *symbol = dlsym(library, "sqlite3_vfs_find");

    memcpy(&find, &symbol, sizeof find);
    symbol = dlsym(library, "sqlite3_vfs_register");
    memcpy(&add, &symbol, sizeof add);
    methods = (sqlite3_io_methods){.iVersion = 1, /* no shared memory: an exclusive WAL */
                                   .xClose = f_close,
                                   .xRead = f_read,
                                   .xWrite = f_write,
                                   .xTruncate = f_truncate,
                                   .xSync = f_sync,
                                   .xFileSize = f_size,
                                   .xLock = f_lock,
                                   .xUnlock = f_unlock,
                                   .xCheckReservedLock = f_reserved,
                                   .xFileControl = f_control,
                                   .xSectorSize = f_sector,
                                   .xDeviceCharacteristics = f_traits};
    plain = find(NULL);
    faulty = *plain;
    faulty.szOsFile = sizeof(struct file);
    faulty.zName = "faulty";
    faulty.xOpen = f_open;
    faulty.pNext = NULL;
    CHECK_EQ_INT(add(&faulty, 1), SQLITE_OK);
}

/* A journal follows a binder until a write fails; what it holds then is the binder before
 * that event, or after it. Returns whether one failed. */
static bool fail_once(int nth, int code, bool power)
{
    const char *folder = new_folder();
    struct hr_journal *journal = NULL;
    struct hr_binder before, after;
    struct hr_error error = {0};
    enum hr_err err = HR_OK;

    begin();
    journal = open_in(folder);
    add_names(journal);
    hr__journal_close(journal);
    CHECK_OK(hr__journal_open(folder, power, &journal, &error));
    left = nth;
    result = code;
    for (int i = 0; i < 30 && err == HR_OK; i++) {
        act();
        err = hr__journal_write(journal, &binder, &actions, &error);
    }
    left = 0;
    if (err != HR_OK) {
        CHECK_EQ_INT(err, HR_ERR_IO);
        CHECK_HAS(error.message, "cannot read or write the journal");
        CHECK_HAS(error.message, code == SQLITE_FULL ? "" : "disk I/O error");
        restore(journal, &before); /* nothing was changed */
        CHECK(!agree(&before, &binder));
        CHECK_OK(hr__journal_write(journal, &binder, &actions, &error)); /* it serves */
        restore(journal, &after);
        CHECK(agree(&after, &binder));
        hr__bind_finish(&before);
        hr__bind_finish(&after);
    }
    hr__bind_finish(&binder);
    hr__journal_close(journal);
    return err != HR_OK;
}

TEST(a_failed_write_changes_nothing_and_the_journal_goes_on)
{
    static const int codes[] = {SQLITE_FULL, SQLITE_IOERR_WRITE};

    hr__rng_init(&rng, check_seed(), 0, 0);
    make_faulty();
    for (int c = 0; c < 2; c++) {
        int failed = 0;

        for (int nth = 1; nth <= 60; nth++)
            failed += fail_once(nth, codes[c], nth % 2 == 0);
        CHECK(failed >= 20);
    }
}

TEST(a_journal_that_cannot_be_made_says_why)
{
    int failed = 0;

    for (int nth = 1; nth <= 40; nth++) {
        struct hr_journal *journal = NULL;
        struct hr_error error = {0};
        const char *folder = new_folder();
        enum hr_err code;

        left = nth;
        result = SQLITE_FULL;
        code = hr__journal_open(folder, false, &journal, &error);
        left = 0;
        failed += code != HR_OK;
        if (code != HR_OK) {
            CHECK_EQ_INT(code, HR_ERR_IO);
            CHECK_HAS(error.message, folder);
            journal = open_in(folder); /* with room it is made */
        }
        hr__journal_close(journal);
    }
    CHECK(failed > 3);
}

/* ---- files that are no journals ---- */

static void check_refused_file(const char *folder, enum hr_err code, const char *part)
{
    struct hr_journal *journal = NULL;
    struct hr_error error = {0};

    CHECK_ERR(code, hr__journal_open(folder, false, &journal, &error));
    CHECK_HAS(error.message, part);
    CHECK_HAS(error.message, HR_JOURNAL_FILE);
    CHECK(journal == NULL);
}

static void put(const char *folder, long at, const void *bytes, size_t count)
{
    int fd = open(file_in(folder, ""), O_RDWR | O_CREAT, 0600);

    CHECK(fd >= 0);
    CHECK_EQ_INT(pwrite(fd, bytes, count, at), count);
    close(fd);
}

TEST(a_file_that_is_no_journal_or_of_another_release_is_refused)
{
    const char *folder = new_folder();
    const char text[] = "this is the diary of somebody, and not a journal of consumers";
    const uint8_t later[4] = {0, 0, 0, 9}, other[4] = {0, 0, 0, 1};

    CHECK_EQ_INT(mkdir(folder, 0700), 0);
    put(folder, 0, text, sizeof text);
    check_refused_file(folder, HR_ERR_FORMAT, "is damaged (file is not a database)");
    folder = new_folder();
    hr__journal_close(open_in(folder));
    put(folder, 60, later, 4); /* user_version */
    check_refused_file(folder, HR_ERR_UNSUPPORTED, "of version 9");
    put(folder, 68, other, 4); /* application_id */
    check_refused_file(folder, HR_ERR_FORMAT, "is no journal of a dispatcher");
}

TEST(a_journal_of_version_1_gets_a_number)
{
    const char *folder = new_folder();
    struct hr_journal *journal = open_in(folder);
    struct hr_journal_job found;
    uint64_t number;
    sqlite3 *db = NULL;

    add_names(journal);
    hr__journal_close(journal);
    CHECK_EQ_INT(
        hr__sqlite.open_v2(file_in(folder, ""), &db, SQLITE_OPEN_READWRITE, NULL),
        SQLITE_OK);
    CHECK_EQ_INT(hr__sqlite.exec(db,
                                 "PRAGMA locking_mode = EXCLUSIVE; DROP TABLE mark;"
                                 "PRAGMA user_version = 1",
                                 NULL, NULL, NULL),
                 SQLITE_OK);
    CHECK_EQ_INT(hr__sqlite.close(db), SQLITE_OK);
    journal = open_in(folder);
    number = hr__journal_number(journal);
    CHECK_OK(hr__journal_find(journal, JOB, &found, NULL));
    hr__journal_close(journal);
    journal = open_in(folder);
    CHECK(number != 0 && hr__journal_number(journal) == number); /* it is kept */
    hr__journal_close(journal);
}

TEST(a_damaged_journal_is_refused)
{
    const char *folder = new_folder();
    struct hr_journal *journal = open_in(folder);
    uint8_t noise[600];

    add_names(journal);
    hr__journal_close(journal);
    memset(noise, 0x5a, sizeof noise);
    put(folder, 4096, noise, sizeof noise); /* its second page */
    check_refused_file(folder, HR_ERR_FORMAT, "is damaged");
}

TEST(a_second_dispatcher_is_refused)
{
    const char *folder = new_folder();
    struct hr_journal *journal = open_in(folder);

    check_refused_file(folder, HR_ERR_STATE, "another dispatcher uses the journal");
    hr__journal_close(journal);
    hr__journal_close(open_in(folder));
}
