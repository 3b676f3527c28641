/*
 * codec/npy.c - a .npy header: magic, version, length, and a Python dict as text:
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 */
#include "codec/npy.h"
#include "core/error.h"

#include <string.h>

struct parse {
    const char *at, *end, *name;
    struct hr_npy npy;
    unsigned seen; /* keys, as bits */
    struct hr_error *error;
};

enum { KEY_DESCR, KEY_ORDER, KEY_SHAPE, KEYS };
static const char *const keys[KEYS] = {"descr", "fortran_order", "shape"};

static enum hr_err wrong(const struct parse *p, const char *what)
{
    return hr__fail(p->error, HR_ERR_FORMAT, "%s: its .npy header is damaged: %s",
                    p->name, what);
}

static void skip_blanks(struct parse *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t'))
        p->at++;
}

static bool take(struct parse *p, char c)
{
    skip_blanks(p);
    if (p->at == p->end || *p->at != c)
        return false;
    p->at++;
    return true;
}

static bool take_word(struct parse *p, const char *word)
{
    size_t length = strlen(word);

    skip_blanks(p);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

/* A quoted string without escapes; false if there is none. */
static bool take_string(struct parse *p, char *text, size_t room)
{
    const char *stop;
    char quote;

    skip_blanks(p);
    if (p->at == p->end || (*p->at != '\'' && *p->at != '"'))
        return false;
    quote = *p->at++;
    stop = memchr(p->at, quote, (size_t)(p->end - p->at));
    if (stop == NULL || (size_t)(stop - p->at) >= room)
        return false;
    memcpy(text, p->at, (size_t)(stop - p->at));
    text[stop - p->at] = '\0';
    p->at = stop + 1;
    return strchr(text, '\\') == NULL;
}

static bool take_number(struct parse *p, int64_t *ret_number)
{
    int64_t number = 0;
    const char *from;

    skip_blanks(p);
    for (from = p->at; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, *p->at - '0', &number))
            return false;
    *ret_number = number;
    return p->at > from;
}

static enum hr_err read_descr(struct parse *p)
{
    static const struct {
        char name[3];
        uint8_t bytes;
        enum hr_dtype dtype;
        bool widened;
    } types[] = {
        {"b1", 1, HR_BOOL, false},
        {"u1", 1, HR_U8,   false},
        {"i1", 1, HR_I8,   false},
        {"u2", 2, HR_U16,  false},
        {"i2", 2, HR_I16,  false},
        {"u4", 4, HR_I64,  true },
        {"i4", 4, HR_I32,  false},
        {"u8", 8, HR_I64,  true },
        {"i8", 8, HR_I64,  false},
        {"f2", 2, HR_F16,  false},
        {"f4", 4, HR_F32,  false},
        {"f8", 8, HR_F64,  false},
    };
    char descr[32];

    if (take(p, '['))
        return hr__fail(p->error, HR_ERR_UNSUPPORTED,
                        "%s: elements of several fields are not supported", p->name);
    if (!take_string(p, descr, sizeof descr))
        return wrong(p, "descr must be a short string");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (descr[0] == '\0' ||
            strchr(types[i].bytes == 1 ? "|<>" : "<>", descr[0]) == NULL ||
            strcmp(types[i].name, descr + 1) != 0)
            continue;
        p->npy.dtype = types[i].dtype;
        p->npy.element_bytes = types[i].bytes;
        p->npy.big_endian = descr[0] == '>' && types[i].bytes > 1;
        p->npy.is_widened = types[i].widened;
        return HR_OK;
    }
    return hr__fail(p->error, HR_ERR_UNSUPPORTED,
                    "%s: elements of dtype \"%s\" are not supported: save them as bool, "
                    "integers or floats of at most 8 bytes",
                    p->name, descr);
}

static enum hr_err read_shape(struct parse *p)
{
    struct hr_npy *npy = &p->npy;

    if (!take(p, '('))
        return wrong(p, "shape must be a tuple");
    while (!take(p, ')')) {
        if (npy->ndim == HR_MAX_DIMS)
            return hr__fail(p->error, HR_ERR_LIMIT, "%s: more than %d dimensions",
                            p->name, HR_MAX_DIMS);
        if (!take_number(p, &npy->dims[npy->ndim++]))
            return wrong(p, "shape must be a tuple of sizes");
        if (!take(p, ',') && (npy->ndim == 1 || p->at == p->end || *p->at != ')'))
            return wrong(p, "shape must be a tuple");
    }
    return HR_OK;
}

