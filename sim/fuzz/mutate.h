// Damages inputs: bytes, numbers, stretches of bytes, words of text, whole parts.
#pragma once

#include <random>

#include "fuzz/targets.h"

namespace forewarp::fuzz {

using Random = std::mt19937_64;

/// `other`: where stretches are taken from.
void mutate(const Target&, Input&, const Input& other, Random&);

}  // namespace forewarp::fuzz
