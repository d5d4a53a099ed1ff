// Serialises a decoded kernel completely: a trace is replayed without its cubin.
#pragma once

#include "program/program.h"
#include "trace/wire.h"

namespace forewarp {

void encode_kernel(wire::Encoder& out, const Kernel& kernel);
Kernel decode_kernel(wire::Decoder& in);

}  // namespace forewarp
