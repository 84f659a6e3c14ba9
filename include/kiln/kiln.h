// Everything of Kiln, with the short words (If, Else, While ...).
#pragma once
#include "kiln/dsl/dsl.h"
#include "kiln/dsl/words.h"
#include "kiln/runtime/buffer.h"
#include "kiln/runtime/client.h"
#include "kiln/runtime/collective.h"
#include "kiln/runtime/devices.h"
#include "kiln/runtime/error.h"
#include "kiln/runtime/graph.h"
#include "kiln/runtime/interop.h"
#include "kiln/runtime/layout.h"
#include "kiln/runtime/staging.h"
#include "kiln/runtime/strided.h"
