// Everything of Kiln, with the short words (If, Else, While ...).
#pragma once
#include "kiln/dsl/dsl.h"
#include "kiln/dsl/words.h"
#include "kiln/runtime/buffer.h"
#include "kiln/runtime/client.h"
#include "kiln/runtime/error.h"
