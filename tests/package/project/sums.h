#pragma once
#include <vector>

// The sum of the numbers, by a kernel. Throws kiln::Exception.
float sum_of(const std::vector<float>& numbers);
