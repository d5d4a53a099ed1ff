// Serialises launches, patterns, slopes and block classes. Repetition is left to the compressor: each trip of a loop
// becomes the same bytes, mostly zeros.
#pragma once

#include "trace/trace.h"
#include "trace/wire.h"

namespace forewarp {

void encode_launch(wire::Encoder& out, const LaunchInfo& launch);
LaunchInfo decode_launch(wire::Decoder& in);

/// Patterns [first, end) of a table; decoding appends.
void encode_patterns(wire::Encoder& out, const std::vector<AccessPattern>& patterns, std::size_t first);
void decode_patterns(wire::Decoder& in, std::vector<AccessPattern>& patterns);
void encode_quotients(wire::Encoder& out, const std::vector<BlockQuotient>& quotients);
void decode_quotients(wire::Decoder& in, std::vector<BlockQuotient>& quotients);
void encode_slopes(wire::Encoder& out, const std::vector<BlockSlope>& slopes, std::size_t first);
void decode_slopes(wire::Decoder& in, std::vector<BlockSlope>& slopes);

/// The kernel tells which instruction made an access, whose previous access then predicts it. Decoding checks that
/// every index lies within its table.
void encode_class(wire::Encoder& out, const BlockClass& c, const Kernel& kernel);
BlockClass decode_class(wire::Decoder& in, const KernelTrace& trace);

}  // namespace forewarp
