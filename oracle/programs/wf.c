/* Word frequencies, with the mistake that made input-sensitive profiling famous: str_tolower asks for the
 * length of the string at every step, so it is quadratic in the length of a word. Ordinary text hides it, a
 * text with long words does not. The text is made here, with words of 1 to 600 letters. */
#include <stdio.h>
#include <stdlib.h>

#define ROUTINE __attribute__((noinline))
#define BUCKETS 1024
#define WORD_BYTES_MAX 1024

struct word {
    struct word *next;
    int count;
    char text[];
};

static struct word *buckets[BUCKETS];
static unsigned seed = 2024;

static unsigned next_random(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

/* Our own, since calls into libc are not seen. */
static ROUTINE size_t strlen(const char *s) {
    size_t n = 0;
    while (s[n]) n++;
    return n;
}

static ROUTINE void str_tolower(char *s) {
    for (size_t i = 0; i < strlen(s); i++)
        if (s[i] >= 'A' && s[i] <= 'Z') s[i] += 'a' - 'A';
}

static ROUTINE unsigned hash(const char *s) {
    unsigned h = 5381;
    while (*s) h = h * 33 + (unsigned char)*s++;
    return h % BUCKETS;
}

static ROUTINE int same(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

static ROUTINE void add_word(const char *text) {
    struct word **slot = &buckets[hash(text)];
    for (struct word *word = *slot; word; word = word->next) {
        if (same(word->text, text)) {
            word->count++;
            return;
        }
    }
    size_t n = strlen(text);
    struct word *word = malloc(sizeof *word + n + 1);
    if (!word) exit(1);
    for (size_t i = 0; i <= n; i++) word->text[i] = text[i];
    word->count = 1;
    word->next = *slot;
    *slot = word;
}

/* Copies the next word; returns where it ended, or NULL at the end of the text. */
static ROUTINE const char *get_word(const char *at, char *out) {
    while (*at == ' ' || *at == '\n') at++;
    if (!*at) return NULL;
    size_t n = 0;
    while (*at && *at != ' ' && *at != '\n') {
        if (n < WORD_BYTES_MAX - 1) out[n++] = *at;
        at++;
    }
    out[n] = 0;
    return at;
}

static ROUTINE int count_words(const char *text) {
    static char word[WORD_BYTES_MAX];
    int words = 0;
    while ((text = get_word(text, word))) {
        str_tolower(word);
        add_word(word);
        words++;
    }
    return words;
}

/* Lines of mostly short words, now and then a very long one. */
static ROUTINE char *make_text(int lines) {
    char *text = malloc((size_t)lines * 2000 + 1);
    if (!text) exit(1);
    char *at = text;
    for (int line = 0; line < lines; line++) {
        int words = 1 + (int)(next_random() % 12);
        for (int w = 0; w < words; w++) {
            int letters = next_random() % 40 ? 1 + (int)(next_random() % 12) : 20 + (int)(next_random() % 580);
            if (letters > 100) w = words;
            /* Few distinct short words, so that many repeat. */
            unsigned kind = next_random() % 50;
            for (int i = 0; i < letters; i++) {
                char letter = (char)('a' + (kind * 7 + (unsigned)i * (kind + 3)) % 26);
                *at++ = i ? letter : (char)(letter - 'a' + 'A');
            }
            *at++ = ' ';
        }
        *at++ = '\n';
    }
    *at = 0;
    return text;
}

int main(int argc, char **argv) {
    char *text = make_text(argc > 1 ? atoi(argv[1]) : 300);
    int words = count_words(text);
    int distinct = 0, most = 0;
    for (int i = 0; i < BUCKETS; i++) {
        for (struct word *word = buckets[i]; word; word = word->next) {
            distinct++;
            if (word->count > most) most = word->count;
        }
    }
    printf("%d words, %d distinct, %d times the most frequent\n", words, distinct, most);
    return 0;
}
