// A library that is no driver.
extern "C" int kiln_fake_nothing() { return 0; }
