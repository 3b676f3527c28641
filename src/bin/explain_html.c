/*
 * explain_html.c - predictions as one page: graphs as inline SVG with a bar of CPU time
 * in each node, decisions as a table. No scripts, nothing from elsewhere; it is XML, too.
 */
#include "explain_predict.h"
#include "term.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BOX_WIDTH 290
#define BOX_HEIGHT 46
#define GAP 26
#define PAD 12
#define NAME_MAX_CHARS 25

static const char style[] =
    ":root{color-scheme:light dark;--back:#fbfaf7;--ink:#1d2327;--soft:#667079;"
    "--box:#fff;--line:#c9ced3;--bar:#4a7fb5;--limit:#c2542d;--moved:#7a5bb0}\n"
    "@media (prefers-color-scheme:dark){:root{--back:#15191c;--ink:#e6e9eb;"
    "--soft:#98a2aa;--box:#1f2529;--line:#3c454c;--bar:#5b93cc;--limit:#e07a52;"
    "--moved:#a58be0}}\n"
    "body{background:var(--back);color:var(--ink);font:15px/1.45 system-ui,sans-serif;"
    "margin:2rem auto;max-width:72rem;padding:0 1.2rem}\n"
    "h1{font-size:1.35rem;margin:0;overflow-wrap:anywhere}h2{font-size:1.05rem;"
    "margin:2rem 0 .5rem}\n"
    "p{margin:.3rem 0;color:var(--soft);overflow-wrap:anywhere}\n"
    "table{border-collapse:collapse}.wide{overflow-x:auto}\n"
    "th,td{padding:.25rem 1rem .25rem 0;text-align:left;vertical-align:top}"
    "th{font-weight:600}thead th{border-bottom:1px solid var(--line)}\n"
    "td{font-variant-numeric:tabular-nums}tbody th{font-weight:400;"
    "color:var(--soft);white-space:nowrap}\n"
    ".graphs{display:flex;flex-wrap:wrap;gap:1.5rem 2.5rem;align-items:flex-start}"
    "figure{margin:0;max-width:100%;overflow-x:auto}figcaption{margin-bottom:.4rem}\n"
    "svg text{fill:var(--ink);font:13px system-ui,sans-serif}"
    "svg .soft{fill:var(--soft);font-size:11px}\n"
    ".box{fill:var(--box);stroke:var(--line)}.limits{stroke:var(--limit);stroke-width:2}"
    "\n"
    ".track{fill:var(--line);opacity:.45}.bar{fill:var(--bar)}.hot{fill:var(--limit)}\n"
    ".edge{fill:none;stroke:var(--line);stroke-width:1.5}"
    "svg .moved{fill:var(--moved);font-size:11px}\n";

/* ---- text ---- */

/* What XML has no characters for becomes U+FFFD. Returns the bytes that were read. */
static size_t put_character(FILE *out, const unsigned char *text)
{
    size_t count = out_utf8_length(text);
    bool none = count == 3 && memcmp(text, "\xef\xbf", 2) == 0 && text[2] >= 0xbe;

    if (count == 0 || none || (text[0] < 0x20 && text[0] != '\t' && text[0] != '\n'))
        fputs("\xef\xbf\xbd", out);
    else if (strchr("&<>\"'", text[0]) != NULL)
        fprintf(out, "&#%d;", text[0]);
    else
        fwrite(text, 1, count, out);
    return count > 0 ? count : 1;
}

/* At most `most` characters, then an ellipsis. */
static void put_some(FILE *out, const char *text, size_t most)
{
    const unsigned char *at = (const unsigned char *)text;

    for (size_t i = 0; *at != '\0'; i++) {
        if (i + 1 == most && at[put_character(out, at)] != '\0') {
            fputs("\xe2\x80\xa6", out);
            return;
        }
        if (i + 1 == most)
            return;
        at += put_character(out, at);
    }
}

