#include "program/cubin_image.h"

#include <cxxabi.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <type_traits>

#include "base/error.h"
#include "program/line_table.h"

namespace forewarp {
namespace {

constexpr int kMachineCuda = 190;                   // EM_CUDA
constexpr std::uint32_t kRelocation64 = 2;          // R_CUDA_64: a symbol's 64-bit address
constexpr std::uint8_t kEntrySymbol = 0x10;         // st_other of a kernel's entry (STO_CUDA_ENTRY)
constexpr std::uint32_t kReservedShared90 = 0x400;  // sm_90: the driver's first KiB of shared memory (sass.md 2.2)

// Attributes of .nv.info and .nv.info.K (sass.md 1.6; 0x05, 0x10, 0x11, 0x12, 0x34 and 0x4c read off compiler output
// for kernels with known launch bounds, frames, jump tables and barriers).
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
  std::string name;
  GElf_Shdr header{};
  const std::uint8_t* bytes = nullptr;  ///< null for sections without content in the file
};

std::string demangle(const std::string& name) {
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                   &std::free);
  return status == 0 && text ? std::string(text.get()) : name;
}

class ImageReader {
 public:
  ImageReader(const std::string& path, const std::vector<std::uint8_t>& bytes) : path_(path), bytes_(bytes) {}

