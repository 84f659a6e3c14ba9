// A shared library without kernels.
extern "C" int kiln_test_cli_empty() { return 0; }