static void put(FILE *out, const char *text)
{
    put_some(out, text, SIZE_MAX);
}

/* ---- the place of each node ---- */

struct drawing {
    FILE *out;
    const struct explain_predictions *predictions;
    const struct explain_column *column;
    size_t count;
    int *depth, *lane; /* per node: steps from a source; place among those of its depth */
    int *lanes;        /* per depth */
    int depths, widest;
    double most_ns; /* of a node in any column */
};

static int depth_of(struct drawing *d, size_t at)
{
    struct hr_node_info node;
    int depth = 0;

    if (d->depth[at] >= 0)
        return d->depth[at];
    if (hr_graph_node_info(d->column->graph, at, &node) == HR_OK)
        for (size_t i = 0; i < node.input_count; i++) {
            int above = depth_of(d, node.inputs[i].id) + 1;

            depth = above > depth ? above : depth;
        }
    d->depth[at] = depth;
    return depth;
}

static bool place(struct drawing *d)
{
    d->count = hr_graph_node_count(d->column->graph);
    d->depth = calloc(3 * d->count + 1, sizeof(*d->depth));
    if (d->depth == NULL)
        return false;
    d->lane = d->depth + d->count;
    d->lanes = d->lane + d->count;
    for (size_t i = 0; i < d->count; i++)
        d->depth[i] = -1;
    for (size_t i = 0; i < d->count; i++) {
        int depth = depth_of(d, i);

        d->lane[i] = d->lanes[depth]++;
        d->widest = d->lanes[depth] > d->widest ? d->lanes[depth] : d->widest;
        d->depths = depth + 1 > d->depths ? depth + 1 : d->depths;
    }
    return true;
}

static int left(const struct drawing *d, size_t at)
{
    int step = BOX_WIDTH + GAP;

    return PAD + d->lane[at] * step + (d->widest - d->lanes[d->depth[at]]) * step / 2;
}

static int top(const struct drawing *d, size_t at)
{
    return PAD + d->depth[at] * (BOX_HEIGHT + GAP);
}

/* ---- drawing ---- */

static void draw_edges(const struct drawing *d, size_t at)
{
    struct hr_node_info node;

    if (hr_graph_node_info(d->column->graph, at, &node) != HR_OK)
        return;
    for (size_t i = 0; i < node.input_count; i++) {
        size_t from = node.inputs[i].id;
        int x = left(d, from) + BOX_WIDTH / 2, y = top(d, from) + BOX_HEIGHT;
        int to_x = left(d, at) + BOX_WIDTH / 2, to_y = top(d, at);

        fprintf(d->out, "<path class=\"edge\" d=\"M%d %dC%d %d %d %d %d %d\"/>\n", x, y,
                x, y + GAP, to_x, to_y - GAP, to_x, to_y);
    }
}

/* Where the node stood as written, from 1; 0: there. */
static size_t was(const struct drawing *d, size_t at, const char *name)
{
    const struct hr_graph *written = d->predictions->columns[0].graph;
    struct hr_node_info node;

    for (size_t i = 0; hr_graph_node_info(written, i, &node) == HR_OK; i++)
        if (strcmp(node.name, name) == 0)
            return i == at ? 0 : i + 1;
    return 0;
}

static void
draw_words(const struct drawing *d, const struct hr_prediction_node *node, size_t at)
{
    int x = left(d, at), y = top(d, at);
    size_t before = was(d, at, node->node);
    char cpu[24];

    fprintf(d->out, "<text x=\"%d\" y=\"%d\">", x + 10, y + 18);
    put_some(d->out, node->node, NAME_MAX_CHARS);
    fprintf(d->out, "</text>\n<text x=\"%d\" y=\"%d\" text-anchor=\"end\">",
            x + BOX_WIDTH - 10, y + 18);
    put(d->out, term_seconds(cpu, sizeof(cpu), node->cpu_ns * 1e-9));
    fprintf(d->out, "</text>\n<text class=\"%s\" x=\"%d\" y=\"%d\">",
            before > 0 ? "moved" : "soft", x + 10, y + 32);
    if (before > 0)
        fprintf(d->out, "was %zu", before);
    else if (strcmp(node->node, node->op) != 0)
        put_some(d->out, node->op, NAME_MAX_CHARS);
    fprintf(d->out,
            "</text>\n<text class=\"soft\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%.1f "
            "%%</text>\n",
            x + BOX_WIDTH - 10, y + 32, 100 * node->share);
}

