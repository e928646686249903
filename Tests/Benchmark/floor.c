// The floor: the least that a mirror has to do, without any feature, as a measure of what a machine can give.
//
//   floor fetch PORT MANIFEST PREFIX FOLDER     fetches what http://127.0.0.1:PORT/MANIFEST names, from below PREFIX
//   floor check PORT MANIFEST LEDGER FOLDER     finds out that nothing is to be done
//
// fetch receives everything over one connection (plain sockets, HTTP/1.1 keep-alive, requests sent ahead), writes by pwrite,
// hashes by EVP (what is large on a thread of its own beside the receiving), compares with the manifest's SHA-256, syncs, and
// only then gives files their names. What the promise costs at least is done by the cheapest calls that keep it: up to eight files are
// synced each by itself (fdatasync, write-back begun by sync_file_range while they arrive), more of them by one syncfs for all;
// then all renames; then one fsync of each directory, or again one syncfs for all. After that contents and names outlive a power
// cut. check receives and parses the manifest, looks at every file (fstatat beside its open directory), reads all rows of Tarn's
// ledger in the order of their paths, and holds size, time, inode and digest of the three against each other.
//
// Ends with 0 when all is right, with 1 otherwise. No retries, no resuming, no time-outs: not for use.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER (256 << 10)
#define SLOTS 8                 // Buffers between the receiving and the hashing thread.
#define LARGE (1 << 20)         // From here on a file is hashed on the other thread, and written back early.
#define EARLY (8 << 20)
#define AHEAD 64                // Requests sent before their answers.
#define FEW 8

typedef struct {
  const char *path;
  int64_t size;
  unsigned char digest[32];
} Entry;

static Entry *entries;
static size_t entryCount;

static void fail(const char *what, const char *which) {
  fprintf(stderr, "floor: %s: %s: %s\n", what, which, strerror(errno));
  exit(1);
}

// --- HTTP -------------------------------------------------------------------------------------------------------

static int connection = -1;
static char *ahead;  // Received, not yet taken: [aheadBegin, aheadEnd).
static size_t aheadBegin, aheadEnd;

static void connectTo(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  connection = socket(AF_INET, SOCK_STREAM, 0);
  int one = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0) fail("connect", "127.0.0.1");
  ahead = malloc(BUFFER);
}

static void sendAll(const char *bytes, size_t count) {
  while (count > 0) {
    ssize_t sent = send(connection, bytes, count, MSG_NOSIGNAL);
    if (sent < 0) fail("send", "request");
    bytes += sent;
    count -= (size_t)sent;
  }
}

static size_t addRequest(char *to, size_t room, const char *prefix, const char *path) {
  return (size_t)snprintf(to, room, "GET /%s%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", prefix, path);
}

static void receiveMore(void) {
  if (aheadBegin > 0) memmove(ahead, ahead + aheadBegin, aheadEnd - aheadBegin);
  aheadEnd -= aheadBegin;
  aheadBegin = 0;
  ssize_t got = recv(connection, ahead + aheadEnd, BUFFER - aheadEnd, 0);
  if (got <= 0) fail("recv", "head");
  aheadEnd += (size_t)got;
}

// Takes the head of the next answer; the length of its body. Only 200 with a Content-Length will do.
static int64_t takeHead(const char *path) {
  char *end;
  while (!(end = memmem(ahead + aheadBegin, aheadEnd - aheadBegin, "\r\n\r\n", 4))) receiveMore();
  char *head = ahead + aheadBegin;
  *end = 0;
  char *length = strcasestr(head, "\r\nContent-Length:");
  if (strncmp(head, "HTTP/1.1 200", 12) != 0 || !length) fail(head, path);
  aheadBegin = (size_t)(end + 4 - ahead);
  return strtoll(length + 17, NULL, 10);
}

// The next bytes of the body, at most `most`, in memory that holds until the next call, or straight into `to`.
static size_t takeBody(char *to, size_t most) {
  size_t have = aheadEnd - aheadBegin;
  if (have > 0) {
    if (have > most) have = most;
    memcpy(to, ahead + aheadBegin, have);
    aheadBegin += have;
    if (have == most) return have;
  }
  ssize_t got = recv(connection, to + have, most - have, 0);
  if (got <= 0) fail("recv", "body");
  return have + (size_t)got;
}

static char *receiveManifest(const char *path, size_t *length) {
  char request[1024];
  sendAll(request, addRequest(request, sizeof request, "", path));
  int64_t size = takeHead(path);
  char *text = malloc((size_t)size + 1);
  for (int64_t taken = 0; taken < size;) taken += (int64_t)takeBody(text + taken, (size_t)(size - taken));
  text[size] = 0;
  *length = (size_t)size;
  return text;
}

