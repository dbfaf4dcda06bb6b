/* The options of a program: `getopt` and its kin, whose state belongs to each rank, and its name.

   A program may have copies of the variables of the C library, which the functions of the library do
   not read or set. So these functions are ours. They do as those of the GNU C library. */

#include "process.h"
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const options FRESH = {.first_index = 1, .print = 1, .other = '?'};

/* The options of the process that calls; of all other callers, if it is not a program's. */
static options *
of_caller(void)
{
    static options others;
    Process *process = caller();
    options *self = process != NULL ? &process->options : &others;
    if (self->index == NULL)
        begin_options(self);
    return self;
}

void
begin_options(options *self)
{
    *self = FRESH;
    self->index = &self->first_index;
    self->errors = &self->print;
    self->option = &self->other;
    self->argument = &self->value;
    self->name = &self->own_name;
    self->short_name = &self->own_short_name;
}

/* The address of a variable of a process that has this name in the C library; NULL if it is not ours.
   A copy in the program takes its place. */
void *
option_variable(options *self, const char *name, void *copy)
{
    struct {
        const char *name;
        void **place;
    } variables[] = {
        {"optind", (void **)&self->index},
        {"opterr", (void **)&self->errors},
        {"optopt", (void **)&self->option},
        {"optarg", (void **)&self->argument},
        {"program_invocation_name", (void **)&self->name},
        {"__progname_full", (void **)&self->name},
        {"program_invocation_short_name", (void **)&self->short_name},
        {"__progname", (void **)&self->short_name},
    };
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (strcmp(name, variables[i].name) == 0) {
            if (copy != NULL)
                *variables[i].place = copy;
            return *variables[i].place;
        }
    return NULL;
}

void
name_program(options *self, char *name)
{
    char *slash = strrchr(name, '/');
    *self->name = name;
    *self->short_name = slash != NULL ? slash + 1 : name;
}

enum order { REQUIRED, PERMUTED, RETURNED };

/* Move the words that are no options behind the options that follow them. */
static void
exchange(options *self, char **words)
{
    int bottom = self->first, middle = self->last, top = *self->index;
    self->first += top - middle;
    self->last = top;
    while (top > middle && middle > bottom) {
        int below = middle - bottom, above = top - middle;
        int count = below < above ? below : above;
        int from = below < above ? top - count : middle;
        for (int i = 0; i < count; i++) {
            char *word = words[bottom + i];
            words[bottom + i] = words[from + i];
            words[from + i] = word;
        }
        if (below < above)
            top -= count;
        else
            bottom += count;
    }
}

typedef struct {
    int count;
    char **words;
    const char *names;
    const struct option *longs;
    int *which;
    int alone; /* whether long options may begin with one dash */
    int quiet;
} request;

#define SAY(...)                                                                                   \
    do                                                                                             \
        if (!wanted->quiet)                                                                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
    while (0)

static int lacking(const request *wanted) { return *wanted->names == ':' ? ':' : '?'; }

static int
long_option(options *self, const request *wanted, const char *dashes)
{
    const char *program = wanted->words[0], *name = self->next;
    size_t length = strcspn(name, "=");
    const struct option *found = NULL;
    int several = 0;
    for (const struct option *each = wanted->longs; each->name != NULL; each++) {
        if (strncmp(each->name, name, length) != 0)
            continue;
        if (strlen(each->name) == length) {
            found = each;
            several = 0;
            break;
        }
        if (found == NULL)
            found = each;
        else if (wanted->alone || found->has_arg != each->has_arg || found->flag != each->flag
                 || found->val != each->val)
            several = 1;
    }
    if (several) {
        SAY("%s: option '%s%s' is ambiguous; possibilities:", program, dashes, name);
        for (const struct option *each = wanted->longs; each->name != NULL; each++)
            if (strncmp(each->name, name, length) == 0)
                SAY(" '%s%s'", dashes, each->name);
        SAY("\n");
        self->next = NULL;
        *self->option = 0;
        ++*self->index;
        return '?';
    }
    if (found == NULL) {
        const char *word = wanted->words[*self->index];
        if (wanted->alone && word[1] != '-' && strchr(wanted->names, *name) != NULL)
            return -1;
        SAY("%s: unrecognized option '%s%s'\n", program, dashes, name);
        self->next = NULL;
        *self->option = 0;
        ++*self->index;
        return '?';
    }
    ++*self->index;
    self->next = NULL;
    if (name[length] == '=') {
        if (found->has_arg == no_argument) {
            SAY("%s: option '%s%s' doesn't allow an argument\n", program, dashes, found->name);
            *self->option = found->val;
            return '?';
        }
        *self->argument = (char *)name + length + 1;
    } else if (found->has_arg == required_argument) {
        if (*self->index >= wanted->count) {
            SAY("%s: option '%s%s' requires an argument\n", program, dashes, found->name);
            *self->option = found->val;
            return lacking(wanted);
        }
        *self->argument = wanted->words[(*self->index)++];
    }
    if (wanted->which != NULL)
        *wanted->which = (int)(found - wanted->longs);
    if (found->flag == NULL)
        return found->val;
    *found->flag = found->val;
    return 0;
}