static void draw_node(const struct drawing *d, size_t at)
{
    int x = left(d, at), y = top(d, at);
    struct hr_prediction_node node;
    struct hr_prediction_info info;
    double width;
    bool limits;

    if (hr_prediction_node(d->column->prediction, at, &node) != HR_OK)
        return;
    hr_prediction_info(d->column->prediction, &info);
    limits = strcmp(info.node, node.node) == 0;
    width = d->most_ns > 0 ? (BOX_WIDTH - 20) * node.cpu_ns / d->most_ns : 0;
    fputs("<g><title>", d->out);
    put(d->out, node.node);
    fputs(" (", d->out);
    put(d->out, node.op);
    fputs(")</title>\n", d->out);
    fprintf(d->out,
            "<rect class=\"box%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
            "rx=\"6\"/>\n",
            limits ? " limits" : "", x, y, BOX_WIDTH, BOX_HEIGHT);
    draw_words(d, &node, at);
    fprintf(d->out,
            "<rect class=\"track\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"4\"/>\n"
            "<rect class=\"bar%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"4\"/></g>\n",
            x + 10, y + 37, BOX_WIDTH - 20, limits ? " hot" : "", x + 10, y + 37, width);
}

static double most_ns(const struct explain_predictions *p)
{
    struct hr_prediction_node node;
    double most = 0;

    for (size_t i = 0; i < p->column_count; i++)
        for (size_t k = 0;
             hr_prediction_node(p->columns[i].prediction, k, &node) == HR_OK; k++)
            most = fmax(most, node.cpu_ns);
    return most;
}

/* False if out of memory. */
static bool
draw(FILE *out, const struct explain_predictions *p, const struct explain_column *column)
{
    struct drawing d = {
        .out = out, .predictions = p, .column = column, .most_ns = most_ns(p)};
    int width, height;

    if (!place(&d))
        return false;
    width = 2 * PAD + d.widest * (BOX_WIDTH + GAP) - GAP;
    height = 2 * PAD + d.depths * (BOX_HEIGHT + GAP) - GAP;
    fputs("<figure><figcaption>", out);
    put(out, column->title);
    fprintf(out,
            "</figcaption>\n<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
            "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n",
            width, height, width, height);
    for (size_t i = 0; i < d.count; i++)
        draw_edges(&d, i);
    for (size_t i = 0; i < d.count; i++)
        draw_node(&d, i);
    fputs("</svg></figure>\n", out);
    free(d.depth);
    return true;
}

/* ---- tables ---- */

static void put_cell(FILE *out, const char *text)
{
    fputs("<td>", out);
    put(out, text);
    fputs("</td>", out);
}

static void put_row(FILE *out, const struct explain_predictions *p, int row)
{
    static const char *const names[] = {"records/s", "CPU per record",
                                        "cores that compute", "memory at most",
                                        "limited by"};

    fprintf(out, "<tr><th scope=\"row\">%s</th>", names[row]);
    for (size_t i = 0; i < p->column_count; i++) {
        struct hr_prediction_info info;
        char text[64], full[320];

        hr_prediction_info(p->columns[i].prediction, &info);
        if (row == 0)
            snprintf(full, sizeof(full), "%s",
                     explain_rate(info.rate, text, sizeof(text)));
        else if (row == 1)
            snprintf(full, sizeof(full), "%s",
                     term_seconds(text, sizeof(text), info.cpu_ns * 1e-9));
        else if (row == 2)
            snprintf(full, sizeof(full), "%.1f, with %d threads", info.busy,
                     info.threads);
        else if (row == 3)
            snprintf(full, sizeof(full), "%s%s",
                     term_bytes(text, sizeof(text), (double)info.memory),
                     info.fits ? "" : ", too much");
        else
            snprintf(full, sizeof(full), "%s: %.250s", info.limit, info.reason);
        put_cell(out, full);
    }
    fputs("</tr>\n", out);
}

