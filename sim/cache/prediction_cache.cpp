#include "cache/prediction_cache.h"

#include <filesystem>

#include "base/error.h"
#include "cache/timing_codec.h"
#include "trace/trace_file.h"
#include "trace/wire.h"

namespace forewarp {
namespace {

constexpr const char* kTraceKind = "trace";
constexpr const char* kWarningKind = "notes";
constexpr const char* kTimingKind = "timing";
constexpr const char* kDisassembly = "sass";

}  // namespace

std::optional<PredictionCache::Traced> PredictionCache::trace(const ContentKey& key) const {
  // Written last, so that it is there only if the trace is.
  const auto notes = store_.get(key, kWarningKind);
  if (!notes) return std::nullopt;
  try {
    Traced found;
    wire::Decoder decoder(*notes);
    for (std::size_t n = decoder.count(); n > 0; --n) found.warnings.push_back(decoder.text());
    std::vector<KernelTrace> traces = read_traces(store_.place(key, kTraceKind));
    if (traces.size() != 1 || traces.front().kernel == nullptr) return std::nullopt;
    found.trace = std::make_shared<KernelTrace>(std::move(traces.front()));
    store_.used(key, kTraceKind);
    return found;
  } catch (const InputError&) {  // absent or damaged: trace and store it again
    return std::nullopt;
  } catch (const wire::Malformed&) {
    return std::nullopt;
  }
}

void PredictionCache::keep(const ContentKey& key, const Traced& traced) const {
  try {
    TraceWriter writer(store_.place(key, kTraceKind));
    writer.begin_launch(*traced.trace);
    for (const BlockClass& c : traced.trace->classes) writer.add_class(*traced.trace, c);
    writer.finish();
  } catch (const InputError&) {
    return;
  }
  wire::Encoder encoder;
  encoder.count(traced.warnings.size());
  for (const std::string& warning : traced.warnings) encoder.text(warning);
  store_.put(key, kWarningKind, encoder.bytes);
  store_.kept();
}

std::optional<TimingResult> PredictionCache::timing(const ContentKey& key) const {
  const auto bytes = store_.get(key, kTimingKind);
  return bytes ? decode_timing(*bytes) : std::nullopt;
}

void PredictionCache::keep(const ContentKey& key, const TimingResult& result) const {
  store_.put(key, kTimingKind, encode_timing(result));
  store_.kept();
}

std::optional<std::string> PredictionCache::get(std::uint64_t high, std::uint64_t low) const {
  const auto bytes = store_.get({{high, low}}, kDisassembly);
  if (!bytes) return std::nullopt;
  return std::string(bytes->begin(), bytes->end());
}

void PredictionCache::put(std::uint64_t high, std::uint64_t low, const std::string& text) const {
  store_.put({{high, low}}, kDisassembly, {text.begin(), text.end()});
  store_.kept();
}

}  // namespace forewarp
