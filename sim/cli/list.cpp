// forewarp list: the kernels of an image, what a launch of them takes, and a launch file to fill in.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

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

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// What a prediction of the kernel would say of its instructions.
struct Support {
  bool understood = true;
  std::set<std::string> refused;  ///< stop a warp that reaches them
  std::set<std::string> untimed;  ///< take an issue slot alone

  std::string text() const {
    if (!understood) return "no: instructions that are not understood";
    if (!refused.empty()) return "unless it reaches " + joined(refused);
    return untimed.empty() ? "yes" : "yes; not timed: " + joined(untimed);
  }
};

Support support_of(const Program& program, const Kernel& kernel) {
  Support support;
  support.understood = !program.not_understood.contains(kernel.name);
  for (const Instruction& in : kernel.instructions) {
    if (in.opcode == Opcode::Unknown) continue;
    const std::string name = opcode_text(in.opcode);
    if (emulated(in.opcode) == Emulated::Refused)
      support.refused.insert(name);
    else if (traits(in.opcode).timed == Timed::No)
      support.untimed.insert(name);
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

std::string table_text(const Program& program) {
  Table t({{"kernel", Table::Left},
           {"instructions", Table::Right},
           {"registers", Table::Right},
           {"shared", Table::Right},
           {"local", Table::Right},
           {"threads", Table::Right},
           {"arguments, bytes @offset", Table::Left},
           {"can be predicted", Table::Left}});
  for (const Kernel& k : program.kernels)
    t.row({k.demangled, std::to_string(k.instructions.size()), std::to_string(k.registers),
           std::to_string(k.static_shared_bytes), std::to_string(k.local_bytes), std::to_string(k.max_threads),
           parameters_text(k), support_of(program, k).text()});
  return program.path + ": sm_" + std::to_string(program.sm) + ", " + std::to_string(program.kernels.size()) +
         (program.kernels.size() == 1 ? " kernel" : " kernels") + "\n" + t.text("  ");
}

nlohmann::ordered_json json_of(const Program& program) {
  using Json = nlohmann::ordered_json;
  Json kernels = Json::array();
  for (const Kernel& k : program.kernels) {
    const Support support = support_of(program, k);
    Json parameters = Json::array();
    for (const Parameter& p : k.parameters) parameters.push_back({{"offset", p.offset}, {"size", p.size}});
    kernels.push_back({{"kernel", k.demangled},
                       {"symbol", k.name},
                       {"instructions", k.instructions.size()},
                       {"registers", k.registers},
                       {"static_shared_bytes", k.static_shared_bytes},
                       {"local_bytes", k.local_bytes},
                       {"max_threads", k.max_threads},
                       {"parameters", std::move(parameters)},
                       {"understood", support.understood},
                       {"refused", support.refused},
                       {"not_timed", support.untimed}});
  }
  return {{"forewarp", FOREWARP_VERSION}, {"image", program.path}, {"sm", program.sm}, {"kernels", std::move(kernels)}};
}

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
      "Lists the kernels of a cubin with what a launch of them takes: registers, shared memory, arguments, and\n"
      "whether they can be predicted. Or writes a launch file for one of them, to be filled in.",
      {"forewarp list saxpy.cubin", "forewarp list saxpy.cubin --kernel saxpy --launch-template > saxpy.yaml"});
  c.positional("IMAGE");
  c.model()("kernel", boost::program_options::value<std::string>()->value_name("NAME"), "that kernel alone");
  c.output()("launch-template", "write a launch file for the kernel");
  c.add_json();
  if (!c.parse(arguments)) return kDone;
  Program program = load_program(c.text("IMAGE"));
  if (c.has("launch-template")) {
    if (c.has("json")) throw UsageError("--launch-template writes YAML, not JSON");
    if (!c.has("kernel") && program.kernels.size() > 1) throw UsageError("--launch-template needs --kernel NAME");
    write_file("-", template_text(c.has("kernel") ? program.kernel(c.text("kernel")) : program.kernels.front()));
    return kDone;
  }
  if (c.has("kernel")) {
    const Kernel chosen = program.kernel(c.text("kernel"));
    program.kernels = {chosen};
  }
  if (const auto path = c.json())
    write_file(*path, json_of(program).dump(1) + "\n");
  else
    write_file("-", table_text(program));
  return kDone;
}

}  // namespace forewarp::cli