static void put_summary(FILE *out, const struct explain_predictions *p)
{
    fputs("<div class=\"wide\"><table><thead><tr><td></td>", out);
    for (size_t i = 0; i < p->column_count; i++) {
        fputs("<th scope=\"col\">", out);
        put(out, p->columns[i].title);
        fputs("</th>", out);
    }
    fputs("</tr></thead><tbody>\n", out);
    for (int row = 0; row < 5; row++)
        put_row(out, p, row);
    fputs("</tbody></table></div>\n", out);
}

static void put_decision(FILE *out, const struct explain_decision *d)
{
    char text[64], rate[32];

    fprintf(out, "<tr><th scope=\"row\">%s</th>", d->what);
    put_cell(out, d->chosen);
    put_cell(out, explain_rate(d->rate, rate, sizeof(rate)));
    put_cell(out, d->runner_up[0] != '\0' ? d->runner_up : "-");
    if (d->runner_up[0] == '\0') {
        fputs("<td>-</td><td>-</td></tr>\n", out);
        return;
    }
    put_cell(out, explain_rate(d->runner_rate, rate, sizeof(rate)));
    snprintf(text, sizeof(text), "%.2fx", d->rate / d->runner_rate);
    put_cell(out, text);
    fputs("</tr>\n", out);
}

static void put_decisions(FILE *out, const struct explain_predictions *p)
{
    if (p->note[0] != '\0') {
        fputs("<p>", out);
        put(out, p->note);
        fputs("</p>\n", out);
    }
    if (p->decision_count == 0)
        return;
    fputs("<h2>Decisions</h2>\n<div class=\"wide\"><table><thead><tr><td></td>"
          "<th scope=\"col\">chosen</th><th scope=\"col\">records/s</th>"
          "<th scope=\"col\">next best</th><th scope=\"col\">records/s</th>"
          "<th scope=\"col\">gain</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0; i < p->decision_count; i++)
        put_decision(out, &p->decisions[i]);
    fputs("</tbody></table></div>\n", out);
}

static bool put_page(FILE *out, const struct explain_predictions *p)
{
    bool ok = true;

    fputs("<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">"
          "<head><meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
          "<title>",
          out);
    put(out, p->graph_path);
    fprintf(out, "</title>\n<style>\n%s</style></head>\n<body>\n<h1>", style);
    put(out, p->graph_path);
    fputs("</h1>\n<p>predicted by ", out);
    put(out, p->profile_path);
    fputs("</p>\n", out);
    put_summary(out, p);
    fputs("<h2>Nodes</h2>\n<p>CPU time per record, and its part of the whole; the node "
          "with the limit is outlined.</p>\n<div class=\"graphs\">\n",
          out);
    for (size_t i = 0; ok && i < p->column_count; i++)
        ok = draw(out, p, &p->columns[i]);
    fputs("</div>\n", out);
    put_decisions(out, p);
    fputs("</body></html>\n", out);
    return ok;
}

int explain_html(const struct explain_predictions *predictions, const char *path)
{
    struct out out = {.file = NULL};
    int code = out_begin(&out, path);

    if (code == CLI_OK && !put_page(out.file, predictions))
        code = cli_failed("out of memory");
    if (code == CLI_OK)
        code = out_commit(&out);
    out_abort(&out);
    return code;
}
