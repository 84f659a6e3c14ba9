// Of the target that precompiles precompiled.h, which needs a source.