  CubinImage read() {
    open();
    read_sections();
    CubinImage image;
    image.sm = sm_;
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      if (!sections_[i].name.starts_with(".text.")) continue;
      section_of_index_[i] = image.sections.size();
      image.sections.push_back(code_section(sections_[i]));
    }
    read_symbols(image);
    read_module_attributes(image);
    read_module_data(image);
    for (CodeSection& section : image.sections) read_kernel_sections(section);
    read_lines(image);
    return image;
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& remedy = {}) const {
    throw InputError(SourcePosition{path_, 0, 0}, what, remedy);
  }
  [[noreturn]] void fail_cut() const { fail("the cubin is cut short", "write it again with nvcc -cubin"); }

  void open() {
    if (bytes_.size() < 16 || std::memcmp(bytes_.data(), ELFMAG, SELFMAG) != 0) {
      fail("this is not a cubin: it does not begin as an ELF file", "make one with nvcc -cubin -arch=sm_80 (or sm_90)");
    }
    elf_version(EV_CURRENT);
    // libelf wants a writable pointer but does not write through it when the image is only read.
    elf_.reset(elf_memory(reinterpret_cast<char*>(const_cast<std::uint8_t*>(bytes_.data())), bytes_.size()));
    GElf_Ehdr header{};
    if (!elf_ || gelf_getehdr(elf_.get(), &header) == nullptr) fail_cut();
    if (header.e_machine != kMachineCuda || gelf_getclass(elf_.get()) != ELFCLASS64) {
      fail("this ELF file holds no 64-bit CUDA code", "make a cubin with nvcc -cubin -arch=sm_80 (or sm_90)");
    }
    // Where the architecture stands changed with ABI version 8.
    sm_ = header.e_ident[EI_ABIVERSION] >= 8 ? static_cast<int>(header.e_flags >> 8 & 0xff)
                                             : static_cast<int>(header.e_flags & 0xff);
    if (sm_ != 80 && sm_ != 90) {
      fail("this cubin is for sm_" + std::to_string(sm_) + "; sm_80 and sm_90 are understood",
           "compile with nvcc -cubin -arch=sm_80 or -arch=sm_90");
    }
    if (header.e_shoff + std::uint64_t{header.e_shnum} * header.e_shentsize > bytes_.size()) fail_cut();
  }

  void read_sections() {
    std::size_t names = 0;
    if (elf_getshdrstrndx(elf_.get(), &names) != 0) fail_cut();
    sections_.emplace_back();  // index 0 is the null section
    for (Elf_Scn* scn = elf_nextscn(elf_.get(), nullptr); scn != nullptr; scn = elf_nextscn(elf_.get(), scn)) {
      Section section;
      if (gelf_getshdr(scn, &section.header) == nullptr) fail_cut();
      const char* name = elf_strptr(elf_.get(), names, section.header.sh_name);
      if (name == nullptr) fail_cut();
      section.name = name;
      if (section.header.sh_type != SHT_NOBITS) {
        if (section.header.sh_offset > bytes_.size() ||
            section.header.sh_size > bytes_.size() - section.header.sh_offset) {
          fail_cut();
        }
        section.bytes = bytes_.data() + section.header.sh_offset;
      }
      sections_.push_back(section);
    }
  }

  CodeSection code_section(const Section& section) const {
    CodeSection result;
    result.kernel.name = section.name.substr(6);
    result.kernel.demangled = demangle(result.kernel.name);
    if (section.bytes == nullptr || section.header.sh_size % sizeof(CodeWord) != 0) {
      fail("section " + section.name + " is no sequence of 16-byte instructions",
           "write the cubin again with nvcc -cubin");
    }
    result.code.resize(section.header.sh_size / sizeof(CodeWord));
    std::memcpy(result.code.data(), section.bytes, section.header.sh_size);
    return result;
  }

  void read_symbols(CubinImage& image) {
    for (const Section& table : sections_) {
      if (table.header.sh_type != SHT_SYMTAB || table.bytes == nullptr) continue;
      const std::size_t count = table.header.sh_size / sizeof(Elf64_Sym);
      for (std::size_t i = 0; i < count; ++i) {
        Elf64_Sym symbol;
        std::memcpy(&symbol, table.bytes + i * sizeof symbol, sizeof symbol);
        const auto place = section_of_index_.find(symbol.st_shndx);
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || place == section_of_index_.end()) continue;
        const char* name = elf_strptr(elf_.get(), table.header.sh_link, symbol.st_name);
        if (name == nullptr) fail_cut();
        CodeSection& section = image.sections[place->second];
        section.symbols.push_back({name, static_cast<std::uint32_t>(symbol.st_value)});
        if (section.kernel.name == name) {
          section.is_kernel = (symbol.st_other & kEntrySymbol) != 0;
          section_of_symbol_[static_cast<std::uint32_t>(i)] = place->second;
        }
      }
    }
    for (CodeSection& section : image.sections) {
      std::sort(section.symbols.begin(), section.symbols.end(),
                [](const CodeSymbol& a, const CodeSymbol& b) { return a.offset < b.offset; });
    }
  }

  /// Each record: format, attribute, then a value or the size of what follows.
  std::vector<AttributeRecord> attributes(const Section& section) const {
    std::vector<AttributeRecord> records;
    std::uint64_t at = 0;
    while (section.bytes != nullptr && at + 4 <= section.header.sh_size) {
      AttributeRecord record;
      const std::uint8_t format = section.bytes[at];
      record.attribute = section.bytes[at + 1];
      std::memcpy(&record.value, section.bytes + at + 2, 2);
      at += 4;
      if (format == 4) {
        record.size = record.value;
        if (record.size > section.header.sh_size - at) fail("the attributes in " + section.name + " are cut short");
        record.payload = section.bytes + at;
        at += record.size;
      }
      records.push_back(record);
    }
    return records;
  }

  const Section* find(const std::string& name) const {
    for (const Section& section : sections_) {
      if (section.name == name) return &section;
    }
    return nullptr;
  }

  void read_module_attributes(CubinImage& image) {
    const Section* section = find(".nv.info");
    if (section == nullptr) return;
    for (const AttributeRecord& record : attributes(*section)) {
      const auto place = section_of_symbol_.find(record.word(0));
      if (place == section_of_symbol_.end()) continue;
      Kernel& kernel = image.sections[place->second].kernel;
      if (record.attribute == kRegisterCount) kernel.registers = static_cast<int>(record.word(1));
      if (record.attribute == kFrameSize || record.attribute == kMinimumStack) {
        kernel.local_bytes = std::max(kernel.local_bytes, record.word(1));
      }
    }
  }

  void read_kernel_sections(CodeSection& section) const {
    Kernel& kernel = section.kernel;
    if (const Section* info = find(".nv.info." + kernel.name)) {
      for (const AttributeRecord& record : attributes(*info)) apply_attribute(record, section);
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
      if (constant == nullptr || constant->bytes == nullptr) continue;
      ConstantBank contents{bank, {constant->bytes, constant->bytes + constant->header.sh_size}};
      const auto patches = patches_.find(static_cast<std::size_t>(constant - sections_.data()));
      if (patches != patches_.end()) apply(patches->second, contents.bytes);
      kernel.constants.push_back(std::move(contents));
    }
  }

  struct Patch {
    std::uint64_t offset = 0, value = 0;
  };

  static void apply(const std::vector<Patch>& patches, std::vector<std::uint8_t>& bytes) {
    for (const Patch& patch : patches) {
      if (patch.offset + 8 <= bytes.size()) std::memcpy(bytes.data() + patch.offset, &patch.value, 8);
    }
  }

  /// Global variables get their places one section after another; their addresses stand where relocations say, in
  /// constant bank 4 and in the variables themselves.
  void read_module_data(CubinImage& image) {
    std::map<std::size_t, std::uint64_t> places;
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const Section& section = sections_[i];
      if (section.name != ".nv.global.init" && section.name != ".nv.global") continue;
      const std::uint64_t alignment = std::max<std::uint64_t>(section.header.sh_addralign, 16);
      const std::uint64_t at = (image.module_data.size() + alignment - 1) / alignment * alignment;
      places[i] = at;
      image.module_data.resize(at + section.header.sh_size);
      if (section.bytes != nullptr) std::memcpy(image.module_data.data() + at, section.bytes, section.header.sh_size);
    }
    for (const Section& table : sections_) {
      if (table.header.sh_type == SHT_REL) read_relocations<Elf64_Rel>(table, places, image);
      if (table.header.sh_type == SHT_RELA) read_relocations<Elf64_Rela>(table, places, image);
    }
    for (const auto& [section, at] : places) {
      std::vector<Patch> patches = patches_[section];
      for (Patch& patch : patches) patch.offset += at;
      apply(patches, image.module_data);
    }
  }

  static std::uint64_t outside_address(const std::string& name, CubinImage& image) {
    const auto found = std::find(image.outside.begin(), image.outside.end(), name);
    const auto which = static_cast<std::uint64_t>(found - image.outside.begin());
    if (found == image.outside.end()) image.outside.push_back(name);
    return kOutsideAddress + which * 16;
  }

  template <class Entry>
  void read_relocations(const Section& table, const std::map<std::size_t, std::uint64_t>& places, CubinImage& image) {
    if (table.bytes == nullptr || table.header.sh_link >= sections_.size() || table.header.sh_info >= sections_.size())
      return;
    const Section& symbols = sections_[table.header.sh_link];
    const Section& target = sections_[table.header.sh_info];
    if (symbols.bytes == nullptr) return;
    for (std::uint64_t at = 0; at + sizeof(Entry) <= table.header.sh_size; at += sizeof(Entry)) {
      Entry entry;
      std::memcpy(&entry, table.bytes + at, sizeof entry);
      const std::uint64_t symbol_at = ELF64_R_SYM(entry.r_info) * sizeof(Elf64_Sym);
      if (ELF64_R_TYPE(entry.r_info) != kRelocation64 || symbol_at + sizeof(Elf64_Sym) > symbols.header.sh_size)
        continue;
      Elf64_Sym symbol;
      std::memcpy(&symbol, symbols.bytes + symbol_at, sizeof symbol);
      if (symbol.st_shndx == SHN_UNDEF && symbol.st_name != 0) {
        const char* name = elf_strptr(elf_.get(), symbols.header.sh_link, symbol.st_name);
        if (name == nullptr) fail_cut();
        patches_[table.header.sh_info].push_back({entry.r_offset, outside_address(name, image)});
        continue;
      }
      const auto place = places.find(symbol.st_shndx);
      if (place == places.end()) continue;
      std::uint64_t addend = 0;
      if constexpr (std::is_same_v<Entry, Elf64_Rela>) {
        addend = static_cast<std::uint64_t>(entry.r_addend);
      } else if (target.bytes != nullptr && entry.r_offset + 8 <= target.header.sh_size) {
        std::memcpy(&addend, target.bytes + entry.r_offset, 8);
      }
      patches_[table.header.sh_info].push_back(
          {entry.r_offset, kModuleDataAddress + place->second + symbol.st_value + addend});
    }
  }

  /// Line information, where nvcc -lineinfo left it. Its relocations say which function each address belongs to.
  void read_lines(CubinImage& image) const {
    const Section* table = find(".debug_line");
    const Section* relocations = find(".rela.debug_line");
    if (table == nullptr || table->bytes == nullptr || relocations == nullptr || relocations->bytes == nullptr) return;
    if (relocations->header.sh_link >= sections_.size()) return;
    const Section& symbols = sections_[relocations->header.sh_link];
    std::map<std::uint64_t, std::size_t> targets;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Rela) <= relocations->header.sh_size; at += sizeof(Elf64_Rela)) {
      Elf64_Rela entry;
      std::memcpy(&entry, relocations->bytes + at, sizeof entry);
      const std::uint64_t symbol_at = ELF64_R_SYM(entry.r_info) * sizeof(Elf64_Sym);
      if (symbols.bytes == nullptr || symbol_at + sizeof(Elf64_Sym) > symbols.header.sh_size) continue;
      Elf64_Sym symbol;
      std::memcpy(&symbol, symbols.bytes + symbol_at, sizeof symbol);
      const auto place = section_of_index_.find(symbol.st_shndx);
      if (place != section_of_index_.end()) targets[entry.r_offset] = place->second;
    }
    const std::vector<LineRow> rows = read_line_table({table->bytes, table->header.sh_size}, targets);
    for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
      if (rows[i].place.empty() || rows[i].section != rows[i + 1].section) continue;
      CodeSection& section = image.sections[rows[i].section];
      section.kernel.source.resize(section.code.size());
      const std::uint64_t end = std::min<std::uint64_t>(rows[i + 1].address / sizeof(CodeWord), section.code.size());
      for (std::uint64_t k = rows[i].address / sizeof(CodeWord); k < end; ++k) section.kernel.source[k] = rows[i].place;
    }
  }

  static void apply_attribute(const AttributeRecord& record, CodeSection& section) {
    Kernel& kernel = section.kernel;
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
      case kBarrierCount:
        kernel.barrier_count = record.value & 0xff;
        break;
      case kIndirectTargets:
        read_indirect_targets(record, section);
        break;
      default:
        break;
    }
  }

  /// Groups of: branch offset, 0, number of targets, target offsets.
  static void read_indirect_targets(const AttributeRecord& record, CodeSection& section) {
    const std::uint32_t words = record.size / 4;
    for (std::uint32_t i = 0; i + 3 <= words;) {
      const std::uint32_t branch = record.word(i);
      const std::uint32_t count = record.word(i + 2);
      i += 3;
      if (count > words - i) return;
      std::vector<std::uint32_t> targets;
      for (std::uint32_t k = 0; k < count; ++k) targets.push_back(record.word(i + k));
      section.indirect_branches.emplace_back(branch, std::move(targets));
      i += count;
    }
  }

  struct CloseElf {
    void operator()(Elf* elf) const { elf_end(elf); }
  };

  const std::string& path_;
  const std::vector<std::uint8_t>& bytes_;
  std::unique_ptr<Elf, CloseElf> elf_;
  int sm_ = 0;
  std::vector<Section> sections_;
  std::map<std::size_t, std::vector<Patch>> patches_;       ///< by ELF section index
  std::map<std::size_t, std::size_t> section_of_index_;     ///< ELF section index -> CubinImage::sections
  std::map<std::uint32_t, std::size_t> section_of_symbol_;  ///< symbol index of entries -> CubinImage::sections
};

}  // namespace

CubinImage read_cubin_image(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  return ImageReader(path, bytes).read();
}

}  // namespace forewarp
