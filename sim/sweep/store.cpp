#include "sweep/store.h"

#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>
#include <unordered_map>

#include "base/error.h"

namespace forewarp::sweep {

namespace {

constexpr int kFormat = 1;
constexpr int kWaitMilliseconds = 120'000;  // for a transaction of another process

/// A table of what there is to compute, one of the points in their order, and a view of both for people.
constexpr const char* kTables = R"(
CREATE TABLE IF NOT EXISTS results (
  key TEXT PRIMARY KEY,       -- of everything that the result depends on
  turn INTEGER,               -- when it is drawn; NULL: not in the sweep any more
  done INTEGER NOT NULL DEFAULT 0,
  owner TEXT,                 -- process that computes it
  lease INTEGER,              -- seconds since 1970; afterwards others may draw it
  result TEXT,                -- JSON
  error TEXT);
CREATE INDEX IF NOT EXISTS to_draw ON results (turn) WHERE done = 0;
CREATE TABLE IF NOT EXISTS points (place INTEGER PRIMARY KEY, "values" TEXT NOT NULL, key TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE VIEW IF NOT EXISTS rows AS
  SELECT place, "values", done, result, error FROM points JOIN results USING (key) ORDER BY place;
)";

constexpr const char* kNow = "CAST(strftime('%s', 'now') AS INTEGER)";

[[noreturn]] void fail(sqlite3* database, const std::string& path) {
  throw InputError({path}, std::string("SQLite: ") + sqlite3_errmsg(database),
                   "it must be the database of a sweep, on a disk of this machine, in a folder that you may write to");
}

[[noreturn]] void fail_changed(const std::string& path) {
  throw InputError({path}, "has been given other points by another process", "start again with a file of its own");
}

class Statement {
 public:
  Statement(sqlite3* database, const std::string& path, const std::string& sql) : database_(database), path_(path) {
    if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) fail(database, path);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(const std::string& text) {
    sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& bind(std::size_t number) {
    sqlite3_bind_int64(statement_, ++bound_, static_cast<sqlite3_int64>(number));
    return *this;
  }
  /// True while there is a row.
  bool step() {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) return true;
    if (code != SQLITE_DONE) fail(database_, path_);
    return false;
  }
  void again() {
    sqlite3_reset(statement_);
    bound_ = 0;
  }
  std::string text(int column) const {
    const auto* start = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return start == nullptr ? std::string() : std::string(start);
  }
  std::size_t number(int column) const { return static_cast<std::size_t>(sqlite3_column_int64(statement_, column)); }

