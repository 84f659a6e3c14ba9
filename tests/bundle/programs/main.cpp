#include "bundle/programs/use.h"

int main() { return use_kernels(); }