static int
short_option(options *self, const request *wanted)
{
    const char *program = wanted->words[0];
    char letter = *self->next++;
    const char *kind = letter == ':' || letter == ';' ? NULL : strchr(wanted->names, letter);
    if (*self->next == 0)
        ++*self->index;
    if (kind == NULL) {
        SAY("%s: invalid option -- '%c'\n", program, letter);
        *self->option = letter;
        return '?';
    }
    int of_longs = kind[1] == ';' && letter == 'W' && wanted->longs != NULL;
    if (kind[1] != ':' && !of_longs)
        return letter;
    int optional = !of_longs && kind[2] == ':', result = letter;
    if (*self->next != 0) {
        *self->argument = self->next;
        if (!of_longs)
            ++*self->index;
    } else if (optional)
        *self->argument = NULL;
    else if (*self->index >= wanted->count) {
        SAY("%s: option requires an argument -- '%c'\n", program, letter);
        *self->option = letter;
        result = lacking(wanted);
    } else
        *self->argument = wanted->words[of_longs ? *self->index : (*self->index)++];
    if (of_longs && result == letter) {
        self->next = *self->argument;
        *self->argument = NULL;
        return long_option(self, wanted, "-W ");
    }
    self->next = NULL;
    return result;
}

static int no_option(const char *word) { return word[0] != '-' || word[1] == 0; }

static int
parse(int count, char *const *words, const char *names, const struct option *longs, int *which,
      int alone, int strict)
{
    options *self = of_caller();
    request wanted = {count, (char **)words, names, longs, which, alone, !*self->errors};
    int *index = self->index;
    if (count < 1)
        return -1;
    *self->argument = NULL;
    if (*index == 0 || !self->started) {
        if (*index == 0)
            *index = 1;
        self->first = self->last = *index;
        self->next = NULL;
        self->order = *names == '-'                                              ? RETURNED
                      : *names == '+' || strict || own_getenv("POSIXLY_CORRECT") ? REQUIRED
                                                                                 : PERMUTED;
        self->started = 1;
    }
    if (*names == '-' || *names == '+')
        wanted.names = ++names;
    if (*names == ':')
        wanted.quiet = 1;
    if (self->next == NULL || *self->next == 0) {
        if (self->last > *index)
            self->last = *index;
        if (self->first > *index)
            self->first = *index;
        if (self->order == PERMUTED) {
            if (self->first != self->last && self->last != *index)
                exchange(self, wanted.words);
            else if (self->last != *index)
                self->first = *index;
            while (*index < count && no_option(words[*index]))
                ++*index;
            self->last = *index;
        }
        if (*index < count && strcmp(words[*index], "--") == 0) {
            ++*index;
            if (self->first != self->last && self->last != *index)
                exchange(self, wanted.words);
            else if (self->first == self->last)
                self->first = *index;
            self->last = *index = count;
        }
        if (*index >= count) {
            if (self->first != self->last)
                *index = self->first;
            return -1;
        }
        char *word = words[*index];
        if (no_option(word)) {
            if (self->order == REQUIRED)
                return -1;
            *self->argument = word;
            ++*index;
            return 1;
        }
        if (longs != NULL && word[1] == '-') {
            self->next = word + 2;
            return long_option(self, &wanted, "--");
        }
        if (longs != NULL && alone && (word[2] != 0 || strchr(names, word[1]) == NULL)) {
            self->next = word + 1;
            int code = long_option(self, &wanted, "-");
            if (code != -1)
                return code;
        }
        self->next = word + 1;
    }
    return short_option(self, &wanted);
}

int
own_getopt(int count, char *const *words, const char *names)
{
    return parse(count, words, names, NULL, NULL, 0, 0);
}

int
own_posix_getopt(int count, char *const *words, const char *names)
{
    return parse(count, words, names, NULL, NULL, 0, 1);
}

int
own_getopt_long(int count, char *const *words, const char *names, const struct option *longs,
                int *which)
{
    return parse(count, words, names, longs, which, 0, 0);
}

int
own_getopt_long_only(int count, char *const *words, const char *names, const struct option *longs,
                     int *which)
{
    return parse(count, words, names, longs, which, 1, 0);
}
