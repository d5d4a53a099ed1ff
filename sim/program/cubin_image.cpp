#include "program/cubin_image.h"

#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <type_traits>
#include <unordered_map>

#include "base/error.h"
#include "base/kernel_name.h"
#include "program/line_table.h"

namespace forewarp {
namespace {

constexpr int kMachineCuda = 190;                   // EM_CUDA
constexpr std::uint8_t kEntrySymbol = 0x10;         // st_other of a kernel's entry (STO_CUDA_ENTRY)
constexpr std::uint32_t kReservedShared90 = 0x400;  // sm_90: the driver's first KiB of shared memory (sass.md 2.2)
constexpr std::uint64_t kMostModuleData = std::uint64_t{256} << 20;

/// Relocations: nvlink's names, counted from R_CUDA_NONE. The second number is the bit where the field begins.
enum Relocation : std::uint32_t {
  kAddress64 = 2,        // R_CUDA_64
  kLow32 = 56,           // R_CUDA_ABS32_LO_32
  kHigh32 = 57,          // R_CUDA_ABS32_HI_32
  kFunctionLow32 = 62,   // R_CUDA_FUNC_DESC32_LO_32
  kFunctionHigh32 = 63,  // R_CUDA_FUNC_DESC32_HI_32
  kCall = 75,            // R_CUDA_ABS55_16_34
  kUnifiedLow32 = 112,   // R_CUDA_UNIFIED32_LO_32
  kUnifiedHigh32 = 113,  // R_CUDA_UNIFIED32_HI_32
  kWideCall = 114,       // R_CUDA_ABS56_16_34
};
bool is_low(std::uint32_t type) { return type == kLow32 || type == kFunctionLow32 || type == kUnifiedLow32; }
bool is_high(std::uint32_t type) { return type == kHigh32 || type == kFunctionHigh32 || type == kUnifiedHigh32; }
bool is_call(std::uint32_t type) { return type == kCall || type == kWideCall; }

// Attributes of .nv.info and .nv.info.K (sass.md 1.6; 0x05, 0x10, 0x11, 0x12, 0x34 and 0x4c read off compiler output
// for kernels with known launch bounds, frames, jump tables, barriers and clusters).
enum Attribute : std::uint8_t {
  kMaxThreads = 0x05,
  kParameterBank = 0x0a,
  kRequiredThreads = 0x10,
  kFrameSize = 0x11,
  kMinimumStack = 0x12,
  kParameterInfo = 0x17,
  kParameterBytes = 0x19,
  kRegisterCount = 0x2f,
  kIndirectTargets = 0x34,
  kClusterExtent = 0x3d,
  kBarrierCount = 0x4c,
};

struct AttributeRecord {
  std::uint8_t attribute = 0;
  std::uint16_t value = 0;  ///< where the value is in the record's head
  const std::uint8_t* payload = nullptr;
  std::uint32_t size = 0;

  std::uint32_t word(std::uint32_t index) const {
    std::uint32_t result = 0;
    if ((index + 1) * 4 <= size) std::memcpy(&result, payload + index * 4, 4);
    return result;
  }
};

struct Section {
  std::string_view name;
  Elf64_Shdr header{};
  std::span<const std::uint8_t> bytes;  ///< empty for sections without content in the file
};

struct Relocated {
  std::uint64_t offset = 0;
  std::uint32_t type = 0;
  std::uint64_t symbol = 0;
  std::uint64_t addend = 0;
};

/// Of .nv.info, by the symbol they are about.
struct ModuleAttributes {
  std::uint32_t registers = 0, local_bytes = 0;
};

}  // namespace

class CubinImage::Reader {
 public:
  Reader(const std::string& path, std::span<const std::uint8_t> bytes) : path_(path), bytes_(bytes) {
    open();
    read_sections();
    read_symbols();
    read_module_attributes();
  }

  int sm() const { return sm_; }
  bool linked() const { return linked_; }
  const std::vector<std::string_view>& kernels() const { return kernels_; }

