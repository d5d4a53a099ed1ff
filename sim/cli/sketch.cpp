// forewarp sketch: a kernel that is not written yet, lowered to machine code and predicted like any other.
#include "sketch/sketch.h"

#include <algorithm>

#include "base/file.h"
#include "cli/command_line.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/workers.h"
#include "report/json.h"
#include "report/text.h"

namespace forewarp::cli {

namespace {

CommandLine make_command_line() {
  CommandLine c(
      "sketch FILE --gpu NAME|FILE [options]",
      "Predicts kernels that are not written yet. FILE describes them by family, shape and design (docs/sketch.md);\n"
      "they are lowered to the machine code that the compiler would make of such a kernel, and what was assumed is\n"
      "listed. Where no budget is given, products (matmul) of more than three waves of blocks take --budget 0.8, and\n"
      "the usual one where the interval of their cycles is wider than +-10 % then.",
      {"forewarp sketch docs/examples/fusion.yaml --gpu h200-sxm",
       "forewarp sketch docs/examples/products.yaml --gpu h200-sxm --case two_stages --json two.json"});
  namespace po = boost::program_options;
  c.add_gpu();
  c.model()("case", po::value<std::vector<std::string>>()->value_name("ID"),
            "only this sketch of the file; may be repeated");
  c.add_simulation();
  c.add_record();
  c.add_json();
  c.output()("code", "print the machine code instead of predicting");
  c.add_threads();
  c.add_cache();
  c.positional("FILE");
  return c;
}

std::string code_text(const Program& program) {
  std::string text;
  for (const Kernel& k : program.kernels) {
    text += k.demangled + ": " + std::to_string(k.instructions.size()) + " instructions, " +
            std::to_string(k.registers) + " registers, " + std::to_string(k.static_shared_bytes) +
            " bytes of shared memory\n";
    text += "  place  stall  write  read    waits\n";
    for (std::size_t i = 0; i < k.instructions.size(); ++i) {
      const Control& c = k.instructions[i].control;
      std::string waits;
      for (int s = 5; s >= 0; --s) waits += (c.wait_mask >> s & 1) != 0 ? static_cast<char>('0' + s) : '.';
      char head[64];
      std::snprintf(head, sizeof head, "  %5zx  %4d%c  %5s  %4s   %s  ", i * 16, c.stall, c.yield ? ' ' : 'Y',
                    c.write_barrier < 6 ? std::to_string(c.write_barrier).c_str() : "-",
                    c.read_barrier < 6 ? std::to_string(c.read_barrier).c_str() : "-", waits.c_str());
      text += head + k.text[i] + "\n";
    }
    text += "\n";
  }
  return text;
}

/// What is enough for launches of many waves, of blocks or of tiles that blocks take in turn; of fewer the tail
/// decides, which is not like the rest.
double seconds_of(const GpuModel& model, const Workload& workload, const sketch::Sketches& sketches,
                  std::size_t index) {
  constexpr double kManyWaves = 3;
  const Case& item = workload.launches->cases[index];
  const bool many = std::all_of(item.launches.begin(), item.launches.end(), [&](const Launch& l) {
    const double blocks = static_cast<double>(l.grid.count());
    const double tiles_a_block = std::max(1.0, static_cast<double>(sketches.tiles[index]) / blocks);
    return compute_occupancy(model, workload.program->kernel(l.kernel), l.grid, l.block, l.dynamic_shared_bytes).waves *
               tiles_a_block >
           kManyWaves;
  });
  return many ? sketches.seconds[index] : Effort{}.seconds;
}

/// Half of the 95 % interval of the cycles of a case, in parts of them, and up to where it is narrow enough to compare
/// designs.
constexpr double kSureEnough = 0.1;
double half_interval(const std::vector<Prediction>& predictions) {
  double low = 0, high = 0;
  for (const Prediction& p : predictions) low += p.coverage.cycles_low, high += p.coverage.cycles_high;
  return (high - low) / (high + low);
}

/// What a sketch left open, and what came of it.
std::string assumptions_text(const Workload& workload, const Case& item, const std::vector<std::string>& assumed) {
  const Style style = output_style();
  std::string text = style.paint(Tone::Heading, "Sketch " + item.id) + "\n";
  for (const Launch& l : item.launches) {
    const Kernel& k = workload.program->kernel(l.kernel);
    text += "  " + k.name + ": " + std::to_string(k.registers) + " registers, " +
            std::to_string(k.static_shared_bytes + l.dynamic_shared_bytes) + " bytes of shared memory, " +
            std::to_string(k.instructions.size()) + " instructions\n";
  }
  for (const std::string& a : assumed) text += "  " + style.paint(Tone::Dim, "assumed " + a) + "\n";
  return text + "\n";
}

}  // namespace

int run_sketch(const Arguments& arguments) {
  CommandLine c = make_command_line();
  if (!c.parse(arguments)) return kDone;
  SimulateOptions options = c.simulation();
  options.record = c.record();
  const unsigned threads = c.threads();
  const std::optional<PredictionCache> cache = c.cache();
  const auto json_path = c.json();
  if (json_path) check_writable(*json_path);

  const GpuModel model = c.gpu();
  const sketch::Sketches sketches = sketch::read_sketches(c.text("FILE"), model);
  Workload workload;
  workload.program = sketches.program;
  workload.launches = sketches.launches;
  const std::vector<const Case*> cases = choose_cases(*workload.launches, c.texts("case"));
  if (c.has("code")) {
    write_file("-", code_text(*workload.program));
    return kDone;
  }
  for (const Case* item : cases) check_case(model, workload, *item);
  const auto index_of = [&](const Case* item) {
    return static_cast<std::size_t>(item - workload.launches->cases.data());
  };
  options.threads = threads_for_each(threads, cases.size());
  std::vector<SimulateOptions> with_budget(cases.size(), options);
  if (c.is_default("budget")) {
    for (std::size_t i = 0; i < cases.size(); ++i)
      give_seconds(with_budget[i], seconds_of(model, workload, sketches, index_of(cases[i])));
  }

  const GpuModel* const models[] = {&model};
  std::vector<std::vector<Prediction>> by_case(cases.size());
  {
    Progress progress(cases.size());
    rethrow_first(run_side_by_side(cases.size(), threads, true, [&](std::size_t i) {
      progress.started(cases[i]->id);
      const auto predict = [&] {
        by_case[i] =
            std::move(predict_case(models, workload, *cases[i], with_budget[i], {}, cache ? &*cache : nullptr).front());
      };
      predict();
      // What the first seconds say decides whether more are needed (Stein's two-stage sampling).
      if (with_budget[i].effort.seconds < options.effort.seconds &&
          half_interval(by_case[i]) > std::max(kSureEnough, options.effort.precision)) {
        with_budget[i] = options;
        predict();
      }
      progress.finished();
    }));
  }
  std::string text;
  for (const Case* item : cases) text += assumptions_text(workload, *item, sketches.assumptions[index_of(item)]);
  std::vector<Prediction> predictions;
  for (auto& of_case : by_case)
    for (Prediction& p : of_case) predictions.push_back(std::move(p));
  for (const Prediction& p : predictions)
    for (const std::string& warning : p.warnings) warn(p.case_id + ": " + warning);
  std::string json;
  if (json_path) {
    ResultInputs inputs = sketch_inputs(c, model);
    double seconds = 0;
    for (const SimulateOptions& of_case : with_budget) seconds = std::max(seconds, of_case.effort.seconds);
    give_seconds(inputs.options, seconds);
    json = write_json(model, predictions, &inputs);
  }
  write_results(text + write_text(predictions, output_style()), json_path, json);
  return kDone;
}

}  // namespace forewarp::cli
