#include "sweep/store.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "base/file.h"
#include "sweep/queue.h"

using namespace forewarp;
using namespace forewarp::sweep;
using Catch::Matchers::Contains;

namespace {

/// A file that nobody else uses, and its log.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "forewarp_store_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file() const { return (path_ / "sweep.sqlite").string(); }

 private:
  std::filesystem::path path_;
};

std::vector<PlannedPoint> plan(const std::vector<std::string>& keys) {
  std::vector<PlannedPoint> points;
  for (const std::string& key : keys) points.push_back({{key, "all"}, "{\"k\":\"" + key + "\"}"});
  return points;
}

std::vector<Point> points_of(const std::vector<PlannedPoint>& planned) {
  std::vector<Point> points;
  for (const PlannedPoint& p : planned) points.push_back({{"k", p.identity.key}});
  return points;
}

/// Counts what it computes.
class Echo : public Source {
 public:
  Identity identify(const Point& point) override { return {point[0].text, ""}; }
  std::string predict(const Point& point) override {
    ++computed;
    if (point[0].text == "bad") throw InputError("does not fit");
    return "result of " + point[0].text;
  }
  std::atomic<int> computed{0};
};

void set_lease(const std::string& path, const std::string& change) {
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
  REQUIRE(sqlite3_exec(database, ("UPDATE results SET " + change).c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(database);
}

}  // namespace

TEST_CASE("each point is drawn once, however many threads draw", "[sweep]") {
  const Folder folder;
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) keys.push_back("key" + std::to_string(i));
  const auto planned = plan(keys);
  Echo source;
  {
    Store store(folder.file(), planned);
    StoreQueue queue(store);
    compute(queue, source, points_of(planned), 4, [] {});
    CHECK(store.left() == 0);
    const std::vector<Outcome> outcomes = store.outcomes();
    for (std::size_t i = 0; i < keys.size(); ++i) CHECK(outcomes[i].result == "result of " + keys[i]);
  }
  CHECK(source.computed == 300);
  Store again(folder.file(), planned);
  CHECK(again.left() == 0);
  CHECK_FALSE(again.draw());
}

TEST_CASE("equal points are computed once", "[sweep]") {
  const Folder folder;
  const auto planned = plan({"a", "b", "a"});
  Store store(folder.file(), planned);
  StoreQueue queue(store);
  Echo source;
  compute(queue, source, points_of(planned), 1, [] {});
  CHECK(source.computed == 2);
  CHECK(store.outcomes()[2].result == "result of a");
}

TEST_CASE("points of a group are drawn one after another, and listed in their order", "[sweep]") {
  const Folder folder;
  const std::vector<PlannedPoint> planned{{{"a", "one"}, "1"}, {{"b", "two"}, "2"}, {{"c", "one"}, "3"}};
  Store store(folder.file(), planned);
  CHECK(store.draw() == 0u);
  CHECK(store.draw() == 2u);
  CHECK(store.draw() == 1u);
  for (const std::size_t place : {2u, 1u, 0u}) store.finish(place, {std::to_string(place), ""});
  CHECK(store.outcomes()[1].result == "1");
}

TEST_CASE("a point that cannot be predicted has its reason for a result", "[sweep]") {
  const Folder folder;
  const auto planned = plan({"good", "bad"});
  Store store(folder.file(), planned);
  StoreQueue queue(store);
  Echo source;
  compute(queue, source, points_of(planned), 1, [] {});
  CHECK(store.outcomes()[1].error == "does not fit");
  CHECK(store.outcomes()[1].result.empty());
}

TEST_CASE("a failure that is not the point's gives the point back", "[sweep]") {
  struct Broken : Echo {
    std::string predict(const Point&) override { throw std::bad_alloc(); }
  };
  const Folder folder;
  const auto planned = plan({"a"});
  Store store(folder.file(), planned);
  StoreQueue queue(store);
  Broken source;
  CHECK_THROWS_AS(compute(queue, source, points_of(planned), 2, [] {}), std::bad_alloc);
  CHECK(store.draw() == 0u);
}

TEST_CASE("what a living process has drawn waits for it until its lease ends", "[sweep]") {
  const Folder folder;
  const auto planned = plan({"a"});
  Store first(folder.file(), planned, process_name());
  CHECK(first.draw() == 0u);
  Store second(folder.file(), planned, "elsewhere 1 2");
  CHECK_FALSE(second.draw());
  CHECK(second.left() == 1);
  set_lease(folder.file(), "lease = 1");
  CHECK(second.draw() == 0u);
  first.renew();  // too late: it is another's
  first.finish(0, {"late but the same", ""});
  second.finish(0, {"ignored", ""});
  CHECK(second.outcomes()[0].result == "late but the same");
}

TEST_CASE("what a killed process has drawn is drawn again at once, what it finished is kept", "[sweep]") {
  const Folder folder;
  const auto planned = plan({"a", "b", "c"});
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    Store store(folder.file(), planned);
    store.finish(*store.draw(), {"done", ""});
    const bool drew = store.draw() == std::optional<std::size_t>(1);
    if (::write(ready[1], drew ? "y" : "n", 1) != 1) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  char answer = 0;
  REQUIRE(::read(ready[0], &answer, 1) == 1);
  CHECK(answer == 'y');
  Store store(folder.file(), planned);
  CHECK(store.draw() == 2u);  // 1 is the child's
  REQUIRE(::kill(child, SIGKILL) == 0);
  // Once it is gone, which a process is before anyone waits for it.
  for (int i = 0; i < 10000 && store.left() == 2; ++i) {
    const auto place = store.draw();
    if (place) {
      CHECK(*place == 1);
      store.finish(1, {"again", ""});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  store.finish(2, {"c", ""});
  CHECK(store.outcomes()[0].result == "done");
  CHECK(store.outcomes()[1].result == "again");
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("a process that is gone is told from one that lives", "[sweep]") {
  CHECK_FALSE(is_gone(process_name()));
  CHECK_FALSE(is_gone("another-machine 1 2"));
  const std::string own = process_name();
  CHECK(is_gone(own.substr(0, own.rfind(' ')) + " 1"));  // the same id, started at another time
}

TEST_CASE("a sweep that was extended computes what is new", "[sweep]") {
  const Folder folder;
  Echo source;
  const auto run = [&](const std::vector<std::string>& keys) {
    const auto planned = plan(keys);
    Store store(folder.file(), planned);
    StoreQueue queue(store);
    compute(queue, source, points_of(planned), 1, [] {});
    return store.outcomes();
  };
  run({"a", "b"});
  CHECK(run({"c", "b", "d"})[1].result == "result of b");
  CHECK(source.computed == 4);
  run({"a", "c"});
  CHECK(source.computed == 4);
}

TEST_CASE("a file in use for other points, or of something else, is refused", "[sweep]") {
  const Folder folder;
  {
    Store first(folder.file(), plan({"a"}));
    first.draw();
    CHECK_THROWS_WITH(Store(folder.file(), plan({"b"})), Contains("computes other points"));
  }
  CHECK_NOTHROW(Store(folder.file(), plan({"b"})));
  const Folder other;
  write_file(other.file(), "no database, whatever its name says, and long enough to be sure of it\n");
  CHECK_THROWS_WITH(Store(other.file(), plan({"a"})), Contains("sweep.sqlite: SQLite: file is not a database"));
  CHECK_THROWS_AS(Store("/nowhere/sweep.sqlite", plan({"a"})), InputError);
}