  std::vector<std::pair<std::string, std::uint32_t>> code_sections() const {
    std::vector<std::pair<std::string, std::uint32_t>> result;
    for (const Section& section : sections_)
      if (is_code(section)) result.emplace_back(section.name.substr(kCodePrefix.size()), instructions(section));
    return result;
  }

  /// Variables get their places one section after another; their addresses stand where relocations say, in constant
  /// bank 4 and in the variables themselves.
  void place_data(Program& program) {
    std::vector<std::uint8_t>& data = program.module_data;
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const Section& section = sections_[i];
      if (section.name != ".nv.global.init" && section.name != ".nv.global") continue;
      const std::uint64_t alignment = std::clamp<std::uint64_t>(section.header.sh_addralign, 16, 4096);
      const std::uint64_t at = (data.size() + alignment - 1) / alignment * alignment;
      if (section.header.sh_size > kMostModuleData || at > kMostModuleData - section.header.sh_size)
        fail("its __device__ variables take " + std::to_string(section.header.sh_size) + " bytes, more than " +
                 std::to_string(kMostModuleData),
             "pass large arrays as buffers");
      places_[i] = at;
      data.resize(at + section.header.sh_size);
      std::copy(section.bytes.begin(), section.bytes.end(), data.begin() + static_cast<std::ptrdiff_t>(at));
    }
    for (const auto& [section, at] : places_)
      fill_in(section, std::span(data).subspan(at, sections_[section].header.sh_size), program);
  }

  LinkedKernel link(std::size_t which, Program& program) const {
    LinkedKernel result;
    result.kernel.name = kernels_[which];
    result.kernel.demangled = demangle(result.kernel.name);
    std::map<std::size_t, std::uint32_t> firsts;  // code section -> first instruction
    append(entries_[which], result, firsts);
    for (std::size_t i = 0; i < result.pieces.size(); ++i) append_callees(i, result, firsts);
    for (const LinkedKernel::Piece& piece : result.pieces) fill_in_code(piece, firsts, result, program);
    for (const auto& [section, first] : firsts) {
      for (const CodeSymbol& symbol : functions_of(section)) {
        if (symbol.offset / sizeof(CodeWord) < instructions(sections_[section]))
          result.kernel.functions.push_back(
              {std::string(symbol.name), first + symbol.offset / static_cast<std::uint32_t>(sizeof(CodeWord)), 0});
      }
    }
    count_functions(result);
    read_kernel_sections(entries_[which], result, firsts, program);
    read_lines(result, firsts);
    return result;
  }

 private:
  struct CodeSymbol {
    std::string_view name;
    std::uint32_t offset = 0;  ///< bytes into the section
  };
  static constexpr std::string_view kCodePrefix = ".text.";

  [[noreturn]] void fail(const std::string& what, const std::string& remedy = {}) const {
    throw InputError(SourcePosition{path_, 0, 0}, what, remedy);
  }
  [[noreturn]] void fail_cut() const { fail("the cubin is cut short", "write it again with nvcc -cubin"); }

  template <class T>
  T read_at(std::uint64_t at) const {
    T value;
    if (at > bytes_.size() || bytes_.size() - at < sizeof value) fail_cut();
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }

  void open() {
    if (bytes_.size() < 16 || std::memcmp(bytes_.data(), ELFMAG, SELFMAG) != 0) {
      fail("this is not a cubin: it does not begin as an ELF file", "make one with nvcc -cubin -arch=sm_80 (or sm_90)");
    }
    header_ = read_at<Elf64_Ehdr>(0);
    if (header_.e_machine != kMachineCuda || header_.e_ident[EI_CLASS] != ELFCLASS64) {
      fail("this ELF file holds no 64-bit CUDA code", "make a cubin with nvcc -cubin -arch=sm_80 (or sm_90)");
    }
    // Where the architecture stands changed with ABI version 8.
    sm_ = header_.e_ident[EI_ABIVERSION] >= 8 ? static_cast<int>(header_.e_flags >> 8 & 0xff)
                                              : static_cast<int>(header_.e_flags & 0xff);
    if (sm_ != 80 && sm_ != 90) {
      fail("this cubin is for sm_" + std::to_string(sm_) + "; sm_80 and sm_90 are understood",
           "compile with nvcc -cubin -arch=sm_80 or -arch=sm_90");
    }
    linked_ = header_.e_type != ET_REL;
  }

