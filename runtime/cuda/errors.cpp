#include "cuda/errors.h"

#include "src/device.h"
#include "src/make_error.h"

namespace kiln::cuda {
namespace {

using enum ResultKind;

constexpr const char* kRestart = "the device is lost to this process: start a new one";
constexpr const char* kReport = "please report it: Kiln should not have asked for this";
constexpr const char* kCapture = "end the capture first, or keep this out of it";

constexpr ResultRow kRows[] = {
#define KILN_ROW(code, kind, cause, remedy) {code, kind, #code, cause, remedy},
    // clang-format off
    KILN_ROW(CUDA_ERROR_INVALID_VALUE, Resources, "a launch dimension of zero or beyond the device's limit, a block of another shape than the entry's .reqntid, too much shared memory, or another argument out of range", "compare grid, block and shared memory with the limits that `kiln devices` lists (a block has at most 1024 threads) and with the entry's own bounds")
    KILN_ROW(CUDA_ERROR_OUT_OF_MEMORY, Memory, "the device's memory is used up", "free some buffers, or use smaller ones")
    KILN_ROW(CUDA_ERROR_NOT_INITIALIZED, Request, "the driver was not started", kReport)
    KILN_ROW(CUDA_ERROR_DEINITIALIZED, Poison, "the driver is shutting down because the process ends", "do not use the device from destructors of static objects")
    KILN_ROW(CUDA_ERROR_STUB_LIBRARY, Unsupported, "the library is the toolkit's stub, not a driver", "install the NVIDIA driver")
    KILN_ROW(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, Unsupported, "the driver is too old for this", "update the NVIDIA driver")
    KILN_ROW(CUDA_ERROR_DEVICE_UNAVAILABLE, Other, "another process uses the device exclusively", "end that process, or set the device's compute mode to shared")
    KILN_ROW(CUDA_ERROR_NO_DEVICE, NotFound, "the driver finds no GPU", "check that one is installed and not hidden by CUDA_VISIBLE_DEVICES")
    KILN_ROW(CUDA_ERROR_INVALID_DEVICE, NotFound, "there is no GPU of that number", "`kiln devices` lists those there are")
    KILN_ROW(CUDA_ERROR_DEVICE_NOT_LICENSED, Unsupported, "the device has no licence for compute", "license it, or use another one")
    KILN_ROW(CUDA_ERROR_INVALID_IMAGE, Unsupported, "what was to be loaded is neither PTX nor a cubin, or it is damaged", "compile it again")
    KILN_ROW(CUDA_ERROR_INVALID_CONTEXT, Request, "the handle belongs to another context", "use memory and streams of this device only")
    KILN_ROW(CUDA_ERROR_NO_BINARY_FOR_GPU, Unsupported, "the program was compiled for another architecture than this GPU's", "compile it for this GPU (--arch)")
    KILN_ROW(CUDA_ERROR_ECC_UNCORRECTABLE, Poison, "the GPU's memory has an error that cannot be corrected", "start a new process; if it comes back, the GPU needs service")
    KILN_ROW(CUDA_ERROR_INVALID_PTX, Unsupported, "the driver's compiler does not accept the PTX", "see its log below; compile for this GPU (--arch)")
    KILN_ROW(CUDA_ERROR_NVLINK_UNCORRECTABLE, Poison, "NVLink has an error that cannot be corrected", "start a new process; if it comes back, the machine needs service")
    KILN_ROW(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, Unsupported, "the driver's PTX compiler (libnvidia-ptxjitcompiler) is not installed", "install it, or load a cubin")
    KILN_ROW(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, Unsupported, "the PTX is of a newer version than this driver knows", "update the NVIDIA driver, or compile with a lower PTX version")
    KILN_ROW(CUDA_ERROR_JIT_COMPILATION_DISABLED, Unsupported, "compiling PTX is switched off (CUDA_DISABLE_PTX_JIT)", "unset it, or load a cubin")
    KILN_ROW(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, Unsupported, "the PTX waits for kernels that it launches itself, which CUDA no longer has", "change the kernel")
    KILN_ROW(CUDA_ERROR_CONTAINED, Poison, "the GPU contained an error of its hardware or of an access to another GPU's memory over NVLink", "start a new process; if it comes back, the machine needs service")
    KILN_ROW(CUDA_ERROR_INVALID_SOURCE, Unsupported, "what was to be loaded is no program", "compile it again")
    KILN_ROW(CUDA_ERROR_FILE_NOT_FOUND, NotFound, "a file is missing", "check its path")
    KILN_ROW(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, Unsupported, "a library of the driver lacks a symbol", "reinstall the NVIDIA driver: its parts do not match")
    KILN_ROW(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, Unsupported, "a library of the driver could not be initialised", "reinstall the NVIDIA driver: its parts do not match")
    KILN_ROW(CUDA_ERROR_OPERATING_SYSTEM, Other, "a call of the operating system failed", "see the system's log (dmesg)")
    KILN_ROW(CUDA_ERROR_INVALID_HANDLE, Request, "a stream, event or context is not what it is used for, or belongs to another device", "use streams of this device only")
    KILN_ROW(CUDA_ERROR_ILLEGAL_STATE, Request, "the object is not in a state for this", kReport)
    KILN_ROW(CUDA_ERROR_NOT_FOUND, NotFound, "the program has no entry of that name", "check the name: it must be the .entry's in the PTX")
    KILN_ROW(CUDA_ERROR_NOT_READY, Other, "the work is not over", "wait for it")
    KILN_ROW(CUDA_ERROR_ILLEGAL_ADDRESS, Poison, "a kernel accessed memory that is not its own: an index out of range, or a buffer that was freed", "run the kernel checked, or on the CPU device, which names the access; this process must be restarted to use the device again")
    KILN_ROW(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, Resources, "a block needs more registers, threads or shared memory than a multiprocessor has", "use smaller blocks or less shared memory, or declare max_threads(n)")
    KILN_ROW(CUDA_ERROR_LAUNCH_TIMEOUT, Poison, "a kernel ran longer than the system allows", "make it shorter, or use a GPU without a display; this process must be restarted to use the device again")
    KILN_ROW(CUDA_ERROR_CONTEXT_IS_DESTROYED, Poison, "somebody destroyed or reset the device's primary context", "do not call cudaDeviceReset or cuDevicePrimaryCtxReset while Kiln uses the device")
    KILN_ROW(CUDA_ERROR_ASSERT, Poison, "an assertion in a kernel failed", "its text is on the process's error output; this process must be restarted to use the device again")
    KILN_ROW(CUDA_ERROR_HARDWARE_STACK_ERROR, Poison, "a kernel's call stack is corrupt or too small", kRestart)
    KILN_ROW(CUDA_ERROR_ILLEGAL_INSTRUCTION, Poison, "a kernel reached a trap (an assertion, a panic, an access out of range that traps) or an instruction that the GPU does not know", "run the kernel checked, or on the CPU device; this process must be restarted to use the device again")
    KILN_ROW(CUDA_ERROR_MISALIGNED_ADDRESS, Poison, "a kernel accessed an address that is no multiple of the access's size", "check offsets and strides of views; this process must be restarted to use the device again")
    KILN_ROW(CUDA_ERROR_INVALID_ADDRESS_SPACE, Poison, "a kernel used an address in the wrong kind of memory", kRestart)
    KILN_ROW(CUDA_ERROR_INVALID_PC, Poison, "a kernel jumped to where no code is", kRestart)
    KILN_ROW(CUDA_ERROR_LAUNCH_FAILED, Poison, "a kernel ended by a fault or a trap", "run the kernel checked, or on the CPU device; this process must be restarted to use the device again")
    KILN_ROW(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, Resources, "a cooperative launch has more blocks than fit the device at a time", "launch fewer or smaller blocks")
    KILN_ROW(CUDA_ERROR_TENSOR_MEMORY_LEAK, Poison, "a kernel ended without giving back all of its tensor memory", "let the kernel free what it allocates; this process must be restarted to use the device again")
    KILN_ROW(CUDA_ERROR_NOT_PERMITTED, Unsupported, "the operation is not permitted here", kCapture)
    KILN_ROW(CUDA_ERROR_NOT_SUPPORTED, Unsupported, "the device or the driver does not support this", "update the NVIDIA driver, or use another device")
    KILN_ROW(CUDA_ERROR_SYSTEM_NOT_READY, Other, "the system is not ready for CUDA (a fabric manager or a daemon does not run)", "start it and try again")
    KILN_ROW(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, Other, "the kernel module is of another version than libcuda", "reboot, or install matching parts of the NVIDIA driver")
    KILN_ROW(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, Unsupported, "the forward-compatible libcuda does not support this GPU", "take it off LD_LIBRARY_PATH and use the driver's own")
    KILN_ROW(CUDA_ERROR_MPS_CONNECTION_FAILED, Other, "the multi-process service (MPS) cannot be reached", "start nvidia-cuda-mps-control, or unset CUDA_MPS_PIPE_DIRECTORY")
    KILN_ROW(CUDA_ERROR_MPS_RPC_FAILURE, Other, "the multi-process service (MPS) did not answer", "see its log, and restart it")
    KILN_ROW(CUDA_ERROR_MPS_SERVER_NOT_READY, Other, "the multi-process service (MPS) is recovering from a failure", "try again in a while")
    KILN_ROW(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, Other, "the multi-process service (MPS) has as many clients as it can", "end one of them")
    KILN_ROW(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, Other, "the device has as many connections of the multi-process service (MPS) as it can", "end a process that uses it")
    KILN_ROW(CUDA_ERROR_MPS_CLIENT_TERMINATED, Poison, "the multi-process service (MPS) ended this process's use of the device, often because another client failed", kRestart)
    KILN_ROW(CUDA_ERROR_CDP_NOT_SUPPORTED, Unsupported, "the program launches kernels from kernels, which is not possible here (under MPS)", "change the kernel, or run without the service")
    KILN_ROW(CUDA_ERROR_CDP_VERSION_MISMATCH, Unsupported, "the program mixes versions of launching kernels from kernels", "compile all of it with one toolkit")
    KILN_ROW(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, Request, "the operation cannot be captured into a graph", kCapture)
    KILN_ROW(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, Request, "the capture was invalidated by an earlier error", kCapture)
    KILN_ROW(CUDA_ERROR_STREAM_CAPTURE_MERGE, Request, "two captures would be merged", kCapture)
    KILN_ROW(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, Request, "the capture did not begin on this stream", kCapture)
    KILN_ROW(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, Request, "a stream that joined the capture was not joined back", kCapture)
    KILN_ROW(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, Request, "captured work depends on work outside of the capture", kCapture)
    KILN_ROW(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, Request, "the null stream would be drawn into the capture", kCapture)
    KILN_ROW(CUDA_ERROR_CAPTURED_EVENT, Request, "the event belongs to a capture", kCapture)
    KILN_ROW(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, Request, "the capture was begun by another thread", kCapture)
    KILN_ROW(CUDA_ERROR_TIMEOUT, Other, "a time-out elapsed", "try again")
    KILN_ROW(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, Request, "the graph has another shape than the one it replaces", kReport)
    KILN_ROW(CUDA_ERROR_EXTERNAL_DEVICE, Poison, "something outside of CUDA that the device waited for reported an error", kRestart)
    KILN_ROW(CUDA_ERROR_INVALID_CLUSTER_SIZE, Resources, "the cluster does not divide the grid, or the device has no cluster of that size", "clusters have at most 8 blocks on every device that has them; the grid must be a multiple")
    KILN_ROW(CUDA_ERROR_FUNCTION_NOT_LOADED, Request, "the kernel has not been loaded", kReport)
    KILN_ROW(CUDA_ERROR_KEY_ROTATION, Other, "the keys of confidential computing could not be renewed", "see the system's log (dmesg)")
    KILN_ROW(CUDA_ERROR_UNKNOWN, Other, "the driver does not know more", "see the system's log (dmesg) for lines with Xid")
// clang-format on
#undef KILN_ROW
};
constexpr ResultRow kUnknown{CUDA_ERROR_UNKNOWN, Other, "an undocumented result", "the driver is newer than this version of Kiln",
                             "look it up in the driver's documentation"};
constexpr ResultRow kSuccess{CUDA_SUCCESS, Other, "CUDA_SUCCESS", "nothing is wrong", "nothing is to be done"};

// Columns: Open, Load, Launch, Transfer, Allocate, Wait.
constexpr ErrorCode kCodes[][6] = {
    /* Poison */ {ErrorCode::DevicePoisoned, ErrorCode::CompileDevicePoisoned, ErrorCode::LaunchDevicePoisoned, ErrorCode::IoDevicePoisoned,
                  ErrorCode::IoDevicePoisoned, ErrorCode::DevicePoisoned},
    /* Memory */
    {ErrorCode::OutOfMemory, ErrorCode::OutOfMemory, ErrorCode::LaunchOutOfMemory, ErrorCode::OutOfMemory, ErrorCode::OutOfMemory,
     ErrorCode::OutOfMemory},
    /* Resources */
    {ErrorCode::Generic, ErrorCode::CompileGeneric, ErrorCode::TooManyResources, ErrorCode::IoUnknown, ErrorCode::IoUnknown,
     ErrorCode::Generic},
    /* Unsupported */
    {ErrorCode::Generic, ErrorCode::CompileUnsupported, ErrorCode::LaunchUnknown, ErrorCode::UnsupportedIo, ErrorCode::UnsupportedIo,
     ErrorCode::Generic},
    /* NotFound */
    {ErrorCode::NotFound, ErrorCode::NotFound, ErrorCode::LaunchUnknown, ErrorCode::NotFound, ErrorCode::NotFound, ErrorCode::NotFound},
    /* Request */
    {ErrorCode::Generic, ErrorCode::CompileGeneric, ErrorCode::LaunchUnknown, ErrorCode::IoUnknown, ErrorCode::IoUnknown,
     ErrorCode::Generic},
    /* Other */
    {ErrorCode::Generic, ErrorCode::CompileGeneric, ErrorCode::LaunchUnknown, ErrorCode::IoUnknown, ErrorCode::IoUnknown,
     ErrorCode::Generic},
};

ErrorCode code_of(ResultKind kind, Phase phase) { return kCodes[static_cast<unsigned>(kind)][static_cast<unsigned>(phase)]; }

}  // namespace

const ResultRow& result_row(CUresult code) {
  if (code == CUDA_SUCCESS) return kSuccess;
  for (const ResultRow& row : kRows)
    if (row.code == code) return row;
  return kUnknown;
}

bool is_sticky(CUresult code) { return result_row(code).kind == Poison; }

std::string result_text(CUresult code) { return std::string(result_row(code).name) + " (" + std::to_string(static_cast<int>(code)) + ")"; }

Error driver_error(CUresult code, Phase phase, const std::string& doing, const std::string& kernel) {
  const ResultRow& row = result_row(code);
  return make_error(code_of(row.kind, phase), row.name,
                    doing + ": the CUDA driver answers " + result_text(code) + ", " + row.cause + "; " + row.remedy, {.kernel = kernel});
}

Error poisoned_error(const Error& first, Phase phase, const std::string& device) {
  return rt::lost_device(code_of(Poison, phase), device, first);
}

}  // namespace kiln::cuda
