#include "cli/command_line.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <thread>

#include "cli/output.h"

namespace forewarp::cli {

namespace po = boost::program_options;

CommandLine::CommandLine(std::string usage, std::string purpose, std::vector<std::string> examples)
    : usage_(std::move(usage)), purpose_(std::move(purpose)), examples_(std::move(examples)) {
  help_.add_options()("color", po::value<std::string>()->value_name("auto|always|never")->default_value("auto"),
                      "colour text for people; auto: on a terminal, unless NO_COLOR is set or TERM is dumb")(
      "help,h", "print this");
}

po::options_description_easy_init CommandLine::model() { return model_.add_options(); }
po::options_description_easy_init CommandLine::output() { return output_.add_options(); }

void CommandLine::positional(const std::string& name, bool optional) {
  hidden_.add_options()(name.c_str(), po::value<std::string>());
  positional_.emplace_back(name, optional);
}

void CommandLine::rest(const std::string& name, bool optional) {
  hidden_.add_options()(name.c_str(), po::value<std::vector<std::string>>());
  positional_.emplace_back(name, optional);
  rest_ = name;
}

void CommandLine::add_gpu() {
  model()("gpu", po::value<std::string>()->value_name("NAME|FILE"),
          "GPU model: a name (`forewarp describe gpu` lists them) or a YAML file");
  add_set();
}

void CommandLine::add_set() {
  model()("set", po::value<std::vector<std::string>>()->value_name("LEAF=VALUE"),
          "gives a number of the GPU model another value, like l2.hit_cycles=120; may be repeated");
}

void CommandLine::add_simulation() {
  model()("full", "simulate every instruction of every block instead of extrapolating from a part")(
      "cache", po::value<std::string>()->value_name("cold|warm|sequence")->default_value("cold"),
      "caches at the start of a launch: empty, as a profiler leaves them; as an earlier run of the same launch left "
      "them; or as the launches before it left them, the case running over and over");
  add_effort();
}

void CommandLine::add_effort() {
  po::options_description_easy_init add = model();
  add("memory", po::value<std::string>()->value_name("SIZE")->default_value("1GiB"),
      "memory that a launch may take beside its buffers, in KiB, MiB or GiB; blocks that differ are sampled where it "
      "is "
      "not enough for all");
  add("budget", po::value<double>()->value_name("SECONDS")->default_value(Effort{}.seconds),
      "processor seconds that a launch may take to be followed, simulated and explained, at a nominal speed, so that "
      "results are the same on every machine");
  add("precision", po::value<double>()->value_name("PERCENT")->default_value(2),
      "half of the 95 % interval of a launch's cycles with which it is enough; until then more of it is simulated, as "
      "far as the budget reaches");
  add("exact", "follow every block for the counts, however long it takes");
}

void CommandLine::add_causes() {
  model()("causes", po::value<std::string>()->value_name("simulated|counted")->default_value("simulated"),
          "how the causes of a launch's time are sized: by simulating it again without each, or, several times "
          "faster, from the counters of the one run");
}

void CommandLine::add_record() {
  model()(
      "warps", po::value<std::string>()->value_name("BLOCK"),
      "watch this block (its number in the grid, x fastest), or its cluster, from its start on: what each warp does "
      "when, and the copies and products under way beside them, for `forewarp plot warps`")(
      "warps-cycles", po::value<std::string>()->value_name("N"), "... for so many cycles (default: 20000)");
}

std::optional<RecordRequest> CommandLine::record() const {
  const auto whole = [&](const std::string& name, std::uint64_t most) {
    const std::string given = text(name);
    const bool digits = !given.empty() && given.find_first_not_of("0123456789") == std::string::npos;
    const std::uint64_t number = digits && given.size() < 11 ? std::stoull(given) : most + 1;
    if (number > most)
      throw UsageError("--" + name + " is a whole number up to " + std::to_string(most) + ", not '" + given + "'");
    return number;
  };
  if (!has("warps")) {
    if (has("warps-cycles")) throw UsageError("--warps-cycles goes with --warps BLOCK");
    return std::nullopt;
  }
  RecordRequest request;
  request.block = static_cast<std::uint32_t>(whole("warps", 0xfffffffe));
  if (has("warps-cycles")) request.cycles = whole("warps-cycles", RecordRequest::kMostCycles);
  if (request.cycles == 0) throw UsageError("--warps-cycles is a number above 0");
  return request;
}

Causes CommandLine::causes() const {
  const std::string named = text("causes");
  if (named != "simulated" && named != "counted")
    throw UsageError("--causes is simulated or counted, not '" + named + "'");
  return named == "simulated" ? Causes::Simulated : Causes::Counted;
}

Effort CommandLine::effort() const {
  Effort effort;
  const std::string size = text("memory");
  std::size_t digits = 0;
  double count = 0;
  try {
    count = std::stod(size, &digits);
  } catch (const std::exception&) {
    digits = 0;
  }
  const std::string unit = size.substr(digits);
  const double bytes = count * (unit == "KiB"   ? 1024.0
                                : unit == "MiB" ? 1048576.0
                                : unit == "GiB" ? 1073741824.0
                                                : 0.0);
  if (digits == 0 || !(bytes >= 1048576.0 && bytes <= 1e15))
    throw UsageError("--memory is a size of at least 1MiB, such as 512MiB or 4GiB, not '" + size + "'");
  effort.memory_bytes = static_cast<std::uint64_t>(bytes);
  effort.seconds = number("budget");
  if (!(effort.seconds > 0 && effort.seconds <= 1e9)) throw UsageError("--budget is a number of seconds above 0");
  effort.precision = number("precision") / 100;
  if (!(effort.precision >= 0)) throw UsageError("--precision is a number of percent, 0 or more");
  effort.exact = has("exact");
  return effort;
}

void CommandLine::add_threads() {
  output()("threads", po::value<int>()->value_name("N"),
           "threads for parallel cases or, with one case, for its launch; results do not depend on it (default: all)");
}

void CommandLine::add_assume_opcodes() {
  model()("assume-opcodes", "treat unknown opcodes as plain ALU instructions without effect, and warn");
}

void CommandLine::add_architecture() {
  model()("sm", po::value<int>()->value_name("80|90"),
          "architecture to take from an image that holds code for several (default: the newest)");
}

void CommandLine::add_json() {
  output()("json", po::value<std::string>()->value_name("FILE|-"),
           "write the result as JSON; with - to standard output, instead of the text");
}

void CommandLine::add_cache() {
  output()("no-cache", "neither read nor write the cache")(
      "cache-folder", po::value<std::string>()->value_name("FOLDER"),
      "folder of finished predictions (default: FOREWARP_CACHE, else forewarp in the user's cache folder), kept below "
      "FOREWARP_CACHE_MIB (2048)");
}

bool CommandLine::parse(const Arguments& arguments) {
  po::options_description all;
  all.add(model_).add(output_).add(hidden_).add(help_);
  po::positional_options_description places;
  for (const auto& [name, optional] : positional_) places.add(name.c_str(), name == rest_ ? -1 : 1);

  const auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  const po::parsed_options parsed =
      po::command_line_parser(arguments).options(all).positional(places).style(style).run();
  if (std::any_of(parsed.options.begin(), parsed.options.end(), [](const auto& o) { return o.string_key == "help"; })) {
    print_help();
    return false;
  }
  po::store(parsed, values_);
  po::notify(values_);
  const std::string color = text("color");
  if (color != "auto" && color != "always" && color != "never")
    throw UsageError("--color is auto, always or never, not '" + color + "'");
  choose_colour(color == "always" ? Colour::Always : color == "never" ? Colour::Never : Colour::Auto);
  for (const auto& [name, optional] : positional_)
    if (!optional && values_.count(name) == 0) throw UsageError(name + " is missing\n  usage: forewarp " + usage_);
  return true;
}

void CommandLine::print_help() const {
  std::cout << purpose_ << "\n\nUsage: forewarp " << usage_ << "\n";
  for (const po::options_description* group : {&model_, &output_, &help_})
    if (!group->options().empty()) std::cout << "\n" << *group;
  std::cout << "\nExamples:\n";
  for (const std::string& example : examples_) std::cout << "  " << example << "\n";
}

std::string CommandLine::text(const std::string& name) const {
  if (values_.count(name) == 0) throw UsageError("--" + name + " is missing\n  usage: forewarp " + usage_);
  return values_[name].as<std::string>();
}

double CommandLine::number(const std::string& name) const { return values_[name].as<double>(); }

std::vector<std::string> CommandLine::texts(const std::string& name) const {
  return values_.count(name) == 0 ? std::vector<std::string>{} : values_[name].as<std::vector<std::string>>();
}

std::optional<std::string> CommandLine::json() const {
  if (values_.count("json") == 0) return std::nullopt;
  return values_["json"].as<std::string>();
}

GpuModel CommandLine::gpu() const { return load_gpu_model(text("gpu"), changes()); }

void give_seconds(SimulateOptions& options, double seconds) {
  const double share = seconds / Effort{}.seconds;
  options.effort.seconds = seconds;
  options.detailed_instructions =
      static_cast<std::uint64_t>(std::ceil(static_cast<double>(SimulateOptions{}.detailed_instructions) * share));
}

SimulateOptions CommandLine::simulation() const {
  SimulateOptions options;
  const std::string cache = text("cache");
  const auto* known = std::find(std::begin(kCacheStateNames), std::end(kCacheStateNames), cache);
  if (known == std::end(kCacheStateNames)) throw UsageError("--cache is cold, warm or sequence, not '" + cache + "'");
  options.caches = static_cast<CacheState>(known - std::begin(kCacheStateNames));
  options.full = has("full");
  options.effort = effort();
  give_seconds(options, options.effort.seconds);
  return options;
}

int CommandLine::architecture() const {
  if (!has("sm")) return 0;
  const int sm = whole_number("sm");
  if (sm != 80 && sm != 90) throw UsageError("--sm is 80 or 90, not " + std::to_string(sm));
  return sm;
}

std::optional<PredictionCache> CommandLine::cache() const {
  if (has("no-cache")) return std::nullopt;
  if (has("cache-folder")) return PredictionCache(text("cache-folder"));
  const std::optional<std::string> folder = default_cache_folder();
  return folder ? std::optional<PredictionCache>(*folder) : std::nullopt;
}

unsigned CommandLine::threads() const {
  if (values_.count("threads") == 0) return std::max(1u, std::thread::hardware_concurrency());
  const int threads = values_["threads"].as<int>();
  if (threads < 1 || threads > 1024) throw UsageError("--threads is 1 to 1024, not " + std::to_string(threads));
  return static_cast<unsigned>(threads);
}

}  // namespace forewarp::cli
