// Blocks with their successors.
#pragma once

#include <map>

#include "sketch/assembler/code.h"

namespace forewarp::sketch {

struct FlowBlock {
  const Code::Block* block = nullptr;
  std::vector<int> successors;
};

inline std::map<int, int> block_of_label(const std::vector<Code::Block>& blocks) {
  std::map<int, int> by_label;
  for (std::size_t b = 0; b < blocks.size(); ++b)
    if (blocks[b].label.id >= 0) by_label[blocks[b].label.id] = static_cast<int>(b);
  return by_label;
}

inline std::vector<FlowBlock> blocks_of(const Code& code) {
  const std::vector<Code::Block>& blocks = code.blocks();
  const std::map<int, int> by_label = block_of_label(blocks);
  std::vector<FlowBlock> flow(blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    flow[b].block = &blocks[b];
    bool falls = true;
    if (!blocks[b].lines.empty()) {
      const Line& last = blocks[b].lines.back();
      const bool always = last.guard.id < 0;
      if (last.instruction.opcode == Opcode::BRA) {
        flow[b].successors.push_back(by_label.at(last.target.id));
        falls = !always;
      }
      if (last.instruction.opcode == Opcode::EXIT) falls = !always;
    }
    if (falls && b + 1 < blocks.size()) flow[b].successors.push_back(static_cast<int>(b) + 1);
  }
  return flow;
}

}  // namespace forewarp::sketch
