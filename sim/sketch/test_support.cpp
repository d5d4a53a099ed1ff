#include "sketch/test_support.h"

#include <cstring>

#include "base/error.h"

namespace forewarp::sketch::test {

GpuModel gpu(const std::string& name) { return load_gpu_model(FOREWARP_SOURCE_DIR "/hwmodels/" + name + ".yaml"); }

Run::Run(const std::string& text, const GpuModel& model) : sketches(parse_sketches(text, "sketch.yaml", model)) {
  result = emulate_values(*sketches.program, item());
}

std::size_t Run::index(const std::string& buffer) const {
  for (std::size_t i = 0; i < item().buffers.size(); ++i)
    if (item().buffers[i].name == buffer) return i;
  throw InternalError("no buffer " + buffer);
}

std::vector<std::uint8_t> Run::start(const std::string& buffer) const {
  return make_buffer(item().buffers[index(buffer)]);
}
std::vector<std::uint8_t> Run::end(const std::string& buffer) const { return result.buffers[index(buffer)]; }

std::string refusal(const std::string& text, const std::string& gpu_name) {
  try {
    parse_sketches(text, "sketch.yaml", gpu(gpu_name));
  } catch (const InputError& e) {
    return e.what();
  }
  return {};
}

std::vector<float> floats(const std::vector<std::uint8_t>& bytes) {
  std::vector<float> f(bytes.size() / 4);
  std::memcpy(f.data(), bytes.data(), f.size() * 4);
  return f;
}

std::vector<float> halves(const std::vector<std::uint8_t>& bytes) {
  std::vector<float> f(bytes.size() / 2);
  for (std::size_t i = 0; i < f.size(); ++i) {
    _Float16 h = 0;
    std::memcpy(&h, bytes.data() + 2 * i, 2);
    f[i] = static_cast<float>(h);
  }
  return f;
}

std::vector<float> brains(const std::vector<std::uint8_t>& bytes) {
  std::vector<float> f(bytes.size() / 2);
  for (std::size_t i = 0; i < f.size(); ++i) {
    std::uint32_t word = 0;
    std::memcpy(reinterpret_cast<char*>(&word) + 2, bytes.data() + 2 * i, 2);
    std::memcpy(&f[i], &word, 4);
  }
  return f;
}

std::vector<float> numbers(const std::vector<std::uint8_t>& bytes, const std::string& type) {
  return type == "f16" ? halves(bytes) : type == "bf16" ? brains(bytes) : floats(bytes);
}

}  // namespace forewarp::sketch::test
