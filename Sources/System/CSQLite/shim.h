#include <sqlite3.h>

/* Swift cannot call functions with variable arguments: one switch of sqlite3_db_config, on or off. */
static inline int tarn_sqlite3_db_config_switch(sqlite3 *database, int option, int value) {
  return sqlite3_db_config(database, option, value, (int *)0);
}