 private:
  sqlite3* database_;
  const std::string& path_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

/// Undone unless it is committed.
class Transaction {
 public:
  Transaction(sqlite3* database, const std::string& path) : database_(database), path_(path) {
    Statement(database, path, "BEGIN IMMEDIATE").step();
  }
  ~Transaction() {
    if (!committed_) sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() {
    Statement(database_, path_, "COMMIT").step();
    committed_ = true;
  }

 private:
  sqlite3* database_;
  const std::string& path_;
  bool committed_ = false;
};

std::string first_word(const std::string& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

/// This start of this machine, and its name space of process ids.
std::string machine_name() {
  std::error_code ignored;
  return first_word("/proc/sys/kernel/random/boot_id") + "/" +
         std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string();
}

/// When a process started, in ticks since the machine did; empty if it does not run.
std::string start_of(const std::string& pid) {
  std::ifstream in("/proc/" + pid + "/stat");
  const std::string line{std::istreambuf_iterator<char>(in), {}};
  const std::size_t name_end = line.rfind(')');  // of a name that may hold anything
  if (name_end == std::string::npos) return "";
  std::istringstream fields(line.substr(name_end + 1));
  const std::vector<std::string> words{std::istream_iterator<std::string>(fields), {}};
  const bool ended = words.empty() || words[0] == "Z" || words[0] == "X";
  return ended || words.size() < 20 ? "" : words[19];
}

}  // namespace

std::string process_name() {
  const std::string pid = std::to_string(::getpid());
  return machine_name() + " " + pid + " " + start_of(pid);
}

bool is_gone(const std::string& process) {
  std::istringstream in(process);
  std::string machine, pid, start;
  in >> machine >> pid >> start;
  return machine == machine_name() && start_of(pid) != start;
}

Store::Store(const std::string& path, std::span<const PlannedPoint> points, std::string process)
    : path_(path), process_(std::move(process)), database_(nullptr, sqlite3_close) {
  order(points);
  open();
  plan(points);
}

Store::~Store() {
  // What was drawn and not finished is free again at once.
  sqlite3_stmt* free = nullptr;
  const char* sql = "UPDATE results SET owner = NULL, lease = NULL WHERE done = 0 AND owner = ?";
  if (sqlite3_prepare_v2(database_.get(), sql, -1, &free, nullptr) == SQLITE_OK) {
    sqlite3_bind_text(free, 1, process_.c_str(), -1, SQLITE_TRANSIENT);
    sqlite3_step(free);
  }
  sqlite3_finalize(free);
}

/// Points that share work are drawn one after another, otherwise in the order of the sweep.
void Store::order(std::span<const PlannedPoint> points) {
  std::unordered_map<std::string, std::size_t> groups;
  std::vector<std::size_t> group(points.size());
  for (std::size_t i = 0; i < points.size(); ++i)
    group[i] = groups.emplace(points[i].identity.group, groups.size()).first->second;
  std::vector<std::size_t> sorted(points.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) { return group[a] < group[b]; });
  std::unordered_map<std::string, std::size_t> turns;
  turn_of_.resize(points.size());
  for (const std::size_t place : sorted) {
    const std::string& key = points[place].identity.key;
    const auto [known, is_new] = turns.emplace(key, keys_.size());
    if (is_new) {
      keys_.push_back(key);
      first_.emplace(key, place);
    }
    turn_of_[place] = known->second;
  }
}

void Store::open() {
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path_.c_str(), &database,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  database_.reset(database);
  if (code != SQLITE_OK) fail(database, path_);
  sqlite3_busy_timeout(database, kWaitMilliseconds);
  // A log beside the file: commits are cheap, survive the process, and do not wait for readers. SQLite does not wait
  // where two processes that have just made the file both change its mode, so we do.
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kWaitMilliseconds);
  int changed;
  while ((changed = sqlite3_exec(database, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr)) == SQLITE_BUSY &&
         std::chrono::steady_clock::now() < until)
    sqlite3_sleep(5);
  if (changed != SQLITE_OK) fail(database, path_);
  Statement(database, path_, "PRAGMA synchronous = NORMAL").step();
}

void Store::plan(std::span<const PlannedPoint> points) {
  sqlite3* db = database_.get();
  Transaction transaction(db, path_);
  {
    Statement tables(db, path_, "SELECT count(*) FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'");
    tables.step();
    Statement own(db, path_, "SELECT count(*) FROM sqlite_master WHERE name IN ('results', 'points', 'about')");
    own.step();
    if (tables.number(0) > 0 && own.number(0) != 3)
      throw InputError({path_}, "is a database, but not of a sweep", "name another file by --out");
  }
  char* message = nullptr;
  if (sqlite3_exec(db, kTables, nullptr, nullptr, &message) != SQLITE_OK) {
    sqlite3_free(message);
    fail(db, path_);
  }
  Statement format(db, path_, "SELECT value FROM about WHERE name = 'format'");
  if (format.step() && format.text(0) != std::to_string(kFormat))
    throw InputError({path_}, "was written by another version of forewarp", "name another file by --out");

  bool same = true;
  {
    std::size_t place = 0;
    Statement known(db, path_, "SELECT \"values\", key FROM points ORDER BY place");
    while (same && known.step()) {
      same =
          place < points.size() && known.text(0) == points[place].values && known.text(1) == points[place].identity.key;
      ++place;
    }
    same = same && place == points.size();
  }
  free_the_gone();
  if (!same) {
    Statement others(db, path_, std::string("SELECT count(*) FROM results WHERE done = 0 AND lease >= ") + kNow);
    others.step();
    if (others.number(0) > 0)
      throw InputError({path_}, "is in use by a process that computes other points",
                       "let it end, or name another file by --out");
    Statement(db, path_, "UPDATE results SET turn = NULL, owner = NULL, lease = NULL").step();
    Statement(db, path_, "DELETE FROM points").step();
    Statement add(db, path_,
                  "INSERT INTO results (key, turn) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET turn = excluded.turn");
    for (std::size_t turn = 0; turn < keys_.size(); ++turn) {
      add.bind(keys_[turn]).bind(turn).step();
      add.again();
    }
    Statement list(db, path_, "INSERT INTO points (place, \"values\", key) VALUES (?, ?, ?)");
    for (std::size_t place = 0; place < points.size(); ++place) {
      list.bind(place).bind(points[place].values).bind(points[place].identity.key).step();
      list.again();
    }
    Statement(db, path_, "INSERT OR REPLACE INTO about VALUES ('format', ?)").bind(std::to_string(kFormat)).step();
  }
  transaction.commit();
}

/// Frees the points of processes that no longer run.
void Store::free_the_gone() {
  std::vector<std::string> gone;
  {
    Statement owners(database_.get(), path_, "SELECT DISTINCT owner FROM results WHERE done = 0 AND owner IS NOT NULL");
    while (owners.step())
      if (is_gone(owners.text(0))) gone.push_back(owners.text(0));
  }
  for (const std::string& owner : gone)
    Statement(database_.get(), path_, "UPDATE results SET owner = NULL, lease = NULL WHERE done = 0 AND owner = ?")
        .bind(owner)
        .step();
}

std::optional<std::size_t> Store::draw() {
  const std::lock_guard lock(mutex_);
  Transaction transaction(database_.get(), path_);
  const std::string sql = std::string("UPDATE results SET owner = ?, lease = ") + kNow + " + " +
                          std::to_string(kLeaseSeconds) +
                          " WHERE key = (SELECT key FROM results WHERE done = 0 AND turn IS NOT NULL AND"
                          " (owner IS NULL OR lease < " +
                          kNow + ") ORDER BY turn LIMIT 1) RETURNING key";
  for (const bool again : {false, true}) {
    if (again) free_the_gone();
    Statement next(database_.get(), path_, sql);
    if (!next.bind(process_).step()) continue;
    const auto place = first_.find(next.text(0));
    while (next.step()) {
    }
    if (place == first_.end()) fail_changed(path_);
    transaction.commit();
    return place->second;
  }
  transaction.commit();
  return std::nullopt;
}

void Store::finish(std::size_t place, const Outcome& outcome) {
  const std::lock_guard lock(mutex_);
  Statement keep(
      database_.get(), path_,
      "UPDATE results SET done = 1, owner = NULL, lease = NULL, result = nullif(?, ''), error = nullif(?, '')"
      " WHERE key = ? AND done = 0");
  keep.bind(outcome.result).bind(outcome.error).bind(keys_[turn_of_[place]]).step();
}

void Store::give_back(std::size_t place) {
  const std::lock_guard lock(mutex_);
  Statement(database_.get(), path_, "UPDATE results SET owner = NULL, lease = NULL WHERE key = ? AND done = 0")
      .bind(keys_[turn_of_[place]])
      .step();
}

void Store::renew() {
  const std::lock_guard lock(mutex_);
  Statement(database_.get(), path_,
            std::string("UPDATE results SET lease = ") + kNow + " + " + std::to_string(kLeaseSeconds) +
                " WHERE done = 0 AND owner = ?")
      .bind(process_)
      .step();
}

std::size_t Store::left() {
  const std::lock_guard lock(mutex_);
  Statement open(database_.get(), path_, "SELECT count(*) FROM results WHERE done = 0 AND turn IS NOT NULL");
  open.step();
  return open.number(0);
}

std::vector<Outcome> Store::outcomes() {
  const std::lock_guard lock(mutex_);
  std::vector<Outcome> all;
  Statement rows(database_.get(), path_, "SELECT result, error, done FROM rows");
  while (rows.step()) {
    if (rows.number(2) != 1) fail_changed(path_);
    all.push_back({rows.text(0), rows.text(1)});
  }
  if (all.size() != turn_of_.size()) fail_changed(path_);
  return all;
}

}  // namespace forewarp::sweep
