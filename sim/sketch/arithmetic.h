// Functions of floats as nvcc expands them without fast math; and reductions over a warp.
#pragma once

#include "sketch/writer.h"

namespace forewarp::sketch {

Value exponential(Writer&, Arg x);             ///< expf
void power_of_2(Writer&, Value x);             ///< exp2f in place
Value reciprocal(Writer&, Value x);            ///< 1 / x
Value reciprocal_of_normal(Writer&, Value x);  ///< without the way for what is nearly 0 or infinite
Value quotient(Writer&, Value a, Value b);
Value square_root(Writer&, Value x);
Value reciprocal_root(Writer&, Value x);  ///< rsqrtf
Value logarithm(Writer&, Value x);
/// x less whole quarter turns, and how many: sinf and cosf begin with that.
struct Reduced {
  Value rest, quarters;
  Value sine_series, cosine_series;  ///< of the rest, where both functions are wanted
};
Reduced reduce_angle(Writer&, Value x, bool both);
Value sine(Writer&, const Reduced&, bool cosine);

/// The sum, or the largest, of every lane's value in every lane.
enum class Reduce { Sum, Max };
Value warp_reduce(Writer&, Value, Reduce, int lanes = 32);
Value combine(Writer&, Value a, Value b, Reduce);

}  // namespace forewarp::sketch