static enum hr_err read_pair(struct parse *p)
{
    char key[32];
    int k = 0;

    if (!take_string(p, key, sizeof key) || !take(p, ':'))
        return wrong(p, "expected a key and a colon");
    while (k < KEYS && strcmp(keys[k], key) != 0)
        k++;
    if (k == KEYS || (p->seen >> k & 1) != 0)
        return wrong(p, "its keys must be descr, fortran_order and shape");
    p->seen |= 1U << k;
    if (k == KEY_DESCR)
        return read_descr(p);
    if (k == KEY_SHAPE)
        return read_shape(p);
    p->npy.fortran = take_word(p, "True");
    return p->npy.fortran || take_word(p, "False")
               ? HR_OK
               : wrong(p, "fortran_order must be True or False");
}

static enum hr_err read_dict(struct parse *p)
{
    if (!take(p, '{'))
        return wrong(p, "expected a dict");
    while (!take(p, '}')) {
        HR_TRY(read_pair(p));
        if (take(p, ','))
            continue;
        if (!take(p, '}'))
            return wrong(p, "expected a comma or the end of the dict");
        break;
    }
    skip_blanks(p);
    if (p->at != p->end)
        return wrong(p, "there is more after the dict");
    return p->seen == (1U << KEYS) - 1
               ? HR_OK
               : wrong(p, "its keys must be descr, fortran_order and shape");
}

static enum hr_err check_size(struct parse *p, uint64_t file_bytes)
{
    struct hr_npy *npy = &p->npy;
    size_t bytes = npy->element_bytes;
    bool empty = false;

    for (int i = 0; i < npy->ndim; i++)
        empty = empty || npy->dims[i] == 0;
    for (int i = 0; i < npy->ndim && !empty; i++)
        if (__builtin_mul_overflow(bytes, (size_t)npy->dims[i], &bytes))
            return wrong(p, "its shape is larger than memory");
    npy->bytes = empty ? 0 : bytes;
    if (npy->bytes > file_bytes - npy->start)
        return hr__fail(p->error, HR_ERR_FORMAT,
                        "%s: the file ends before its data: %llu bytes instead of %llu",
                        p->name, (unsigned long long)(file_bytes - npy->start),
                        (unsigned long long)npy->bytes);
    return HR_OK;
}

enum hr_err
hr__npy_read(const void *data, size_t bytes, uint64_t file_bytes, const char *name,
             struct hr_npy *ret_npy, struct hr_error *reterr)
{
    const uint8_t *head = data;
    struct parse p = {.name = name, .error = reterr};
    size_t fixed, length;

    if (bytes < 10 || memcmp(head, "\x93NUMPY", 6) != 0)
        return hr__fail(reterr, HR_ERR_FORMAT, "%s: it is no .npy file", name);
    if (head[6] < 1 || head[6] > 3)
        return hr__fail(reterr, HR_ERR_UNSUPPORTED, "%s: version %d of .npy is unknown",
                        name, head[6]);
    fixed = head[6] == 1 ? 10 : 12;
    length = head[8] | (size_t)head[9] << 8;
    if (fixed == 12 && bytes >= 12)
        length |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    if (bytes >= fixed && length > HR_NPY_HEADER_MAX)
        return hr__fail(reterr, HR_ERR_LIMIT,
                        "%s: a .npy header of %zu bytes; at most %d are read", name,
                        length, HR_NPY_HEADER_MAX);
    if (bytes < fixed + length)
        return hr__fail(reterr, HR_ERR_FORMAT, "%s: the file ends in its .npy header",
                        name);
    p.at = (const char *)head + fixed;
    p.end = p.at + length;
    p.npy.start = fixed + length;
    HR_TRY(read_dict(&p));
    HR_TRY(check_size(&p, file_bytes));
    *ret_npy = p.npy;
    return HR_OK;
}

static uint64_t read_element(const uint8_t *at, size_t bytes, bool big_endian)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * (big_endian ? bytes - 1 - i : i);
    return value;
}

bool hr__npy_convert(const struct hr_npy *npy, const void *from, void *to, size_t count)
{
    size_t bytes = npy->element_bytes, size = hr_dtype_size(npy->dtype);

    if (hr__npy_is_plain(npy)) {
        if (count > 0)
            memcpy(to, from, count * bytes);
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t value =
            read_element((const uint8_t *)from + i * bytes, bytes, npy->big_endian);

        if (npy->is_widened && value > INT64_MAX)
            return false;
        memcpy((uint8_t *)to + i * size, &value, size); /* little-endian */
    }
    return true;
}
