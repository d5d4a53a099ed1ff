// forewarp list: the kernels of an image, what a launch of them takes, and a launch file to fill in.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "emulation/emulation.h"
#include "program/program.h"
#include "program/traits.h"
#include "report/table.h"

namespace forewarp::cli {

namespace {

using report::Table;
using Json = nlohmann::ordered_json;

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// What a prediction of the kernel would say of its instructions.
struct Support {
  bool understood = true;
  std::vector<std::string> unknown;  ///< forms that the tables do not list; they stop a warp, too
  std::set<std::string> refused;     ///< stop a warp that reaches them
  std::set<std::string> uncomputed;  ///< forms whose values are not computed, though an address or a branch needs them
  std::set<std::string> untimed;     ///< take an issue slot alone

  std::string text() const {
    std::set<std::string> stops = refused;
    stops.insert(uncomputed.begin(), uncomputed.end());
    if (!understood) stops.insert("instructions that are not understood");
    if (!stops.empty()) return "unless it reaches " + joined(stops);
    return untimed.empty() ? "yes" : "yes; not timed: " + joined(untimed);
  }
};

Support support_of(const Program& program, const Kernel& kernel) {
  Support support;
  if (const auto unknown = program.not_understood.find(kernel.name); unknown != program.not_understood.end()) {
    support.understood = false;
    std::istringstream lines(unknown->second);
    for (std::string line; std::getline(lines, line);)
      if (!line.empty()) support.unknown.push_back(line.substr(line.find_first_not_of(' ')));
  }
  for (const Instruction& in : kernel.instructions) {
    if (in.opcode == Opcode::Unknown) continue;
    const std::string name = opcode_text(in.opcode);
    if (emulated(in.opcode) == Emulated::Refused)
      support.refused.insert(name);
    else if (traits(in.opcode).timed == Timed::No)
      support.untimed.insert(name);
  }
  for (const std::uint32_t i : stopping_instructions(kernel)) {
    const Instruction& in = kernel.instructions[i];
    if (in.understood && emulated(in.opcode) != Emulated::Refused) support.uncomputed.insert(mnemonic(in));
  }
  return support;
}

/// "8 @0, 8 @8, 4 @16": bytes and offset of each.
std::string parameters_text(const Kernel& kernel) {
  std::string text;
  for (const Parameter& p : kernel.parameters)
    text += (text.empty() ? "" : ", ") + std::to_string(p.size) + " @" + std::to_string(p.offset);
  return text.empty() ? "-" : text;
}

/// The kernels of an image as a table and as JSON. They pass one after another.
class Listing {
 public:
  explicit Listing(bool instructions) : instructions_(instructions) {}

  void add(const ImagePart& part, const Kernel& k) {
    sm_ = part.program->sm;
    cubins_ = part.cubins;
    const Support support = support_of(*part.program, k);
    Json parameters = Json::array();
    for (const Parameter& p : k.parameters) parameters.push_back({{"offset", p.offset}, {"size", p.size}});
    Json row{{"kernel", k.demangled},
             {"symbol", k.name},
             {"cubin", part.cubin + 1},
             {"instructions", k.instructions.size()},
             {"registers", k.registers},
             {"static_shared_bytes", k.static_shared_bytes},
             {"local_bytes", k.local_bytes},
             {"max_threads", k.max_threads},
             {"parameters", std::move(parameters)},
             {"understood", support.understood},
             {"refused", support.refused},
             {"not_computed", support.uncomputed},
             {"not_timed", support.untimed},
             {"not_understood", support.unknown}};
    if (!instructions_)
      for (const char* unseen :
           {"instructions", "understood", "refused", "not_computed", "not_timed", "not_understood"})
        row.erase(unseen);
    kernels_.push_back(std::move(row));
    rows_.push_back({printable(k.demangled), std::to_string(part.cubin + 1), std::to_string(k.instructions.size()),
                     std::to_string(k.registers), std::to_string(k.static_shared_bytes), std::to_string(k.local_bytes),
                     std::to_string(k.max_threads), parameters_text(k), support.text()});
  }

  std::string text(const std::string& path) const {
    std::vector<report::Table::Column> columns{{"kernel", Table::Left}};
    if (cubins_ > 1) columns.push_back({"cubin", Table::Right});
    if (instructions_) columns.push_back({"instructions", Table::Right});
    for (const char* number : {"registers", "shared", "local", "threads"}) columns.push_back({number, Table::Right});
    columns.push_back({"arguments, bytes @offset", Table::Left});
    if (instructions_) columns.push_back({"can be predicted", Table::Left});
    Table t(columns);
    for (std::vector<std::string> row : rows_) {
      if (!instructions_) row.pop_back(), row.erase(row.begin() + 2);
      if (cubins_ <= 1) row.erase(row.begin() + 1);
      t.row({row.begin(), row.end()});
    }
    return path + ": sm_" + std::to_string(sm_) + (cubins_ > 1 ? ", " + std::to_string(cubins_) + " cubins" : "") +
           ", " + std::to_string(rows_.size()) + (rows_.size() == 1 ? " kernel" : " kernels") + "\n" +
           t.text("  ", output_style());
  }

