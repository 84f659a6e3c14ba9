// A program that is linked with such a library.
extern "C" int use_library();

int main() { return use_library(); }
