// Advice as text and as JSON.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "advise/advice.h"
#include "report/case_json.h"
#include "report/format.h"

namespace forewarp::advise {

namespace {

using Json = nlohmann::ordered_json;
using report::fixed;

std::string signed_pct(double saved) { return (saved > 0 ? "-" : saved < 0 ? "+" : "") + fixed(std::abs(saved), 1); }

std::string gain_text(const Suggestion& s) {
  std::string text = std::string(s.basis == Basis::Tried ? "" : "at most ") + signed_pct(s.gain.pct) + " %";
  if (s.gain.high_pct - s.gain.low_pct >= 0.1)
    text += " (" + signed_pct(s.gain.low_pct) + " to " + signed_pct(s.gain.high_pct) + ")";
  return text;
}

/// Words in lines of a width, all but the first indented.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width = 100) {
  std::string out;
  std::size_t column = indent;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t to = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, to - from);
    if (column > indent && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) out += " ", ++column;
    out += word;
    column += word.size();
    from = to + 1;
  }
  return out;
}

std::string basis_text(const Suggestion& s) {
  std::string text;
  if (s.mended) text = "once the faults are mended";
  if (s.basis == Basis::Counted) text += (text.empty() ? "" : ", ") + std::string("from the blocks' stays, not tried");
  return text.empty() ? "" : " (" + text + ")";
}

std::string suggestion_text(std::size_t number, const Suggestion& s, const Style& style) {
  constexpr std::size_t kIndent = 11;
  const auto line = [&](const char* label, const std::string& text) {
    return text.empty() ? "" : style.paint(Tone::Dim, report::left(label, kIndent)) + wrapped(text, kIndent) + "\n";
  };
  std::string text = report::right(std::to_string(number), 2) + "  " +
                     style.paint(Tone::Verdict, gain_text(s) + "  " + s.change) + basis_text(s) + "\n";
  text += line("    do", s.what) + line("    where", s.where);
  text +=
      line("    cycles", "to " + fixed(s.cycles, 0) + " (" + report::duration(s.time_ns) + "); " + s.evidence.counter +
                             " " + fixed(s.evidence.before, 0) + " -> " + fixed(s.evidence.after, 0) + " cycles");
  text += line("    why", s.why) + line("    cost", s.cost);
  return text;
}

std::string title(const Advice& a, const Style& style) {
  std::string text = a.case_id;
  if (a.launch > 0) text += "#" + std::to_string(a.launch);
  if (!a.kernel.empty() && a.kernel != a.case_id) text += ", " + a.kernel;
  text += " on " + a.gpu + ": " + fixed(a.cycles, 0) + " cycles (" + report::duration(a.time_ns);
  if (a.high > a.low) text += ", 95 % interval " + fixed(a.low, 0) + " to " + fixed(a.high, 0);
  return style.paint(Tone::Heading, text + ")") + "\n";
}

std::string advice_text(const Advice& a, std::size_t top, const Style& style) {
  std::string text = title(a, style);
  if (!a.verdict.empty()) {
    const std::string verdict = wrapped(a.verdict, 0);
    const std::size_t end = verdict.find(':') + 1;  // 0: there is no colon
    text += style.paint(Tone::Verdict, verdict.substr(0, end)) + verdict.substr(end) + "\n";
  }
  text += std::to_string(a.tried) + " changes tried" +
          (a.refused > 0 ? ", " + std::to_string(a.refused) + " more do not work" : "") + ".";
  if (a.suggestions.empty()) text += " None of them saves a percent.";
  text += "\n";
  for (std::size_t i = 0; i < std::min(top, a.suggestions.size()); ++i)
    text += "\n" + suggestion_text(i + 1, a.suggestions[i], style);
  for (const std::string& note : a.notes)
    text += "\n" + style.paint(Tone::Dim, "Not tried: " + wrapped(note, 0)) + "\n";
  return text;
}

Json suggestion_json(const Suggestion& s) {
  return {
      {"change", s.change},
      {"what", s.what},
      {"where", s.where},
      {"why", s.why},
      {"cost", s.cost},
      {"basis", basis_name(s.basis)},
      {"on_top_of_faults", s.mended},
      {"cycles", s.cycles},
      {"time_ns", s.time_ns},
      {"gain_pct", s.gain.pct},
      {"gain_interval_95_pct", {s.gain.low_pct, s.gain.high_pct}},
      {"evidence",
       {{"counter", s.evidence.counter}, {"cycles_before", s.evidence.before}, {"cycles_after", s.evidence.after}}}};
}

}  // namespace

std::string write_text(const std::vector<Advice>& all, std::size_t top, Style style) {
  std::string text;
  for (const Advice& a : all) text += (text.empty() ? "" : "\n") + advice_text(a, top, style);
  return text;
}

std::string write_json(const GpuModel& model, const std::vector<Advice>& all, std::size_t top) {
  Json j{{"forewarp", FOREWARP_VERSION}, {"gpu", model.name}};
  report::add_changes(model.changes, j);
  j["advice"] = Json::array();
  for (const Advice& a : all) {
    Json one{{"id", a.case_id}};
    if (a.launch >= 0) one["launch"] = a.launch;
    if (!a.kernel.empty()) one["kernel"] = a.kernel;
    one["cycles"] = a.cycles;
    one["cycles_interval_95"] = {a.low, a.high};
    one["time_ns"] = a.time_ns;
    one["tried"] = a.tried;
    one["refused"] = a.refused;
    one["suggestions"] = Json::array();
    for (std::size_t i = 0; i < std::min(top, a.suggestions.size()); ++i)
      one["suggestions"].push_back(suggestion_json(a.suggestions[i]));
    one["notes"] = a.notes;
    j["advice"].push_back(std::move(one));
  }
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace forewarp::advise
