// forewarp describe: what the program knows.
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "counters/metrics.h"
#include "emulation/emulation.h"
#include "hardware/gpu_model.h"
#include "hardware/peaks.h"
#include "program/traits.h"
#include "report/format.h"
#include "report/opcode_states.h"
#include "report/table.h"

namespace forewarp::cli {

namespace {

using report::fixed;
using report::si;
using report::Table;

std::string list_gpus() {
  Table t({{"GPU", Table::Left},
           {"title", Table::Left},
           {"code", Table::Left},
           {"SMs", Table::Right},
           {"MHz", Table::Right},
           {"HBM", Table::Right}});
  for (const std::string& name : gpu_model_names()) {
    const GpuModel g = load_gpu_model(name);
    t.row({name, g.title, "sm_" + std::to_string(g.sm), std::to_string(g.chip.sm_count), fixed(g.chip.sm_clock_mhz, 0),
           si(g.hbm.bytes_per_ns * 1e9, "B/s")});
  }
  return t.text("", output_style());
}

/// "transferred from h200-sxm": how a number came here; fitted and published ones say that they are.
std::string source_text(const Leaf& leaf) {
  std::string text = provenance_text(leaf.source);
  if (leaf.source != Provenance::Transferred) return text;
  text += " from " + leaf.on;
  return leaf.written == Provenance::Measured ? text : text + std::string(", ") + provenance_text(leaf.written);
}

/// "gh100.yaml:34"
std::string place_text(const SourcePosition& where) {
  const std::size_t slash = where.line > 0 ? where.file.rfind('/') : std::string::npos;
  const std::string file = slash == std::string::npos ? where.file : where.file.substr(slash + 1);
  return where.line > 0 ? file + ":" + std::to_string(where.line) : file;
}

std::string gpu_text(const std::string& name, const std::vector<std::string>& changes) {
  const GpuModel g = load_gpu_model(name, changes);
  Table t({{"", Table::Left}, {"", Table::Right}});
  const auto line = [&](const std::string& label, const std::string& value) { t.row({label, value}); };
  const auto number = [](double value) { return fixed(value, 0); };
  line("SMs", number(g.chip.sm_count) + " in " + std::to_string(g.chip.tpcs_per_gpc.size()) + " GPCs");
  line("SM clock under load", number(g.chip.sm_clock_mhz) + " MHz");
  line("Warps, blocks, registers of an SM",
       number(g.occupancy.max_warps) + ", " + number(g.occupancy.max_blocks) + ", " + number(g.occupancy.registers));
  line("L1 and shared memory of an SM", number(g.occupancy.unified_bytes / 1024.0) + " KiB, up to " +
                                            number(g.occupancy.shared_bytes / 1024.0) + " KiB of it shared");
  line("L2", number(static_cast<double>(g.l2.bytes) / 1048576.0) + " MiB in " + number(g.l2.slices) + " slices, " +
                 number(g.l2.partitions) + " partitions");
  for (const Peak& p : derived_peaks(g)) line("Peak " + p.name, si(p.per_second, p.unit));
  line("HBM channels", number(g.hbm.channels));
  line("L1 hit, L2 near hit",
       number(g.l1.hit_cycles) + ", " +
           number(g.l1.hit_cycles + g.crossbar.request_cycles + g.l2.hit_cycles + g.crossbar.response_cycles) +
           " cycles");
  line("DRAM, near and idle", fixed(dram_latency_ns(g), 0) + " ns");
  std::string sources;
  for (std::size_t i = 0; i < g.leaves.size(); ++i)
    sources += (i == 0 ? "" : ", ") + std::to_string(g.leaves[i]) + " " + provenance_text(static_cast<Provenance>(i));
  line("Where its numbers come from", sources);
  Table leaves({{"number", Table::Left},
                {"value", Table::Right},
                {"unit", Table::Left},
                {"source", Table::Left},
                {"stands in", Table::Left},
                {"reference", Table::Left}});
  for (const Leaf& leaf : describe_gpu(name, changes))
    leaves.row({leaf.path, leaf.value, leaf.unit, source_text(leaf), place_text(leaf.where), leaf.ref});
  std::string complaints;
  for (const std::string& doubt : doubts(g)) complaints += "  does not add up: " + doubt + "\n";
  return g.name + ": " + g.title + (g.family.empty() ? "" : ", of the family " + g.family) + ", runs code for sm_" +
         std::to_string(g.sm) + "\n" + t.text("  ", output_style()) + complaints + "\n" +
         leaves.text("  ", output_style());
}

std::string list_metrics() {
  Table t({{"metric", Table::Left}, {"unit", Table::Left}, {"from", Table::Left}, {"meaning", Table::Left}});
  for (const MetricDescription& m : describe_metrics())
    t.row({m.name, m.unit, m.exact ? "counted" : "timed", m.meaning});
  return t.text("", output_style()) +
         "\ncounted: follows exactly from what the warps execute; timed: from the timing model.\n";
}

const char* timed_text(Timed timed) {
  switch (timed) {
    case Timed::Own:
      return "own numbers";
    case Timed::Assumed:
      return "as its unit";
    case Timed::No:
      return "no";
  }
  return "";
}

const char* emulated_text(Emulated emulated) {
  switch (emulated) {
    case Emulated::Values:
      return "values";
    case Emulated::NoEffect:
      return "no effect";
    case Emulated::Counted:
      return "counted";
    case Emulated::Refused:
      return "refused";
  }
  return "";
}

std::string list_opcodes() {
  Table t({{"opcode", Table::Left}, {"emulated", Table::Left}, {"timed", Table::Left}, {"validated by", Table::Left}});
  std::map<std::string, Opcode> forms;
  for (std::size_t i = 1; i < static_cast<std::size_t>(Opcode::Count); ++i)
    forms.emplace(opcode_text(static_cast<Opcode>(i)), static_cast<Opcode>(i));
  const std::size_t opcodes = forms.size();
  for (const report::ValidatedForm& v : report::validated_forms()) {
    const std::string form = v.form;
    forms.emplace(form, find_opcode(form.substr(0, form.find('.'))));
  }
  for (const auto& [form, opcode] : forms) {
    const report::ValidatedForm* validated = report::find_validated(form);
    t.row({form, emulated_text(emulated(opcode)), timed_text(traits(opcode).timed),
           validated != nullptr ? std::string(validated->stem) + ": " + validated->kernel : "-"});
  }
  return t.text("", output_style()) + "\n" + std::to_string(opcodes) +
         " opcodes are read.\n"
         "emulated: values; no effect on what is emulated; counted, its values are not computed; refused, a warp that "
         "reaches it stops.\n"
         "timed: by its own numbers; as its unit's other instructions; no, an issue slot alone.\n"
         "validated by: the first kernel with a measured profile that has it; - none does.\n";
}

nlohmann::ordered_json gpu_json(const std::string& name, const std::vector<std::string>& changes) {
  const GpuModel g = load_gpu_model(name, changes);
  nlohmann::ordered_json j{{"gpu", g.name}, {"title", g.title}, {"family", g.family}, {"sm", g.sm}};
  for (const auto& [key, peaks] : {std::pair{"peaks", derived_peaks(g)}, std::pair{"roofs", arithmetic_roofs(g)}}) {
    j[key] = nlohmann::ordered_json::array();
    for (const Peak& p : peaks) j[key].push_back({{"name", p.name}, {"per_second", p.per_second}, {"unit", p.unit}});
  }
  j["numbers"] = nlohmann::ordered_json::array();
  for (const Leaf& leaf : describe_gpu(name, changes))
    j["numbers"].push_back({{"path", leaf.path},
                            {"value", leaf.value},
                            {"unit", leaf.unit},
                            {"source", provenance_text(leaf.source)},
                            {"measured_on", leaf.on},
                            {"place", place_text(leaf.where)},
                            {"reference", leaf.ref}});
  return j;
}

/// What `describe TOPIC [NAME]` says, for programs.
nlohmann::ordered_json describe_json(const std::string& topic, const std::string& name,
                                     const std::vector<std::string>& changes) {
  nlohmann::ordered_json j{{"forewarp", FOREWARP_VERSION}};
  if (topic == "gpu") {
    j["gpus"] = nlohmann::ordered_json::array();
    for (const std::string& one : name.empty() ? gpu_model_names() : std::vector{name})
      j["gpus"].push_back(gpu_json(one, changes));
  } else if (topic == "metrics") {
    j["metrics"] = nlohmann::ordered_json::array();
    for (const MetricDescription& m : describe_metrics())
      j["metrics"].push_back(
          {{"name", m.name}, {"unit", m.unit}, {"from", m.exact ? "counted" : "timed"}, {"meaning", m.meaning}});
  } else {
    j["opcodes"] = nlohmann::ordered_json::array();
    for (std::size_t i = 1; i < static_cast<std::size_t>(Opcode::Count); ++i) {
      const auto opcode = static_cast<Opcode>(i);
      j["opcodes"].push_back({{"name", opcode_text(opcode)},
                              {"emulated", emulated_text(emulated(opcode))},
                              {"timed", timed_text(traits(opcode).timed)}});
    }
  }
  return j;
}

}  // namespace

int run_describe(const Arguments& arguments) {
  CommandLine c(
      "describe gpu [NAME|FILE] [--set LEAF=VALUE] | metrics | opcodes",
      "Lists the GPUs that can be predicted and what is known about one, the metrics of a prediction, or the\n"
      "opcodes that are read.",
      {"forewarp describe gpu h200-sxm", "forewarp describe metrics", "forewarp describe metrics --json metrics.json"});
  c.positional("TOPIC");
  c.positional("NAME", true);
  c.add_set();
  c.add_json();
  if (!c.parse(arguments)) return kDone;
  const auto json_path = c.json();
  if (json_path) check_writable(*json_path);
  const std::string topic = c.text("TOPIC");
  if (topic != "gpu" && c.has("NAME")) throw UsageError("describe " + topic + " takes no name");
  if (c.has("set") && (topic != "gpu" || !c.has("NAME"))) throw UsageError("--set needs describe gpu NAME");
  if (topic != "gpu" && topic != "metrics" && topic != "opcodes")
    throw UsageError("describe knows gpu, metrics and opcodes, not '" + topic + "'");
  const std::string name = c.has("NAME") ? c.text("NAME") : "";
  const std::string text = topic == "metrics"   ? list_metrics()
                           : topic == "opcodes" ? list_opcodes()
                           : name.empty()       ? list_gpus()
                                                : gpu_text(name, c.changes());
  write_results(text, json_path, json_path ? describe_json(topic, name, c.changes()).dump(1) + "\n" : "");
  return kDone;
}

}  // namespace forewarp::cli
