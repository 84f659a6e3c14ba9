# ./dev package, or cpack in the build folder: three Debian packages and one archive of everything.
#
# Three packages, since a user's machine shall not get LLVM (more than 100 MB) for a program whose kernels are embedded, nor headers:
#   kiln-runtime  the libraries that programs link, and the program kiln, which says what works on a machine
#   kiln-jit      the code generator, which needs LLVM: for programs that compile kernels when they launch them
#   kiln-dev      headers, CMake and pkg-config files, the archive of kernel tools; needs both
set(CPACK_PACKAGE_NAME kiln)
set(CPACK_PACKAGE_VENDOR "Kiln")
set(CPACK_PACKAGE_CONTACT "The Kiln developers <kiln@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "GPU kernels in C++, compiled when they are launched or before")
set(CPACK_PACKAGE_DESCRIPTION "Kiln is a language for kernels, embedded in C++: a kernel is an ordinary function that is recorded, compiled for GPUs and CPUs, and launched.")
set(CPACK_RESOURCE_FILE_LICENSE "${CMAKE_SOURCE_DIR}/LICENSE")
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DIRECTORY "${CMAKE_BINARY_DIR}/packages")
set(CPACK_COMPONENTS_ALL runtime jit dev)
if(NOT TARGET kiln_codegen)
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL jit)
endif()
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
set(CPACK_ARCHIVE_FILE_NAME "kiln-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_PACKAGE_FILE_NAME "${CPACK_ARCHIVE_FILE_NAME}")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_BINARY_DIR}/lib")  # ours, which no package has yet
set(version "(= ${PROJECT_VERSION}-1)")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME kiln-runtime)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "What programs with embedded kernels need: the runtime, and the program kiln.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "kiln-jit ${version}")
set(CPACK_DEBIAN_JIT_PACKAGE_NAME kiln-jit)
set(CPACK_COMPONENT_JIT_DESCRIPTION "The code generator, for programs that compile kernels when they launch them.")
set(CPACK_DEBIAN_JIT_PACKAGE_DEPENDS "kiln-runtime ${version}")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME kiln-dev)
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers, CMake and pkg-config files: what programs with kernels are built with.")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "kiln-runtime ${version}, kiln-jit ${version}")
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_COMPONENT_JIT_DEPENDS runtime)
set(CPACK_COMPONENT_DEV_DEPENDS runtime jit)
include(CPack)
