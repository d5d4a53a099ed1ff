#include "base/kernel_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace forewarp {

std::string demangle(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text ? std::string(text.get()) : symbol;
}

std::string_view without_return_type(std::string_view demangled) {
  return demangled.starts_with("void ") ? demangled.substr(5) : demangled;
}

NameFit name_fit(const std::string& name, std::string_view symbol, std::string_view demangled) {
  const std::string_view bare = without_return_type(demangled);
  if (symbol == name || demangled == name || bare == name) return NameFit::Exact;
  if (name.empty()) return NameFit::None;
  if (bare.substr(0, bare.find('(')) == name) return NameFit::Name;
  return bare.starts_with(name) || demangled.starts_with(name) ? NameFit::Prefix : NameFit::None;
}

}  // namespace forewarp
