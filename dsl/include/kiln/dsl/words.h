// The short words of control flow. Left out by who includes kiln/dsl/dsl.h instead of kiln/kiln.h and writes KILN_IF and its like.
#pragma once
#include "kiln/dsl/control.h"

#define If KILN_IF
#define Else KILN_ELSE
#define While KILN_WHILE
#define Switch KILN_SWITCH
#define Case KILN_CASE
#define Default KILN_DEFAULT
