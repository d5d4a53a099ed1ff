// Names of kernels: as they stand in a symbol table, as people read them, and as a launch file may write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace forewarp {

/// A C++ symbol as a person would write it; other symbols as they are.
std::string demangle(const std::string& symbol);

/// A demangled name without the "void " that templates carry in front.
std::string_view without_return_type(std::string_view demangled);

/// How well a name fits a kernel; the best fit counts.
enum class NameFit : std::uint8_t {
  None,
  Prefix,  ///< the demangled name begins so
  Name,    ///< all in front of the arguments
  Exact
};
NameFit name_fit(const std::string& name, std::string_view symbol, std::string_view demangled);

}  // namespace forewarp
