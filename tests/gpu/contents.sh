# Sourced by pack.sh and check.sh: what is packed is what is run. Names in bin/ of a build tree; a test holds the three together.
kiln_samples="saxpy reduce scan stencil histogram matmul transpose softmax layer_norm gather unit_rows nbody black_scholes"
kiln_programs="kiln kiln_gpu_measure kiln_bench kiln_test_conformance kiln_test_dsl kiln_test_runtime sample_demo $(printf 'sample_%s ' $kiln_samples)"
# Opened by name at run time, beside what the programs are linked with: the code generator, the simulated driver (whose answers the real one's are held
# against), and the driver that does nothing (for the time that a launch takes the host).
kiln_libraries="libkiln_codegen.so libkiln_simcuda.so fakecuda/libcuda_null.so"
kiln_data="h200.json"
