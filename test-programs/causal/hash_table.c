/* Words are counted in a hash table by two threads. The hash adds up the letters, so that thousands of words share a few
 * hundred chains; `good` multiplies as well. Arguments: batches of each thread, steps of work per word, hash (bad, good). */
#include "causal.h"
enum { WORDS = 20000, BUCKETS = 1 << 14, LOCKS = 64, BATCH = 50 };
typedef struct entry { char word[16]; uint64_t count; struct entry *next; } entry_t;
static entry_t *buckets[BUCKETS];
static pthread_mutex_t locks[LOCKS];
static char words[WORDS][16];
static uint64_t batches, steps;
static int good;
static point_t *p;
static unsigned hash(const char *word) {
  unsigned h = 0;
  for (; *word; word++) h = good ? h * 31 + (unsigned char)*word : h + (unsigned char)*word;
  return h % BUCKETS;
}
static void count(const char *word) {
  unsigned at = hash(word);
  pthread_mutex_lock(&locks[at % LOCKS]);
  entry_t *e = buckets[at];
  while (e && strcmp(e->word, word)) e = e->next; /* TARGET chain */
  if (!e) {
    e = calloc(1, sizeof *e);
    strcpy(e->word, word);
    e->next = buckets[at], buckets[at] = e;
  }
  e->count++;
  pthread_mutex_unlock(&locks[at % LOCKS]);
}
static void *work(void *x) {
  uint64_t state = (uint64_t)x * 7919 + 1;
  for (uint64_t b = 0; b < batches; b++) {
    for (int i = 0; i < BATCH; i++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      count(words[(state >> 33) % WORDS]);
      SPIN(steps); /* TARGET other work */
    }
    VISIT(p);
  }
  return 0;
}
int main(int argc, char **argv) {
  batches = ARGUMENT(1, 20000), steps = ARGUMENT(2, 2000);
  good = argc > 3 && argv[3][0] == 'g';
  uint64_t state = 1;
  for (int i = 0; i < WORDS; i++)
    for (int k = 0; k < 8; k++) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      words[i][k] = (char)('a' + (state >> 33) % 26);
    }
  for (int i = 0; i < LOCKS; i++) pthread_mutex_init(&locks[i], 0);
  p = point(1, "batch");
  double start = now();
  pthread_t s, t;
  pthread_create(&s, 0, work, (void *)1), pthread_create(&t, 0, work, (void *)2);
  pthread_join(s, 0), pthread_join(t, 0);
  REPORT(start, 2 * batches);
}
