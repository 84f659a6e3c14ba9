// The pieces of an emission, each a question with an answer, so that a process of its own can do them (worker.h). Questions are JSON with
// "do": a word of these, and what is written behind it; an answer is JSON and byte strings, or {"error": TEXT, "exit": CODE}.
//   open      source, archs                            kernels, archs [{name, gpu}], llvm; the names of archs are checked
//   describe  spec, mode, bundle {archs, blocks, modes} name, symbol, checked, manifest (without targets), bundle [{mode, options}] | the
//             or null                                  canonical text of the recorded kernel
//   code      spec, mode, block, arch, kinds, explain  items [{kind, extension, options, code}], explanation | the bytes of each item
//   make      spec, mode, options                      items, one, of code for a bundle | its bytes
// Every question names the source; it is opened once.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "manifest.h"
#include "message.h"
#include "source.h"

namespace kiln::cli {

class Jobs {
 public:
  // Never throws for what goes wrong with the work: that is the answer.
  Message answer(const Json& question);

 private:
  Message open(const Json& question);
  Message describe(const Json& question);
  Message code(const Json& question);
  Message make(const Json& question);
  const Source& source(const std::string& path);
  const Variant& variant(const Json& question);

  std::string path_;
  std::unique_ptr<Source> source_;
  std::map<std::string, std::shared_ptr<const Variant>> variants_;  // by spec
};

Json to_json(const SourceKernel& kernel);
SourceKernel source_kernel_of(const Json& json);
// What code was made with and what a launch must know of it, and back.
Json to_json(const CompileOptions& options);
Json to_json(const CompiledCode& code);  // without the bytes
CompileOptions options_of(const Json& json);
CompiledCode code_of(const Json& json);

}  // namespace kiln::cli
