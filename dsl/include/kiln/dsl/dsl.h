// All of the DSL, without the short words of words.h.
#pragma once
#include "kiln/dsl/builtins.h"
#include "kiln/dsl/composed.h"
#include "kiln/dsl/control.h"
#include "kiln/dsl/embedded.h"
#include "kiln/dsl/head.h"
#include "kiln/dsl/kernel.h"
#include "kiln/dsl/math.h"
#include "kiln/dsl/memory.h"
#include "kiln/dsl/space.h"
#include "kiln/dsl/text.h"
#include "kiln/dsl/value.h"
#include "kiln/dsl/warp.h"