  bool empty() const { return rows_.empty(); }

  Json json(const std::string& path) const {
    return {{"forewarp", FOREWARP_VERSION}, {"image", path}, {"sm", sm_}, {"cubins", cubins_}, {"kernels", kernels_}};
  }

 private:
  bool instructions_;
  int sm_ = 0;
  std::size_t cubins_ = 1;
  Json kernels_ = Json::array();
  std::vector<std::vector<std::string>> rows_;
};

/// A launch file for the kernel: 8 bytes are taken for a pointer, 4 for an integer, anything else for a struct.
std::string template_text(const Kernel& kernel) {
  const std::string demangled = kernel.demangled;
  std::string id = demangled.substr(0, demangled.find_first_of("(<"));
  id = id.substr(id.find_last_of(" :") + 1);  // npos + 1 is 0
  std::string buffers, args;
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const Parameter& p = kernel.parameters[i];
    const std::string name = "argument_" + std::to_string(i);
    args += "    - ";
    if (p.size == 8) {
      buffers += "    " + name + ": {bytes: 1048576, fill: zero}\n";
      args += "{pointer: " + name + "}  # or i64, u64, f64";
    } else if (p.size <= 4) {
      args += "{i32: 0}" + std::string(p.size == 4 ? "  # or u32, f32" : "  # of " + std::to_string(p.size) + " bytes");
    } else {
      args += "{struct: {size: " + std::to_string(p.size) +
              ", fields: []}}  # {at: OFFSET, pointer: NAME}, {at: OFFSET, i32: 0}, ...";
    }
    args += "\n";
  }
  const Dim3& block = kernel.required_block;
  const std::string threads =
      block.count() > 0 ? std::to_string(block.x) + ", " + std::to_string(block.y) + ", " + std::to_string(block.z)
                        : std::to_string(std::min(256u, kernel.max_threads)) + ", 1, 1";
  return "# Sizes, fills and values are to be filled in; docs/launch-file.md says how.\n" + id + ":\n  kernel: \"" +
         kernel.name + "\"\n  grid: [1, 1, 1]\n  block: [" + threads + "]\n" + "  dynamic_shared_bytes: 0\n" +
         (buffers.empty() ? "  buffers: {}\n" : "  buffers:\n" + buffers) +
         (args.empty() ? "  args: []\n" : "  args:\n" + args);
}

}  // namespace

int run_list(const Arguments& arguments) {
  CommandLine c(
      "list IMAGE [--kernel NAME --launch-template] [options]",
      "Lists the kernels of an image with what a launch of them takes: registers, shared memory, arguments, and\n"
      "whether they can be predicted. Or writes a launch file for one of them, to be filled in.",
      {"forewarp list saxpy.cubin", "forewarp list saxpy.cubin --kernel saxpy --launch-template > saxpy.yaml"});
  c.positional("IMAGE");
  c.model()("kernel", boost::program_options::value<std::string>()->value_name("NAME"), "that kernel alone");
  c.output()("launch-template", "write a launch file for the kernel");
  c.model()("no-code", "do not look at instructions, which takes minutes for a library of thousands of kernels");
  c.model()("one-in", boost::program_options::value<int>()->value_name("N"),
            "look at every Nth kernel alone, for a sample of a large library");
  c.add_architecture();
  c.add_json();
  c.add_cache();
  if (!c.parse(arguments)) return kDone;
  const std::optional<PredictionCache> cache = c.cache();
  const std::string path = c.text("IMAGE");
  ImageOptions options;
  options.sm = c.architecture();
  options.texts = cache ? &*cache : nullptr;
  options.instructions = !c.has("no-code") && !c.has("launch-template");
  if (c.has("kernel")) options.kernels = {c.text("kernel")};
  if (c.has("one-in")) {
    if (c.whole_number("one-in") < 1) throw UsageError("--one-in is at least 1");
    options.one_in = static_cast<std::size_t>(c.whole_number("one-in"));
  }
  if (c.has("launch-template") || c.has("kernel")) {
    if (c.has("launch-template") && c.has("json")) throw UsageError("--launch-template writes YAML, not JSON");
    const Program program = load_program(path, options);
    if (c.has("launch-template") && !c.has("kernel") && program.kernels.size() > 1)
      throw UsageError("--launch-template needs --kernel NAME");
    const Kernel& kernel = c.has("kernel") ? program.kernel(c.text("kernel")) : program.kernels.front();
    if (c.has("launch-template")) {
      write_file("-", template_text(kernel));
      return kDone;
    }
    options.kernels = {kernel.name};
  }
  Listing listing(options.instructions);
  for_each_kernel(path, options, [&](const ImagePart& part, Kernel&& kernel) { listing.add(part, kernel); });
  if (listing.empty()) throw InputError(SourcePosition{path, 0, 0}, "there is no kernel in this image");
  if (const auto to = c.json())
    write_file(*to, listing.json(path).dump(1) + "\n");
  else
    write_file("-", listing.text(path));
  return kDone;
}

}  // namespace forewarp::cli