  void read_sections() {
    if (header_.e_shoff == 0 || header_.e_shentsize != sizeof(Elf64_Shdr)) fail_cut();
    // Above 65,279 sections the number of them, and the place of their names, stand in the first.
    const auto first = read_at<Elf64_Shdr>(header_.e_shoff);
    const std::uint64_t count = header_.e_shnum != 0 ? header_.e_shnum : first.sh_size;
    const std::uint64_t names_at = header_.e_shstrndx != SHN_XINDEX ? header_.e_shstrndx : first.sh_link;
    if (count > (bytes_.size() - header_.e_shoff) / sizeof(Elf64_Shdr) || names_at >= count) fail_cut();
    sections_.resize(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      Section& section = sections_[i];
      section.header = read_at<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr));
      if (i == 0 || section.header.sh_type == SHT_NULL || !has_content(section)) continue;
      if (section.header.sh_offset > bytes_.size() || section.header.sh_size > bytes_.size() - section.header.sh_offset)
        fail_cut();
      section.bytes = bytes_.subspan(section.header.sh_offset, section.header.sh_size);
    }
    by_name_.reserve(count);
    for (std::uint64_t i = 1; i < count; ++i) {
      sections_[i].name = text_at(sections_[names_at], sections_[i].header.sh_name);
      by_name_.emplace(sections_[i].name, i);
      const std::uint32_t type = sections_[i].header.sh_type;
      if (type == SHT_REL || type == SHT_RELA) relocations_of_[sections_[i].header.sh_info].push_back(i);
    }
  }

  /// The zero-terminated text at this place of a string table.
  std::string_view text_at(const Section& table, std::uint64_t at) const {
    if (at >= table.bytes.size()) fail_cut();
    const auto* begin = reinterpret_cast<const char*>(table.bytes.data()) + at;
    const std::size_t length = strnlen(begin, table.bytes.size() - at);
    if (length == table.bytes.size() - at) fail_cut();
    return {begin, length};
  }

  /// Objects of separate compilation have types of their own for variables without initial values.
  static bool has_content(const Section& section) {
    constexpr std::uint32_t kGlobal = 0x70000007, kLocal = 0x70000009, kShared = 0x7000000a;
    const std::uint32_t type = section.header.sh_type;
    return type != SHT_NOBITS && type != kGlobal && type != kLocal && type != kShared;
  }
  static bool is_code(const Section& section) { return section.name.starts_with(kCodePrefix); }
  std::uint32_t instructions(const Section& section) const {
    if (!has_content(section) || section.bytes.size() % sizeof(CodeWord) != 0 || section.bytes.size() > ~0u)
      fail("section " + std::string(section.name) + " is no sequence of 16-byte instructions",
           "write the cubin again with nvcc -cubin");
    return static_cast<std::uint32_t>(section.bytes.size() / sizeof(CodeWord));
  }

  std::uint64_t symbol_count() const { return symbols_ == nullptr ? 0 : symbols_->bytes.size() / sizeof(Elf64_Sym); }
  Elf64_Sym symbol(std::uint64_t index) const {
    Elf64_Sym entry;
    std::memcpy(&entry, symbols_->bytes.data() + index * sizeof entry, sizeof entry);
    return entry;
  }
  std::string_view symbol_name(const Elf64_Sym& entry) const {
    if (symbols_->header.sh_link >= sections_.size()) fail_cut();
    return text_at(sections_[symbols_->header.sh_link], entry.st_name);
  }
  /// The section that a symbol lies in; SHN_UNDEF and the like as they are.
  std::uint64_t section_of(std::uint64_t index, const Elf64_Sym& entry) const {
    if (entry.st_shndx != SHN_XINDEX || indices_ == nullptr) return entry.st_shndx;
    std::uint32_t section = 0;
    if ((index + 1) * 4 <= indices_->bytes.size()) std::memcpy(&section, indices_->bytes.data() + index * 4, 4);
    return section;
  }

  void read_symbols() {
    for (const Section& section : sections_) {
      if (section.header.sh_type == SHT_SYMTAB && symbols_ == nullptr) symbols_ = &section;
      if (section.header.sh_type == SHT_SYMTAB_SHNDX && indices_ == nullptr) indices_ = &section;
    }
    std::vector<std::pair<std::size_t, std::string_view>> entries;
    for (std::uint64_t i = 0; i < symbol_count(); ++i) {
      const Elf64_Sym entry = symbol(i);
      if (ELF64_ST_TYPE(entry.st_info) != STT_FUNC) continue;
      const std::uint64_t at = section_of(i, entry);
      if (at >= sections_.size() || !is_code(sections_[at])) continue;
      const std::string_view name = symbol_name(entry);
      functions_[at].push_back({name, static_cast<std::uint32_t>(entry.st_value)});
      if (sections_[at].name.substr(kCodePrefix.size()) != name || (entry.st_other & kEntrySymbol) == 0) continue;
      entries.emplace_back(at, name);
      symbol_of_entry_[at] = static_cast<std::uint32_t>(i);
    }
    std::sort(entries.begin(), entries.end());
    for (const auto& [section, name] : entries) {
      entries_.push_back(section);
      kernels_.push_back(name);
    }
    for (auto& [section, functions] : functions_)
      std::stable_sort(functions.begin(), functions.end(),
                       [](const CodeSymbol& a, const CodeSymbol& b) { return a.offset < b.offset; });
  }

  /// Each record: format, attribute, then a value or the size of what follows.
  std::vector<AttributeRecord> attributes(const Section& section) const {
    std::vector<AttributeRecord> records;
    std::uint64_t at = 0;
    while (at + 4 <= section.bytes.size()) {
      AttributeRecord record;
      const std::uint8_t format = section.bytes[at];
      record.attribute = section.bytes[at + 1];
      std::memcpy(&record.value, section.bytes.data() + at + 2, 2);
      at += 4;
      if (format == 4) {
        record.size = record.value;
        if (record.size > section.bytes.size() - at)
          fail("the attributes in " + std::string(section.name) + " are cut short");
        record.payload = section.bytes.data() + at;
        at += record.size;
      }
      records.push_back(record);
    }
    return records;
  }

  const Section* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &sections_[found->second];
  }
  std::size_t index_of(const Section& section) const { return static_cast<std::size_t>(&section - sections_.data()); }

  void read_module_attributes() {
    const Section* section = find(".nv.info");
    if (section == nullptr) return;
    for (const AttributeRecord& record : attributes(*section)) {
      ModuleAttributes& of = module_attributes_[record.word(0)];
      if (record.attribute == kRegisterCount) of.registers = record.word(1);
      if (record.attribute == kFrameSize || record.attribute == kMinimumStack)
        of.local_bytes = std::max(of.local_bytes, record.word(1));
    }
  }

  const std::vector<CodeSymbol>& functions_of(std::size_t section) const {
    static const std::vector<CodeSymbol> kNone;
    const auto found = functions_.find(section);
    return found == functions_.end() ? kNone : found->second;
  }

  // --- linking ---

  void append(std::size_t section, LinkedKernel& result, std::map<std::size_t, std::uint32_t>& firsts) const {
    const std::uint32_t count = instructions(sections_[section]);
    std::size_t first = result.code.size();
    if (first + count > ~0u / sizeof(CodeWord)) fail("a kernel's code is larger than 4 GiB");
    result.code.resize(first + count);
    if (count > 0) std::memcpy(&result.code[first], sections_[section].bytes.data(), sections_[section].bytes.size());
    firsts[section] = static_cast<std::uint32_t>(first);
    result.pieces.push_back(
        {std::string(sections_[section].name.substr(kCodePrefix.size())), static_cast<std::uint32_t>(first), count});
  }

  /// Every function that the code of a piece names, by a call or to take its address.
  void append_callees(std::size_t piece, LinkedKernel& result, std::map<std::size_t, std::uint32_t>& firsts) const {
    const Section* code = find(std::string(kCodePrefix) + result.pieces[piece].section);
    for (const Relocated& r : relocations(index_of(*code))) {
      const std::uint64_t target = section_of(r.symbol, symbol(r.symbol));
      if (target >= sections_.size() || !is_code(sections_[target]) || firsts.contains(target)) continue;
      append(target, result, firsts);
    }
  }

  std::vector<Relocated> relocations(std::size_t section) const {
    std::vector<Relocated> result;
    const auto tables = relocations_of_.find(section);
    if (tables == relocations_of_.end()) return result;
    for (const std::size_t table : tables->second) {
      if (sections_[table].header.sh_type == SHT_RELA)
        read_relocations<Elf64_Rela>(sections_[table], sections_[section], result);
      else
        read_relocations<Elf64_Rel>(sections_[table], sections_[section], result);
    }
    return result;
  }

  template <class Entry>
  void read_relocations(const Section& table, const Section& target, std::vector<Relocated>& result) const {
    for (std::uint64_t at = 0; at + sizeof(Entry) <= table.bytes.size(); at += sizeof(Entry)) {
      Entry entry;
      std::memcpy(&entry, table.bytes.data() + at, sizeof entry);
      Relocated r{entry.r_offset, static_cast<std::uint32_t>(ELF64_R_TYPE(entry.r_info)), ELF64_R_SYM(entry.r_info), 0};
      if (r.symbol >= symbol_count()) continue;
      if constexpr (std::is_same_v<Entry, Elf64_Rela>) {
        r.addend = static_cast<std::uint64_t>(entry.r_addend);
      } else if (r.type == kAddress64 && r.offset <= target.bytes.size() && target.bytes.size() - r.offset >= 8) {
        std::memcpy(&r.addend, target.bytes.data() + r.offset, 8);
      }
      result.push_back(r);
    }
  }

  static std::uint64_t outside_address(std::string_view name, Program& program) {
    const auto found = std::find(program.outside.begin(), program.outside.end(), name);
    const auto which = static_cast<std::uint64_t>(found - program.outside.begin());
    if (found == program.outside.end()) program.outside.emplace_back(name);
    return kOutsideAddress + which * 16;
  }

  /// What a relocation asks for, of data and of functions that are not in the cubin.
  bool address_of(const Relocated& r, Program& program, std::uint64_t& value) const {
    const Elf64_Sym entry = symbol(r.symbol);
    const std::uint64_t section = section_of(r.symbol, entry);
    if (section == SHN_UNDEF && entry.st_name != 0) {
      value = outside_address(symbol_name(entry), program);
      return true;
    }
    const auto place = places_.find(section);
    if (place == places_.end()) return false;
    value = kModuleDataAddress + place->second + entry.st_value + r.addend;
    return true;
  }

  /// Addresses in a section of data.
  void fill_in(std::size_t section, std::span<std::uint8_t> bytes, Program& program) const {
    for (const Relocated& r : relocations(section)) {
      std::uint64_t value = 0;
      if (r.type != kAddress64 || r.offset > bytes.size() || bytes.size() - r.offset < 8) continue;
      if (address_of(r, program, value)) std::memcpy(bytes.data() + r.offset, &value, 8);
    }
  }

  /// Addresses in code: of functions, counted from the kernel's first instruction, and of variables.
  void fill_in_code(const LinkedKernel::Piece& piece, const std::map<std::size_t, std::uint32_t>& firsts,
                    LinkedKernel& result, Program& program) const {
    const Section* code = find(std::string(kCodePrefix) + piece.section);
    for (const Relocated& r : relocations(index_of(*code))) {
      if (r.offset / sizeof(CodeWord) >= piece.count) continue;
      const std::size_t at = piece.first + r.offset / sizeof(CodeWord);
      const Elf64_Sym entry = symbol(r.symbol);
      const auto function = firsts.find(section_of(r.symbol, entry));
      std::uint64_t value = 0;
      const bool inside = function != firsts.end();
      if (inside)
        value = std::uint64_t{function->second} * sizeof(CodeWord) + entry.st_value + r.addend;
      else if (!address_of(r, program, value))
        continue;
      if (is_call(r.type))
        result.calls.emplace_back(static_cast<std::uint32_t>(at * sizeof(CodeWord)),
                                  inside ? static_cast<std::uint32_t>(value) : LinkedKernel::kOutsideTarget);
      if (!is_low(r.type) && !is_high(r.type)) continue;
      const std::uint64_t half = is_low(r.type) ? value & ~0u : value >> 32;
      result.code[at].low = (result.code[at].low & ~0u) | half << 32;
    }
    std::sort(result.calls.begin(), result.calls.end());
  }

  static void count_functions(LinkedKernel& result) {
    std::vector<Function>& functions = result.kernel.functions;
    std::stable_sort(functions.begin(), functions.end(),
                     [](const Function& a, const Function& b) { return a.first < b.first; });
    // Several names of one place are one function.
    functions.erase(std::unique(functions.begin(), functions.end(),
                                [](const Function& a, const Function& b) { return a.first == b.first; }),
                    functions.end());
    for (Function& function : functions) {  // a section has the name of its function
      for (const LinkedKernel::Piece& piece : result.pieces)
        if (piece.first == function.first) function.name = piece.section;
    }
    for (std::size_t i = 0; i < functions.size(); ++i) {
      const auto end =
          i + 1 < functions.size() ? functions[i + 1].first : static_cast<std::uint32_t>(result.code.size());
      functions[i].count = end - functions[i].first;
    }
  }

  void read_kernel_sections(std::size_t entry, LinkedKernel& result, const std::map<std::size_t, std::uint32_t>& firsts,
                            Program& program) const {
    Kernel& kernel = result.kernel;
    const auto module = module_attributes_.find(symbol_of_entry_.at(entry));
    if (module != module_attributes_.end()) {
      kernel.registers = static_cast<int>(module->second.registers);
      kernel.local_bytes = module->second.local_bytes;
    }
    for (const auto& [section, first] : firsts) {
      const Section* info = find(".nv.info." + std::string(sections_[section].name.substr(kCodePrefix.size())));
      if (info == nullptr) continue;
      for (const AttributeRecord& record : attributes(*info)) {
        if (record.attribute == kIndirectTargets)
          read_indirect_targets(record, first * static_cast<std::uint32_t>(sizeof(CodeWord)), result);
        else if (section == entry)
          apply_attribute(record, kernel);
      }
    }
    std::sort(kernel.parameters.begin(), kernel.parameters.end(),
              [](const Parameter& a, const Parameter& b) { return a.offset < b.offset; });

    kernel.shared_base = sm_ >= 90 ? kReservedShared90 : 0;
    if (const Section* shared = find(".nv.shared." + kernel.name)) {
      const auto size = static_cast<std::uint32_t>(shared->header.sh_size);
      kernel.static_shared_bytes = size > kernel.shared_base ? size - kernel.shared_base : 0;
    }
    for (int bank = 1; bank < 18; ++bank) {
      const std::string name = ".nv.constant" + std::to_string(bank);
      const Section* constant = find(name + "." + kernel.name);
      if (constant == nullptr) constant = find(name);
      if (constant == nullptr || !has_content(*constant)) continue;
      ConstantBank contents{bank, {constant->bytes.begin(), constant->bytes.end()}};
      fill_in(index_of(*constant), contents.bytes, program);
      kernel.constants.push_back(std::move(contents));
    }
  }

  static void apply_attribute(const AttributeRecord& record, Kernel& kernel) {
    switch (record.attribute) {
      case kParameterBank:
        kernel.parameter_base = record.word(1) & 0xffff;
        break;
      case kParameterBytes:
        kernel.parameter_bytes = record.value;
        break;
      case kParameterInfo:  // index, ordinal and offset, flags with the size in bits 18..31
        kernel.parameters.push_back({record.word(1) >> 16, record.word(2) >> 18});
        break;
      case kMaxThreads:
        kernel.max_threads = record.word(0) * record.word(1) * record.word(2);
        break;
      case kRequiredThreads:
        kernel.required_block = {record.word(0), record.word(1), record.word(2)};
        kernel.max_threads = record.word(0) * record.word(1) * record.word(2);
        break;
      case kClusterExtent:
        kernel.cluster = {record.word(0), record.word(1), record.word(2)};
        break;
      case kBarrierCount:
        kernel.barrier_count = record.value & 0xff;
        break;
      default:
        break;
    }
  }

  /// Groups of: branch offset, 0, number of targets, target offsets. `base`: of the section in the linked code.
  static void read_indirect_targets(const AttributeRecord& record, std::uint32_t base, LinkedKernel& result) {
    const std::uint32_t words = record.size / 4;
    for (std::uint32_t i = 0; i + 3 <= words;) {
      const std::uint32_t branch = record.word(i);
      const std::uint32_t count = record.word(i + 2);
      i += 3;
      if (count > words - i) return;
      std::vector<std::uint32_t> targets;
      for (std::uint32_t k = 0; k < count; ++k) targets.push_back(base + record.word(i + k));
      result.indirect_branches.emplace_back(base + branch, std::move(targets));
      i += count;
    }
  }

  /// Line information, where nvcc -lineinfo left it. Its relocations say which function each address belongs to.
  void read_lines(LinkedKernel& result, const std::map<std::size_t, std::uint32_t>& firsts) const {
    const Section* table = find(".debug_line");
    if (table == nullptr || table->bytes.empty()) return;
    if (!lines_read_) {
      std::map<std::uint64_t, std::size_t> targets;
      for (const Relocated& r : relocations(index_of(*table))) {
        const std::uint64_t section = section_of(r.symbol, symbol(r.symbol));
        if (section < sections_.size() && is_code(sections_[section])) targets[r.offset] = section;
      }
      lines_ = read_line_table(table->bytes, targets);
      lines_read_ = true;
    }
    std::vector<std::string>& source = result.kernel.source;
    for (std::size_t i = 0; i + 1 < lines_.size(); ++i) {
      const LineRow& row = lines_[i];
      if (row.place.empty() || row.section != lines_[i + 1].section) continue;
      const auto at = firsts.find(row.section);
      if (at == firsts.end()) continue;
      source.resize(result.code.size());
      const std::uint64_t count = instructions(sections_[row.section]);
      const std::uint64_t end = std::min<std::uint64_t>(lines_[i + 1].address / sizeof(CodeWord), count);
      for (std::uint64_t k = row.address / sizeof(CodeWord); k < end; ++k) source[at->second + k] = row.place;
    }
  }

  std::string path_;
  std::span<const std::uint8_t> bytes_;
  Elf64_Ehdr header_{};
  int sm_ = 0;
  bool linked_ = true;
  std::vector<Section> sections_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
  std::unordered_map<std::size_t, std::vector<std::size_t>> relocations_of_;  ///< tables by the section they are about
  const Section* symbols_ = nullptr;
  const Section* indices_ = nullptr;
  std::vector<std::string_view> kernels_;
  std::vector<std::size_t> entries_;                                    ///< sections of the kernels
  std::unordered_map<std::size_t, std::vector<CodeSymbol>> functions_;  ///< of each section of code, by offset
  std::unordered_map<std::size_t, std::uint32_t> symbol_of_entry_;
  std::unordered_map<std::uint32_t, ModuleAttributes> module_attributes_;  ///< by symbol
  std::map<std::size_t, std::uint64_t> places_;                            ///< of sections in Program::module_data
  mutable std::vector<LineRow> lines_;
  mutable bool lines_read_ = false;
};

CubinImage::CubinImage(const std::string& path, std::span<const std::uint8_t> bytes)
    : reader_(std::make_unique<Reader>(path, bytes)) {}
CubinImage::~CubinImage() = default;
CubinImage::CubinImage(CubinImage&&) noexcept = default;
int CubinImage::sm() const { return reader_->sm(); }
bool CubinImage::linked() const { return reader_->linked(); }
const std::vector<std::string_view>& CubinImage::kernels() const { return reader_->kernels(); }
std::vector<std::pair<std::string, std::uint32_t>> CubinImage::code_sections() const {
  return reader_->code_sections();
}
void CubinImage::place_data(Program& program) { reader_->place_data(program); }
LinkedKernel CubinImage::link(std::size_t kernel, Program& program) const { return reader_->link(kernel, program); }

}  // namespace forewarp