// --- Manifest ---------------------------------------------------------------------------------------------------

static int nibble(char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

// The benchmark's own manifests only: keys in one order, no escapes. Paths end up as C strings in the text itself.
static void parse(char *text, size_t length) {
  size_t room = 0;
  for (char *line = text, *end; line < text + length; line = end + 1) {
    end = memchr(line, '\n', (size_t)(text + length - line));
    if (!end) end = text + length;
    if (strncmp(line, "{\"path\":\"", 9) != 0) continue;
    if (entryCount == room) entries = realloc(entries, (room = room ? room * 2 : 4096) * sizeof *entries);
    Entry *entry = &entries[entryCount++];
    entry->path = line + 9;
    char *quote = memchr(line + 9, '"', (size_t)(end - line - 9));
    *quote = 0;
    entry->size = strtoll(quote + 9, &quote, 10);           // ,"size":
    char *hex = quote + strlen(",\"hashes\":{\"sha-256\":\"");
    for (int i = 0; i < 32; i++) entry->digest[i] = (unsigned char)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
  }
  if (entryCount == 0) fail("manifest", "no entries");
}

// --- Hashing beside the receiving -----------------------------------------------------------------------------------

static char *slots[SLOTS];
static size_t lengths[SLOTS];
static unsigned filled, hashed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static EVP_MD_CTX *hasher;

static void *hashSlots(void *unused) {
  for (;;) {
    pthread_mutex_lock(&lock);
    while (hashed == filled) pthread_cond_wait(&changed, &lock);
    unsigned slot = hashed % SLOTS;
    pthread_mutex_unlock(&lock);
    EVP_DigestUpdate(hasher, slots[slot], lengths[slot]);
    pthread_mutex_lock(&lock);
    hashed++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
  }
  return unused;
}

// Waits until fewer than `most` buffers wait to be hashed.
static void waitForHashing(unsigned most) {
  pthread_mutex_lock(&lock);
  while (filled - hashed >= most) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

static void fetchOne(const Entry *entry, int file) {
  if (takeHead(entry->path) != entry->size) fail("length", entry->path);
  bool large = entry->size >= LARGE;
  EVP_DigestInit_ex(hasher, EVP_sha256(), NULL);
  for (int64_t at = 0, begun = 0; at < entry->size;) {
    if (large) waitForHashing(SLOTS);
    unsigned slot = filled % SLOTS;
    int64_t left = entry->size - at;
    size_t got = takeBody(slots[slot], left < BUFFER ? (size_t)left : BUFFER);
    if (large) {
      pthread_mutex_lock(&lock);
      lengths[slot] = got;
      filled++;
      pthread_cond_signal(&changed);
      pthread_mutex_unlock(&lock);
    } else {
      EVP_DigestUpdate(hasher, slots[slot], got);
    }
    if (pwrite(file, slots[slot], got, at) != (ssize_t)got) fail("pwrite", entry->path);
    at += (int64_t)got;
    if (large && at - begun >= EARLY) {
      sync_file_range(file, begun, at - begun, SYNC_FILE_RANGE_WRITE);
      begun = at;
    }
  }
  if (large) waitForHashing(1);
  unsigned char digest[32];
  EVP_DigestFinal_ex(hasher, digest, NULL);
  if (memcmp(digest, entry->digest, 32) != 0) fail("digest", entry->path);
}

static void makeDirectories(int folder) {
  char last[4096] = "";
  for (size_t i = 0; i < entryCount; i++) {
    const char *slash = strrchr(entries[i].path, '/');
    size_t length = slash ? (size_t)(slash - entries[i].path) : 0;
    if (length == 0 || (strncmp(last, entries[i].path, length) == 0 && last[length] == 0)) continue;
    memcpy(last, entries[i].path, length);
    last[length] = 0;
    if (mkdirat(folder, last, 0755) != 0 && errno != EEXIST) fail("mkdir", last);
  }
}

static void requestAhead(size_t *asked, size_t index, const char *prefix) {
  if (*asked > index + AHEAD / 2 || *asked == entryCount) return;
  static char requests[AHEAD * 1024];
  size_t length = 0;
  for (; *asked < entryCount && *asked < index + AHEAD; ++*asked)
    length += addRequest(requests + length, sizeof requests - length, prefix, entries[*asked].path);
  sendAll(requests, length);
}

static void publish(int folder, int part, bool few) {
  char name[32], path[4096];
  if (!few && syncfs(folder) != 0) fail("syncfs", "contents");
  for (size_t i = 0; i < entryCount; i++) {
    snprintf(name, sizeof name, "%zu", i);
    if (renameat(part, name, folder, entries[i].path) != 0) fail("rename", entries[i].path);
    const char *slash = strrchr(entries[i].path, '/');
    if (!few) continue;
    snprintf(path, sizeof path, "%.*s", slash ? (int)(slash - entries[i].path) : 1, slash ? entries[i].path : ".");
    int directory = openat(folder, path, O_RDONLY | O_DIRECTORY);
    if (directory < 0 || fsync(directory) != 0) fail("fsync", path);
    close(directory);
  }
  if (unlinkat(folder, ".part", AT_REMOVEDIR) != 0) fail("rmdir", ".part");
  if (few ? fsync(folder) != 0 : syncfs(folder) != 0) fail("sync", "names");
}

static int fetch(int port, const char *manifest, const char *prefix, const char *path) {
  size_t length = 0;
  connectTo(port);
  char *text = receiveManifest(manifest, &length);
  parse(text, length);
  hasher = EVP_MD_CTX_new();
  for (int i = 0; i < SLOTS; i++) slots[i] = malloc(BUFFER);
  pthread_t thread;
  pthread_create(&thread, NULL, hashSlots, NULL);
  int folder = open(path, O_RDONLY | O_DIRECTORY);
  if (folder < 0 || mkdirat(folder, ".part", 0700) != 0) fail("folder", path);
  int part = openat(folder, ".part", O_RDONLY | O_DIRECTORY);
  makeDirectories(folder);
  bool few = entryCount <= FEW;
  char name[32];
  for (size_t i = 0, asked = 0; i < entryCount; i++) {
    requestAhead(&asked, i, prefix);
    snprintf(name, sizeof name, "%zu", i);
    int file = openat(part, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (file < 0) fail("open", name);
    fetchOne(&entries[i], file);
    if (few && fdatasync(file) != 0) fail("fdatasync", name);
    close(file);
  }
  publish(folder, part, few);
  return 0;
}

// --- Nothing to do -----------------------------------------------------------------------------------------------

static void compare(const Entry *entry, sqlite3_stmt *rows, int directory, const char *name) {
  struct stat status;
  if (sqlite3_step(rows) != SQLITE_ROW) fail("ledger", entry->path);
  if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) fail("stat", entry->path);
  size_t length = strlen(entry->path);
  int64_t modified = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
  bool same = (size_t)sqlite3_column_bytes(rows, 0) == length && memcmp(sqlite3_column_blob(rows, 0), entry->path, length) == 0
              && sqlite3_column_int64(rows, 1) == (int64_t)status.st_ino && sqlite3_column_int64(rows, 2) == status.st_size
              && sqlite3_column_int64(rows, 3) == modified && entry->size == status.st_size
              && sqlite3_column_bytes(rows, 4) == 32 && memcmp(sqlite3_column_blob(rows, 4), entry->digest, 32) == 0;
  if (!same) fail("differs", entry->path);
}

static int check(int port, const char *manifest, const char *ledger, const char *path) {
  size_t length = 0;
  connectTo(port);
  char *text = receiveManifest(manifest, &length);
  parse(text, length);
  sqlite3 *database;
  sqlite3_stmt *rows;
  if (sqlite3_open_v2(ledger, &database, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK
      || sqlite3_prepare_v2(database, "SELECT path, inode, size, modified, digest FROM rows ORDER BY path", -1, &rows, NULL)
             != SQLITE_OK)
    fail(sqlite3_errmsg(database), ledger);
  int folder = open(path, O_RDONLY | O_DIRECTORY), directory = folder;
  char last[4096] = "";
  for (size_t i = 0; i < entryCount; i++) {
    const char *slash = strrchr(entries[i].path, '/');
    size_t parent = slash ? (size_t)(slash - entries[i].path) : 0;
    if (strncmp(last, entries[i].path, parent) != 0 || last[parent] != 0) {
      if (directory != folder) close(directory);
      memcpy(last, entries[i].path, parent);
      last[parent] = 0;
      directory = parent ? openat(folder, last, O_RDONLY | O_DIRECTORY) : folder;
      if (directory < 0) fail("open", last);
    }
    compare(&entries[i], rows, directory, slash ? slash + 1 : entries[i].path);
  }
  if (sqlite3_step(rows) != SQLITE_DONE) fail("ledger", "more rows than entries");
  return 0;
}

int main(int count, char **arguments) {
  if (count == 6 && strcmp(arguments[1], "fetch") == 0)
    return fetch(atoi(arguments[2]), arguments[3], arguments[4], arguments[5]);
  if (count == 6 && strcmp(arguments[1], "check") == 0)
    return check(atoi(arguments[2]), arguments[3], arguments[4], arguments[5]);
  fprintf(stderr, "usage: floor fetch PORT MANIFEST PREFIX FOLDER | floor check PORT MANIFEST LEDGER FOLDER\n");
  return 64;
}
